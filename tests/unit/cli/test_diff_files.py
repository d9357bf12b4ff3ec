"""`bellhop diff -f`: what `bellhop apply` would change, with kubectl's exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from bellhop.installation.installation import Installation

Bellhop = Callable[..., Result]

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {v: '1'}\n"
SECRET = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: two}\n"
    "stringData: {same: hunter1, other: hunter2}\n"
)
PRUNE = ("--applyset", "fleet", "--prune")


def test_shows_nothing_where_nothing_differs(bellhop: Bellhop) -> None:
    """The order of keys is no difference, and the command says that there is none."""
    bellhop("apply", "-f", "-", stdin=MAP + "---\n" + SECRET)
    turned = "kind: ConfigMap\nmetadata: {name: one}\ndata: {v: '1'}\napiVersion: v1\n"
    result = bellhop("diff", "-f", "-", stdin=turned + "---\n" + SECRET)

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Nothing would change.\n"


def test_shows_what_differs(bellhop: Bellhop, here: Installation) -> None:
    """Line by line, as diff -u does; nothing is changed."""
    bellhop("apply", "-f", "-", stdin=MAP)
    new = MAP.replace("'1'", "'2'") + "---\n" + MAP.replace("one", "three")
    result = bellhop("diff", "-f", "-", stdin=new)

    assert result.exit_code == 1
    assert result.stdout == (
        "--- stored ConfigMap default/one\n"
        "+++ files ConfigMap default/one\n"
        "@@ -1,6 +1,6 @@\n"
        " apiVersion: v1\n"
        " data:\n"
        '-  v: "1"\n'
        '+  v: "2"\n'
        " kind: ConfigMap\n"
        " metadata:\n"
        "   name: one\n"
        "--- stored ConfigMap default/three\n"
        "+++ files ConfigMap default/three\n"
        "@@ -0,0 +1,6 @@\n"
        "+apiVersion: v1\n"
        "+data:\n"
        '+  v: "1"\n'
        "+kind: ConfigMap\n"
        "+metadata:\n"
        "+  name: three\n"
    )
    assert [each["data"] for each in here.records.manifests.of("ConfigMap")] == [{"v": "1"}]


def test_shows_what_would_be_pruned(bellhop: Bellhop) -> None:
    """For people and for programs."""
    bellhop("apply", "-f", "-", *PRUNE, stdin=MAP + "---\n" + SECRET)
    shown = bellhop("diff", "-f", "-", *PRUNE, stdin=SECRET)
    rows = bellhop("diff", "-f", "-", *PRUNE, "-o", "json", stdin=SECRET)

    assert shown.exit_code == rows.exit_code == 1
    assert shown.stdout.startswith("--- stored ConfigMap default/one\n")
    assert "\n-  name: one\n" in shown.stdout
    [row] = json.loads(rows.stdout)
    assert (row["kind"], row["namespace"], row["name"]) == ("ConfigMap", "default", "one")
    assert (row["change"], row["diff"]) == ("pruned", shown.stdout.rstrip("\n"))


def test_hides_what_secrets_hold(bellhop: Bellhop) -> None:
    """It says which values differ, and shows none of them."""
    bellhop("apply", "-f", "-", stdin=SECRET)
    result = bellhop("diff", "-f", "-", stdin=SECRET.replace("hunter2", "hunter3"))

    assert result.exit_code == 1
    assert "-  other: <hidden> (before)\n+  other: <hidden> (after)\n" in result.stdout
    assert "  same: <hidden>\n" in result.stdout
    assert "hunter" not in result.output


def test_names_what_is_only_written_differently(bellhop: Bellhop) -> None:
    """The exit code says that it differs, and so there is something to be seen."""
    bellhop("apply", "-f", "-", stdin=SECRET.replace("{same: hunter1, other: hunter2}", "{a: b}"))
    encoded = "apiVersion: v1\nkind: Secret\nmetadata: {name: two}\ndata: {a: Yg==}\n"
    result = bellhop("diff", "-f", "-", stdin=encoded)

    assert result.exit_code == 1
    assert result.stdout == "--- stored Secret default/two\n+++ files Secret default/two\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("-f", "nowhere.yaml"), "there is no such file", id="no file"),
        pytest.param((), "either profiles, or manifests by -f", id="nothing"),
        pytest.param(("web", "-f", "x"), "either profiles, or manifests by -f", id="both"),
        pytest.param(("web", "-R"), "belong to -f", id="recursive"),
        pytest.param(("-f", "-", "--cluster", "a/b"), "in no cluster", id="cluster"),
        pytest.param(("-f", "-", "--applyset", "b"), "it is in applyset 'fleet'", id="other set"),
    ],
)
def test_errors_are_greater_than_one(
    bellhop: Bellhop, arguments: tuple[str, ...], said: str
) -> None:
    """A pipeline does not take a failure for a difference."""
    bellhop("apply", "-f", "-", *PRUNE, stdin=MAP)
    result = bellhop("diff", *arguments, stdin=MAP)

    assert (result.exit_code, said in result.stderr) == (2, True)


def test_an_empty_folder_is_an_error(bellhop: Bellhop, tmp_path: Path) -> None:
    """As it is for apply, unless it is meant."""
    bellhop("apply", "-f", "-", *PRUNE, stdin=MAP)
    (tmp_path / "empty").mkdir()
    refused = bellhop("diff", "-f", str(tmp_path / "empty"), *PRUNE)
    meant = bellhop("diff", "-f", str(tmp_path / "empty"), *PRUNE, "--allow-empty")

    assert (refused.exit_code, meant.exit_code) == (2, 1)
