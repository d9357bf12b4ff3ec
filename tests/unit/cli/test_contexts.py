"""Contexts: which installation a command talks to."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.conftest import Bellhop


def test_is_local_without_any_file(bellhop: Bellhop, tmp_path: Path) -> None:
    """Without a configuration, state is where XDG has it."""
    result = bellhop("context", "show", "-o", "yaml", BELLHOP_STATE="")

    expected = {
        "name": "local",
        "kind": "embedded",
        "state": str(tmp_path / "home-state" / "bellhop"),
        "there": False,
    }
    assert yaml.safe_load(result.stdout) == expected
    assert not (tmp_path / "config").exists()


def test_reports_which_context_is_used(bellhop: Bellhop, tmp_path: Path) -> None:
    """In words: the name, where its state is, and whether there is any."""
    before = bellhop("context", "show", BELLHOP_STATE="").stdout.splitlines()
    bellhop("apply", "-f", "-", stdin="{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    after = bellhop("context", "show").stdout.splitlines()

    assert before == [
        f"local: embedded, state in {tmp_path / 'home-state' / 'bellhop'}",
        "There is no state yet; `bellhop serve`, `apply` or `register` makes the folder.",
    ]
    named = "(named by --state or BELLHOP_STATE)"
    assert after == [f"{named}: embedded, state in {tmp_path / 'state'}"]


def test_adds_and_uses_a_context(bellhop: Bellhop, tmp_path: Path) -> None:
    added = bellhop("context", "add", "lab", "--state", str(tmp_path / "lab"))
    used = bellhop("context", "use", "lab")
    listed = bellhop("context", "list").stdout.splitlines()
    file = tmp_path / "config" / "bellhop" / "config.yaml"

    assert (added.stdout, used.stdout) == (
        "Context 'lab' added.\n",
        "Now using context 'lab'.\n",
    )
    assert [line.split() for line in listed[1:]] == [
        ["local", "embedded", str(tmp_path / "home-state" / "bellhop")],
        ["*", "lab", "embedded", str(tmp_path / "lab")],
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert yaml.safe_load(file.read_text())["current"] == "lab"
    assert [path.name for path in file.parent.iterdir()] == ["config.yaml"]


@pytest.mark.parametrize(
    ("arguments", "environment", "state"),
    [
        pytest.param((), {}, "lab", id="the current context"),
        pytest.param((), {"BELLHOP_CONTEXT": "other"}, "other", id="BELLHOP_CONTEXT"),
        pytest.param(
            (),
            {"BELLHOP_CONTEXT": "other", "BELLHOP_STATE": "/env"},
            "/env",
            id="BELLHOP_STATE before BELLHOP_CONTEXT",
        ),
        pytest.param(
            ("--context", "other"), {"BELLHOP_STATE": "/env"}, "other", id="--context before both"
        ),
        pytest.param(
            ("--context", ""), {"BELLHOP_STATE": "/env"}, "/env", id="an empty --context is none"
        ),
        pytest.param(
            ("--state", "/option"),
            {"BELLHOP_CONTEXT": "other", "BELLHOP_STATE": "/env"},
            "/option",
            id="--state before both",
        ),
    ],
)
def test_chooses(
    bellhop: Bellhop,
    tmp_path: Path,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    state: str,
) -> None:
    for name in ("lab", "other"):
        bellhop("context", "add", name, "--state", str(tmp_path / name))
    bellhop("context", "use", "lab")
    result = bellhop(
        *arguments, "context", "show", "-o", "json", **{"BELLHOP_STATE": "", **environment}
    )

    expected = state if state.startswith("/") else str(tmp_path / state)
    assert yaml.safe_load(result.stdout)["state"] == expected


@pytest.mark.parametrize(
    "words",
    [
        ("--state", "/option", "--context", "other", "context", "show"),
        ("--state", "/option", "get", "cm", "--context", "other"),
        ("get", "cm", "--state", "/option", "--context", "other"),
    ],
)
def test_two_installations_are_refused(bellhop: Bellhop, words: tuple[str, ...]) -> None:
    """One of the two would be ignored, and a change made in the wrong installation."""
    result = bellhop(*words)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "error: cannot use --state '/option' and --context 'other': each names an installation;"
        " leave one of them out\n"
    )


def test_state_of_a_command_is_its_own(bellhop: Bellhop, tmp_path: Path) -> None:
    """`bellhop apply --state DIR` works as `bellhop --state DIR apply` does."""
    manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
    bellhop("apply", "-f", "-", "--state", str(tmp_path / "one"), stdin=manifest)
    bellhop("--state", str(tmp_path / "two"), "apply", "-f", "-", stdin=manifest)

    assert (tmp_path / "one" / "key").exists()
    assert (tmp_path / "two" / "key").exists()


def test_context_of_a_command_is_its_own(bellhop: Bellhop, tmp_path: Path) -> None:
    """`bellhop apply --context NAME` works as `bellhop --context NAME apply` does."""
    manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
    for name in ("one", "two"):
        bellhop("context", "add", name, "--state", str(tmp_path / name))
    done = bellhop("apply", "-f", "-", "--context", "two", stdin=manifest)
    listed = bellhop("--context", "one", "get", "--context", "two", "configmaps", "-o", "name")

    assert (done.exit_code, listed.stdout) == (0, "configmap/default/a\n")
    assert not (tmp_path / "one" / "key").exists()


@pytest.mark.parametrize(
    "words",
    [
        "dead-letters {} list",
        "label {} cluster --all a=b",
        "annotate {} cluster --all a=b",
        "deregister {} cluster --all",
        "sender {} list",
        "set {} maintenance-window a/b --clear",
        "show {} events",
        "show events {}",
    ],
)
@pytest.mark.parametrize("option", ["--state", "--context"])
def test_names_an_installation_at_any_place(
    bellhop: Bellhop, tmp_path: Path, words: str, option: str
) -> None:
    """Also between a command and the one below it."""
    folder = str(tmp_path / "none")
    bellhop("context", "add", "far", "--state", folder)
    named = {"--state": folder, "--context": "far"}[option]
    result = bellhop(*words.format(f"{option} {named}").split())

    assert result.exit_code == 1
    assert f"there is no state in '{folder}'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(
            ("use", "x"), 1, "cannot use context 'x': no context has this name", id="no such"
        ),
        pytest.param(("add", "x"), 2, "name its folder with --state DIR", id="no state"),
    ],
)
def test_refuses(bellhop: Bellhop, arguments: tuple[str, ...], code: int, said: str) -> None:
    result = bellhop("context", *arguments)

    assert (result.exit_code, said in result.stderr) == (code, True)
    assert len(bellhop("context", "list").stdout.splitlines()) == 2


@pytest.mark.parametrize(
    "text",
    ["a: [", "- a", "contexts: 1", "contexts: [1]", "contexts: [{kind: embedded}]"],
    ids=["no YAML", "a list", "a number", "no mapping", "no name"],
)
def test_says_that_the_file_is_none_of_ours(bellhop: Bellhop, tmp_path: Path, text: str) -> None:
    """A file that was edited badly is named, not overwritten."""
    file = tmp_path / "config" / "bellhop" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    result = bellhop("context", "use", "local")

    assert result.exit_code == 2
    assert f"cannot read '{file}'" in result.stderr
    assert file.read_text() == text


def test_refuses_a_context_of_a_later_release(bellhop: Bellhop, tmp_path: Path) -> None:
    """A file that knows more than this release leads nowhere else."""
    file = tmp_path / "config" / "bellhop" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("current: cloud\ncontexts: [{name: cloud, kind: vax, vax: {a: b}}]\n")
    result = bellhop("get", "clusters", BELLHOP_STATE="")

    assert result.exit_code == 2
    assert "this release cannot talk to an installation of kind 'vax'" in result.stderr
    bellhop("context", "use", "local")
    assert yaml.safe_load(file.read_text())["contexts"][1]["vax"] == {"a": "b"}


@pytest.mark.parametrize(("kind", "library"), [("aws", "botocore"), ("gcp", "google.cloud")])
def test_says_which_extra_a_cloud_needs(kind: str, library: str, tmp_path: Path) -> None:
    """`pip install` without an extra installs no cloud library: one sentence names it."""
    file = tmp_path / "bellhop" / "config.yaml"
    file.parent.mkdir()
    file.write_text(f"current: prod\ncontexts: [{{name: prod, kind: {kind}, {kind}: {{a: b}}}}]\n")
    text = (
        f"import sys; sys.modules['{library}'] = None\n"
        "from bellhop.cli.main import cli; cli.main(['get', 'clusters'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "BELLHOP_STATE": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert (
        "error: cannot open the installation of context 'prod': the Python package" in done.stderr
    )
    assert done.stderr.endswith(
        f"is not installed; install the extra `{kind}` (pip install 'bellhop-fleet[{kind}]')\n"
    )
