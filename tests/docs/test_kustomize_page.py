"""The page on kustomizations: its files are packed as it says, and build what it says."""

from __future__ import annotations

import base64
import io
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from bellhop.adapters.kustomize.kustomizations import KubectlKustomizations
from bellhop.cli.main import cli
from bellhop.documents.tarball import unpack
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from tests.unit.adapters.kustomize.conftest import kubectl  # noqa: F401 - a fixture

PAGE = (Path(__file__).parents[2] / "docs/how-to/kustomize-and-patches.md").read_text()
_FILE = re.compile(r"^```yaml file=(\S+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_TYPED = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.usefixtures("kubectl")
def test_a_folder_is_packed_applied_and_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who saves the files and types the commands has what the page promises."""
    state, settings = tmp_path / "state", Settings()
    monkeypatch.setenv("BELLHOP_STATE", str(state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    for path, text in _FILE.findall(PAGE):
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    with running(state, settings, Log(io.StringIO()), "127.0.0.1", 0):
        lines = [line for block in _TYPED.findall(PAGE) for line in block.splitlines()]
        for line in lines:
            if line.startswith("bellhop"):
                result = CliRunner().invoke(cli, line.split()[1:])
                assert result.exit_code == 0, result.output
            else:
                subprocess.run(["/bin/bash", "-c", line], check=True)
        opened = open_state(state, settings)
        kept = opened.installation.records.manifests.get("ConfigMap", "default", "web-folder")
        opened.close()

    assert kept
    packed = base64.b64decode(kept.value["binaryData"]["kustomize.tar.gz"])
    folder = unpack({"kustomize.tar.gz": packed})
    built = KubectlKustomizations().build(folder, "production", namespace="web")
    (made,) = yaml.safe_load_all(built)
    assert made["metadata"] == {"name": "production-settings", "namespace": "web"}
