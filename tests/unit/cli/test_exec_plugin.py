"""Exec plugins: what one prints logs in, and each way to fail has its sentence."""

from __future__ import annotations

import base64
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.cli.credentials import read_kubeconfig
from bellhop.errors import BellhopError, DeniedError, InvalidError, MissingError, UnreachableError
from tests.unit.cli.logins import VERSION, answer, plugin, write
from tests.waiting import eventually

SOON = timedelta(seconds=1)


def test_logs_in_by_the_token_that_a_plugin_prints(tmp_path: Path) -> None:
    """The token is the person's, and so is never to be stored."""
    given = read_kubeconfig(write(tmp_path, plugin(tmp_path, answer(token="k8s-aws-v1.abc"))), None)

    assert (given.kubeconfig.token, given.login) == ("k8s-aws-v1.abc", True)


def test_logs_in_by_the_certificate_that_a_plugin_prints(tmp_path: Path) -> None:
    """As PEM, where a kubeconfig has base64 of it."""
    now, day = datetime.now(UTC), timedelta(days=1)
    pem, key = issue(make_authority("a", now=now, validity=day), ["u"], now=now, validity=day)
    status = {"clientCertificateData": pem.decode(), "clientKeyData": key.decode()}
    found = read_kubeconfig(write(tmp_path, plugin(tmp_path, answer(**status))), None).kubeconfig

    assert base64.b64decode(found.client_certificate_data) == pem
    assert base64.b64decode(found.client_key_data) == key


def test_a_plugin_is_run_as_kubectl_runs_it(tmp_path: Path) -> None:
    """With its arguments, its variables, and the cluster where the entry asks for that."""
    program = (
        "told = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "json.dump([sys.argv[1:], os.environ['REGION'], told], open('told', 'w'))\n"
    )
    entry = plugin(
        tmp_path,
        program + answer(token="t"),
        args=["get-token", "--cluster", "eu-1"],
        env=[{"name": "REGION", "value": "eu"}],
        provideClusterInfo=True,
    )
    read_kubeconfig(write(tmp_path, entry), None)
    arguments, region, exec_info = json.loads((tmp_path / "told").read_text())

    assert (arguments, region) == (["get-token", "--cluster", "eu-1"], "eu")
    assert exec_info == {
        "apiVersion": VERSION,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://127.0.0.1:1"}},
    }


@pytest.mark.parametrize(
    ("program", "entry", "error", "said"),
    [
        pytest.param(
            "sys.stderr.write('Traceback\\nThe SSO session has expired\\n\\n'); sys.exit(255)",
            {},
            DeniedError,
            "the exec plugin './plugin' failed with exit code 255: The SSO session has expired;"
            " run `kubectl get namespaces` with this kubeconfig until it answers",
            id="fails",
        ),
        pytest.param(
            "sys.exit(3)", {}, DeniedError, "failed with exit code 3: no message", id="mute"
        ),
        pytest.param(
            "sys.exit('no ' + ' '.join([*sys.argv[1:], os.environ['X_TOKEN'], 'eyJh.eyJi.c']))",
            {
                "args": ["--client-secret", "s3cret", "--password=w0rd", "--profile=prod"],
                "env": [{"name": "X_TOKEN", "value": "t0ken"}],
            },
            DeniedError,
            "no --client-secret <hidden> --password=<hidden> --profile=prod <hidden> <hidden>;",
            id="says secrets",
        ),
        pytest.param(
            "print('Please log in')",
            {},
            InvalidError,
            f"printed no ExecCredential of {VERSION}",
            id="rubbish",
        ),
        pytest.param(
            answer(token="t"),
            {"apiVersion": "client.authentication.k8s.io/v1"},
            InvalidError,
            "printed no ExecCredential of client.authentication.k8s.io/v1;",
            id="another version",
        ),
        pytest.param(
            answer(token=7), {}, InvalidError, "neither a token nor a client", id="no credentials"
        ),
        pytest.param(
            answer(token="t"),
            {"interactiveMode": "Always"},
            InvalidError,
            "needs a terminal",
            id="needs a terminal",
        ),
        pytest.param(
            "",
            {"command": "no-such-plugin", "installHint": "Install it by gcloud\nnow"},
            MissingError,
            "the exec plugin 'no-such-plugin' is not installed: Install it by gcloud\\nnow",
            id="not installed, with a hint",
        ),
        pytest.param(
            "", {"command": "/none"}, MissingError, "install it, and look at PATH", id="no file"
        ),
        pytest.param(
            "", {"command": "/dev/null"}, InvalidError, "cannot be run: Permission", id="no program"
        ),
        pytest.param(
            "", {"apiVersion": None}, InvalidError, "is not described as", id="no version"
        ),
        pytest.param("", {"args": [7]}, InvalidError, "is not described as", id="a number"),
        pytest.param("", {"env": ["A"]}, InvalidError, "is not described as", id="no variable"),
    ],
)
def test_says_why_a_plugin_does_not_log_in(
    tmp_path: Path, program: str, entry: dict[str, Any], error: type[BellhopError], said: str
) -> None:
    """The kubeconfig, the plugin, why and what to do; nothing that is secret."""
    path = write(tmp_path, plugin(tmp_path, program, **entry))

    with pytest.raises(error) as raised:
        read_kubeconfig(path, None)

    assert str(raised.value).startswith(f"cannot log in by the kubeconfig '{path}': the exec plugi")
    assert said in str(raised.value)


def test_a_plugin_that_hangs_is_ended(tmp_path: Path) -> None:
    """With all that it has started, which would hold its output open."""
    program = (
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "open('child', 'w').write(str(child.pid))\n"
        "child.wait()"
    )
    path = write(tmp_path, plugin(tmp_path, program))

    with pytest.raises(UnreachableError, match="took longer than 1 s and was ended; run `kubectl"):
        read_kubeconfig(path, None, patience=SOON)

    child = int((tmp_path / "child").read_text())
    eventually("the child has ended", lambda: _has_ended(child))


def test_nothing_is_run_for_a_kubeconfig_that_is_refused(tmp_path: Path) -> None:
    """Whatever else is in it is looked at first."""
    user = plugin(tmp_path, "open('ran', 'w')")

    with pytest.raises(InvalidError, match="`as` is refused"):
        read_kubeconfig(write(tmp_path, {**user, "as": "root"}), None)
    with pytest.raises(InvalidError, match="no context 'y'"):
        read_kubeconfig(write(tmp_path, user), "y")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"exec": "aws"}, "`exec` is not a mapping"),
        ({"exec": {"command": "aws"}, "auth-provider": {"name": "oidc"}}, "two ways to log in"),
    ],
    ids=["no mapping", "two"],
)
def test_refuses_an_entry_that_says_no_way(tmp_path: Path, user: dict[str, Any], said: str) -> None:
    """Neither is run."""
    with pytest.raises(InvalidError, match=said):
        read_kubeconfig(write(tmp_path, user), None)


def test_a_plugin_talks_to_the_person_at_a_terminal(tmp_path: Path) -> None:
    """It asks, and reads what is typed; only its output is ours."""
    program = (
        "sys.stderr.write('Code: '); sys.stderr.flush()\n"
        "code = sys.stdin.readline().strip()\n"
        "told = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']['interactive']\n"
        "assert told and sys.stdin.isatty() and sys.stderr.isatty()\n"
        f"credential = {{'apiVersion': {VERSION!r}, 'kind': 'ExecCredential'}}\n"
        "print(json.dumps({**credential, 'status': {'token': code}}))\n"
    )
    path = write(tmp_path, plugin(tmp_path, program))
    reader = (
        "import sys; from pathlib import Path\n"
        "from bellhop.cli.credentials import read_kubeconfig\n"
        "print(read_kubeconfig(Path(sys.argv[1]), None).kubeconfig.token)"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", reader, str(path)],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        seen = b""
        while b"Code: " not in seen:
            seen += os.read(ours, 1024)
        os.write(ours, b"1234\n")
        assert process.stdout is not None
        found = process.stdout.read().strip()
        os.close(ours)

    assert found == b"1234"


def _has_ended(process: int) -> bool:
    """Say whether a process that is nobody's child here has ended."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True
