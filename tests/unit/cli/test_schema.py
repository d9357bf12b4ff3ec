"""`bellhop schema` prints what editors and validators read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Bellhop


@pytest.mark.parametrize("name", ["et", "EventTrigger", "eventtriggers.lib.projectsveltos.io"])
def test_prints_the_newest_version(bellhop: Bellhop, state: Path, name: str) -> None:
    """By each name of the kind, without an installation; --api-version names another version."""
    newest = json.loads(bellhop("schema", name).stdout)["properties"]
    other = "lib.projectsveltos.io/v1alpha1"
    older = json.loads(bellhop("schema", name, "--api-version", other).stdout)["properties"]

    assert newest["kind"]["enum"] == ["EventTrigger", "EventBasedAddOn"]
    assert newest["apiVersion"]["enum"] == ["lib.projectsveltos.io/v1beta1"]
    assert older["apiVersion"]["enum"] == [other]
    assert not state.exists()


def test_writes_files_where_validators_look_for_them(bellhop: Bellhop, tmp_path: Path) -> None:
    """GROUP/KIND_VERSION.json, without a folder for the core group; files are replaced."""
    folder = tmp_path / "schemas"
    bellhop("schema", "cm", "--output-dir", str(folder))
    (folder / "configmap_v1.json").write_text("former")
    result = bellhop("schema", "--output-dir", str(folder))

    assert result.stdout == f"27 files written to {folder}\n"
    written = {str(path.relative_to(folder)): path for path in folder.rglob("*.json")}
    assert len(written) == 27
    assert "lib.projectsveltos.io/eventbasedaddon_v1alpha1.json" in written
    assert json.loads(written["configmap_v1.json"].read_text())["properties"]["data"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["er"], "error: er has no schema: Bellhop writes it, and `apply` refuses it\n"),
        (["eventsorce"], "error: there is no kind 'eventsorce'; did you mean 'eventsource'?\n"),
        (
            ["es", "--api-version", "v1"],
            (
                "error: there is no apiVersion 'v1'; there is lib.projectsveltos.io/v1beta1 and"
                " lib.projectsveltos.io/v1alpha1\n"
            ),
        ),
        (
            ["--output-dir", "/dev/null/schemas"],
            "error: cannot write '/dev/null/schemas': Not a directory\n",
        ),
    ],
)
def test_refuses(bellhop: Bellhop, arguments: list[str], said: str) -> None:
    """Words that no schema has, and a folder that cannot be made."""
    result = bellhop("schema", *arguments)

    assert (result.exit_code, result.stderr) == (2, said)
