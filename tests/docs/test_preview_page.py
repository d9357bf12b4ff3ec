"""The page on previews: its file is applied where a real cluster is served, and it prints that."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from bellhop.cli.main import cli
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.deployment import Action
from infra.lab.cluster import Cluster as LabCluster
from tests.docs.typed import type_page
from tests.waiting import eventually

pytest_plugins = ["tests.kube_fixtures"]

PAGE = (Path(__file__).parents[2] / "docs/how-to/preview-and-roll-back.md").read_text()
FILE = PAGE.partition("```yaml file=web.yaml\n")[2].partition("```")[0]
_PATIENCE_SECONDS = 60.0


@pytest.fixture
def served(
    tmp_path: Path, destination_cluster: LabCluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Serve an installation with one cluster, `fleet/east`, and go to an empty folder."""
    state, settings = tmp_path / "state", Settings()
    monkeypatch.setenv("BELLHOP_STATE", str(state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    with running(state, settings, Log(io.StringIO()), "127.0.0.1", 0):
        opened = open_state(state, settings)
        kubeconfig = sanitise(destination_cluster.kubeconfig(), reach=LOCAL)
        here = opened.installation
        here.secrets.put("kubeconfig/fleet/east", json.dumps(kubeconfig.to_dict()).encode())
        labels = {"env": "test"}
        east = Cluster("fleet", "east", labels, "v1.20", "0" * 64, datetime.now(UTC))
        here.declare.register(east)
        opened.close()
        yield tmp_path


def dry(folder: Path) -> None:
    """Apply the page's file, and wait until its clusters have been asked."""
    (folder / "web.yaml").write_text(FILE)
    assert CliRunner().invoke(cli, ["apply", "-f", "web.yaml"]).exit_code == 0
    eventually(
        "a dry run is shown",
        lambda: "Create" in CliRunner().invoke(cli, ["show", "dryrun"]).stdout,
        patience=_PATIENCE_SECONDS,
    )


def mean(folder: Path) -> None:
    """Apply the page's second file, and wait until its cluster has the objects."""
    (folder / "green.yaml").write_text(PAGE.partition("file=green.yaml\n")[2].partition("```")[0])
    assert CliRunner().invoke(cli, ["apply", "-f", "green.yaml"]).exit_code == 0
    eventually(
        "the profile is deployed",
        lambda: "1/1" in CliRunner().invoke(cli, ["get", "clusterprofiles"]).stdout,
        patience=_PATIENCE_SECONDS,
    )


def test_every_command_prints_what_stands_below_it(served: Path) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    before, _, after = PAGE.partition("```bash\nbellhop apply -f green.yaml\n```")
    dry(served)
    type_page(before.replace("```bash\nbellhop apply -f web.yaml\n```", ""), served)
    mean(served)

    type_page(after, served)


def test_every_action_is_explained() -> None:
    """The table has each word that ACTION may be."""
    assert [each for each in get_args(Action) if f"| `{each}` |" not in PAGE] == []
