"""The page on ownership: its files are applied where somebody has made the object before."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.cli.main import cli
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from infra.lab.cluster import Cluster
from tests.docs.test_preview_page import served as served  # noqa: PLC0414 - a fixture
from tests.docs.typed import type_page
from tests.waiting import eventually

pytest_plugins = ["tests.kube_fixtures"]

PAGE = (Path(__file__).parents[2] / "docs/explanation/ownership-and-conflicts.md").read_text()
FIRST, SECOND = PAGE.split("With the annotation on it")
_PATIENCE_SECONDS = 60.0


def theirs(cluster: Cluster) -> None:
    """Make the object as `kubectl create` does."""
    client = KubeClient("fleet/east", sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    metadata = {"name": "colours"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"sky": "grey"}}
    path, query = "/api/v1/namespaces/default/configmaps", {"fieldManager": "kubectl-create"}
    client._transport.send(Request("POST", path, query, body), Call("fleet/east", "make one"))
    client.close()


def apply(page: str, folder: Path, said: str) -> None:
    """Apply a part's file, and wait until its cluster has been asked."""
    name, _, text = page.partition("```yaml file=")[2].partition("\n")
    (folder / name).write_text(text.partition("```")[0])
    assert CliRunner().invoke(cli, ["apply", "-f", name]).exit_code == 0
    eventually(
        said,
        lambda: said in CliRunner().invoke(cli, ["show", "dryrun"]).stdout,
        patience=_PATIENCE_SECONDS,
    )


def test_every_command_prints_what_stands_below_it(
    served: Path, destination_cluster: Cluster
) -> None:
    """A reader whose cluster has the object already sees what the page shows."""
    theirs(destination_cluster)

    apply(FIRST, served, "Conflict")
    type_page(FIRST, served)
    apply(SECOND, served, "Adopt")
    type_page(SECOND, served)
