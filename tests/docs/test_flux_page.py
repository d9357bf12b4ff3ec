"""The page on Flux and URLs: its manifests are applied, and its commands run."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from bellhop.cli.main import cli
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs/how-to/deploy-from-flux-and-urls.md").read_text()
_YAML = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)
_OURS = {"ClusterProfile", "Secret"}


def test_what_it_shows_is_applied_and_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster is registered, so nothing is downloaded."""
    state = tmp_path / "state"
    monkeypatch.setenv("BELLHOP_STATE", str(state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    manifests = [each for each in _YAML.findall(PAGE) if yaml.safe_load(each)["kind"] in _OURS]
    (tmp_path / "page.yaml").write_text("---\n".join(manifests))
    register, *typed = [
        shlex.split(line)[1:] for line in PAGE.splitlines() if line.startswith("    bellhop ")
    ]
    assert typed

    with running(state, Settings(), Log(io.StringIO()), "127.0.0.1", 0):
        for arguments in (["apply", "-f", str(tmp_path / "page.yaml")], *typed):
            result = CliRunner().invoke(cli, arguments)
            assert result.exit_code == 0, result.output

    group = cli.get_command(click.Context(cli), register[0])
    assert isinstance(group, click.Group)
    command = group.get_command(click.Context(group), register[1])
    assert command
    (tmp_path / "flux.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert "mgmt/mgmt" in command.make_context("cluster", register[2:]).params.values()
