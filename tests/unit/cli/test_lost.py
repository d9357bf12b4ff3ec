"""Commands after a payload was lost, as on a disk that failed."""

from __future__ import annotations

import shutil
from pathlib import Path
from secrets import token_hex

import pytest

from tests.unit.cli.conftest import Bellhop

LARGE = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: large
  namespace: default
data:
  text: "{text}"
"""


@pytest.fixture
def manifest(bellhop: Bellhop, state: Path, tmp_path: Path) -> Path:
    """A file whose ConfigMap was applied, and whose payload is lost."""
    path = tmp_path / "large.yaml"
    path.write_text(LARGE.format(text=token_hex(200_000)))
    assert bellhop("apply", "-f", str(path)).exit_code == 0
    assert list((state / "blobs").iterdir())
    shutil.rmtree(state / "blobs")
    return path


def test_what_was_lost_is_named(bellhop: Bellhop, manifest: Path) -> None:
    """`show failures` says which manifest, and what to do."""
    assert manifest.exists()
    said = " ".join(bellhop("show", "failures", "-o", "json").stdout.split())

    assert "ConfigMap default/large" in said
    assert "what was declared is lost; apply it again, or delete it" in said


@pytest.mark.usefixtures("served")
def test_what_was_lost_is_applied_again(bellhop: Bellhop, manifest: Path) -> None:
    """The file that is still there is the cure."""
    assert bellhop("apply", "-f", str(manifest)).exit_code == 0

    assert bellhop("show", "failures", "-o", "json").stdout == "[]\n"
    assert "large" in bellhop("get", "configmaps").stdout


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("by", ["file", "name"])
def test_what_was_lost_is_deleted(bellhop: Bellhop, manifest: Path, by: str) -> None:
    asked = ("-f", str(manifest)) if by == "file" else ("configmap", "large", "-n", "default")

    assert bellhop("delete", *asked).exit_code == 0
    assert bellhop("get", "configmaps", "-o", "json").stdout.count("large") == 0
    assert bellhop("show", "failures", "-o", "yaml").stdout == "[]\n"
