"""Kubeconfigs: certificate files are embedded; proxies and other identities refused."""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.adapters.local.certificates import make_authority
from bellhop.cli.credentials import read_kubeconfig
from bellhop.errors import InvalidError, MissingError, TooLargeError
from tests.unit.cli.conftest import Bellhop

PEM = make_authority("test", now=datetime.now(UTC), validity=timedelta(days=1)).certificate_pem


def write(
    tmp_path: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None
) -> Path:
    """Write a kubeconfig with one context."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": "https://127.0.0.1:1", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": {"token": "t"} if user is None else user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def test_embeds_a_file_beside_the_kubeconfig(tmp_path: Path) -> None:
    """A relative path is the kubeconfig's, as for kubectl."""
    (tmp_path / "ca.pem").write_bytes(PEM)
    found = read_kubeconfig(
        write(tmp_path, cluster={"certificate-authority": "ca.pem"}), None
    ).kubeconfig

    assert base64.b64decode(found.ca_data) == PEM


def test_embeds_nothing_of_other_contexts(tmp_path: Path) -> None:
    """A file that another context's cluster names need not be there."""
    path = write(tmp_path)
    document = yaml.safe_load(path.read_text())
    other = {"server": "https://b", "certificate-authority": "/not/there"}
    document["clusters"].append({"name": "other", "cluster": other})
    path.write_text(yaml.safe_dump(document))

    assert read_kubeconfig(path, "x").kubeconfig.server == "https://127.0.0.1:1"


@pytest.mark.parametrize(
    ("cluster", "user", "said"),
    [
        pytest.param({}, {"token": "t", "as": "root"}, "`as` is refused: it acts as", id="as"),
        pytest.param({}, {"tokenFile": "/t"}, "`tokenFile` is refused", id="token file"),
        pytest.param(
            {"insecure-skip-tls-verify": True}, None, "would send the credentials", id="insecure"
        ),
        pytest.param({"proxy-url": "socks5://p"}, None, "other kinds of proxies", id="proxy"),
        pytest.param({}, {}, "has no credentials", id="nobody"),
        pytest.param(
            {"certificate-authority": "/not/there"},
            None,
            "cannot read the file '/not/there', which the kubeconfig names as"
            " certificate-authority: No such file or directory",
            id="no such file",
        ),
    ],
)
def test_refuses_what_would_act_on_the_machine_that_reads_it(
    tmp_path: Path,
    bellhop: Bellhop,
    cluster: dict[str, Any],
    user: dict[str, Any] | None,
    said: str,
) -> None:
    """Each is refused with its reason, before anything is stored or asked."""
    path = write(tmp_path, cluster=cluster, user=user)
    result = bellhop(
        "register", "cluster", "--namespace", "a", "--cluster", "b", "--kubeconfig", str(path)
    )

    assert result.exit_code == 2
    assert said in result.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    "text", ["", "[", "- a", "a: b", "\x00"], ids=["empty", "broken", "list", "other", "null"]
)
def test_says_that_it_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    """The file is named, its content never quoted."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)

    with pytest.raises(InvalidError, match="kubeconfig"):
        read_kubeconfig(path, None)


def test_says_that_there_is_no_file(tmp_path: Path) -> None:
    """A missing file is a sentence."""
    with pytest.raises(MissingError, match="there is no such file"):
        read_kubeconfig(tmp_path / "none", None)


def test_says_that_a_file_is_no_text(tmp_path: Path) -> None:
    """A binary file is a sentence, too."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\xff")

    with pytest.raises(InvalidError, match="it is not UTF-8 text"):
        read_kubeconfig(tmp_path / "binary", None)


ENDLESS = Path("/dev/zero")


def test_a_kubeconfig_without_end_is_too_large() -> None:
    """A mebibyte is read, and no more."""
    with pytest.raises(TooLargeError, match="'/dev/zero': it has more than 1048576 bytes"):
        read_kubeconfig(ENDLESS, None)


def test_a_certificate_file_without_end_is_no_file(tmp_path: Path) -> None:
    path = write(tmp_path, cluster={"certificate-authority": str(ENDLESS)})

    with pytest.raises(InvalidError, match="cannot read '/dev/zero': it is not a regular file"):
        read_kubeconfig(path, None)


def test_a_certificate_file_that_is_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    """A pipe into which nobody writes would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    path = write(tmp_path, user={"client-certificate": "pipe", "client-key": "pipe"})

    with pytest.raises(InvalidError, match="it is not a regular file"):
        read_kubeconfig(path, None)


def test_a_large_certificate_file_is_too_large(tmp_path: Path) -> None:
    """No authority is a mebibyte long."""
    (tmp_path / "ca.pem").write_bytes(PEM * 2000)
    path = write(tmp_path, cluster={"certificate-authority": "ca.pem"})

    with pytest.raises(TooLargeError, match=r"ca\.pem': it has more than 1048576 bytes"):
        read_kubeconfig(path, None)


def test_a_folder_is_a_sentence(tmp_path: Path) -> None:
    """As a kubeconfig and as a certificate file."""
    with pytest.raises(InvalidError, match="Is a directory"):
        read_kubeconfig(tmp_path, None)
    with pytest.raises(InvalidError, match=r"it is not a regular file|Is a directory"):
        read_kubeconfig(write(tmp_path, cluster={"certificate-authority": "."}), None)


def test_reads_a_pipe(tmp_path: Path) -> None:
    """As a shell makes one of another command's output."""
    text = write(tmp_path).read_bytes()
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"):
        with os.fdopen(writing, "wb") as file:
            file.write(text)

        assert read_kubeconfig(Path(f"/dev/fd/{reading}"), None).kubeconfig.token == "t"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "standard input: this is not a kubeconfig", id="nothing"),
        pytest.param("a" * (1 << 20) + "a", "cannot read 'standard input'", id="too much"),
        pytest.param(
            "a: &a [*a]",
            "standard input: line 1 of the kubeconfig refers to an anchor",
            id="anchors",
        ),
    ],
)
def test_reads_standard_input(bellhop: Bellhop, text: str, said: str) -> None:
    """A kubeconfig with a token need never be a file."""
    arguments = ("--namespace", "a", "--cluster", "b", "--kubeconfig", "-")
    result = bellhop("register", "cluster", *arguments, stdin=text)

    assert result.exit_code == 2
    assert said in result.stderr


def test_an_authority_without_end_is_too_large(tmp_path: Path, bellhop: Bellhop) -> None:
    """The authority of --ingest-ca is a file like the others."""
    arguments = ("--namespace", "a", "--cluster", "b", "--kubeconfig", str(write(tmp_path)))
    where = ("--ingest-url", "https://ingest.example", "--ingest-ca", str(ENDLESS))
    result = bellhop("register", "cluster", *arguments, *where)

    assert result.exit_code == 2
    assert "cannot read '/dev/zero': it has more than 65536 bytes" in result.stderr
