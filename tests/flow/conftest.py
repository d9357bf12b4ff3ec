"""A whole installation between two real API servers: whatever serves is a process of its own.

Commands run in this process: Python takes half a second to start one, and there are hundreds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from click.testing import CliRunner

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.adapters.programs.program import cache
from bellhop.cli.main import cli
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.ingest.admission import KNOCKER
from bellhop.ports.kube import Manifest
from bellhop.registration.forwarder_manifests import NAME, WEBHOOK
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.baseline import Baseline
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.kube_fixtures import as_after_boot
from tests.waiting import eventually

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SETTINGS = {
    "BELLHOP_RETRY_LONGEST": "2",
    "BELLHOP_VISIBILITY": "5",
    # It is there for the tests that download it.
    "BELLHOP_HELM": str(cache() / "helm"),
}
HOOKS = ObjectKey(
    GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"), "", NAME
)
SAMPLES = {
    "/api/v1/namespaces": {},
    "/api/v1/namespaces/default/configmaps": {},
    "/api/v1/namespaces/default/services": {"spec": {"ports": [{"port": 80}]}},
}
"""Objects of which a create by a dry run shows whether a webhook is called for their resource."""


class InProcessStand(Stand):
    """A stand whose commands run in this process; `serve` and forwarders have their own."""

    def bellhop(self, *arguments: str, stdin: str = "") -> CompletedProcess[str]:
        """Run a command of the CLI on this installation, whatever comes of it."""
        if arguments[0] == "serve":
            return super().bellhop(*arguments, stdin=stdin)
        done = CliRunner(env=self.environment).invoke(cli, arguments, input=stdin)
        return CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


class Flow:
    """The stand, and the people who work in its two clusters."""

    def __init__(self, stand: Stand, source: Cluster, destination: Cluster) -> None:
        self.stand = stand
        self.source_cluster = source
        self.destination_cluster = destination
        self.source = User(source.kubeconfig())
        self.destination = User(destination.kubeconfig())

    def apply(self, example: str) -> None:
        """Apply an example of the docs and wait until the source cluster sends events for it."""
        self.stand.do("apply", "-f", str(EXAMPLES / example))
        self.stand.settle("fleet/source")
        await_calls(self.source_cluster)

    def wait(self, what: str, done: Callable[[], object]) -> object:
        """Wait until something is so."""
        return eventually(what, done)

    def failures(self) -> str:
        """Return what `bellhop show failures` says, with its lines joined."""
        return " ".join(self.stand.do("show", "failures").split())


def await_calls(cluster: Cluster) -> None:
    """Wait until an API server calls the forwarder for the resources that its webhook names.

    It learns of a webhook configuration a moment after it stored it.
    """
    admin = KubeClient("test", sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    watched = list_watched(admin.get(*HOOKS))
    for path, sample in SAMPLES.items():
        if path.rpartition("/")[2] in watched:
            query = {"fieldManager": KNOCKER, "dryRun": "All"}
            body = {"metadata": {"name": "sample"}, **sample}
            create = Request("POST", path, query, body, warns=True)
            eventually(
                f"a create at {path} calls the forwarder",
                lambda create=create: admin._transport.send(create, Call("test", "try it")),
            )
    admin.close()


def list_watched(configuration: Manifest | None) -> list[str]:
    """List the resources of which a webhook configuration sends every object."""
    hooks = (configuration or {}).get("webhooks") or []
    rules = [rule for each in hooks if WEBHOOK in each["name"] for rule in each["rules"]]
    return sorted(rule["resources"][0] for rule in rules)


@dataclass(frozen=True)
class Registered:
    """An installation that has ended, and its two clusters as they were then."""

    stand: Stand
    clusters: tuple[Cluster, Cluster]
    baselines: tuple[Baseline, Baseline]


@pytest.fixture(scope="session")
def registered(
    tmp_path_factory: pytest.TempPathFactory, two_clusters: tuple[Cluster, Cluster]
) -> Registered:
    """Register both clusters once: each test goes on from there.

    The first test that needs them waits until API servers have booted and know a forwarder.
    """
    source, destination = (as_after_boot(each) for each in two_clusters)
    with Nursery() as nursery:
        stand = InProcessStand(
            tmp_path_factory.mktemp("registered") / "stand", nursery, settings=SETTINGS
        )
        stand.serve()
        stand.register(source, namespace="fleet", labels="env=production")
        stand.register(destination, namespace="fleet", labels="dep=eng", forward=False)
        for name in tuple(stand.processes):
            stand.stop(name)
    return Registered(stand, (source, destination), (source.remember(), destination.remember()))


@pytest.fixture
def flow(tmp_path: Path, registered: Registered) -> Iterator[Flow]:
    """Serve, with both clusters registered, and end every process afterwards."""
    for cluster, baseline in zip(registered.clusters, registered.baselines, strict=True):
        cluster.start()
        cluster.reset(baseline)
    with Nursery() as nursery:
        stand = InProcessStand(tmp_path / "stand", nursery, settings=SETTINGS)
        stand.go_on_from(registered.stand)
        stand.serve()
        stand.forward("source")
        one = Flow(stand, *registered.clusters)
        yield one
        one.source.close()
        one.destination.close()
        stand.close()
