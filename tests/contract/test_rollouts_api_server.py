"""Which of several real API servers a profile goes to, and how many of them at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.operations.pause import open_in
from infra.lab.cluster import Cluster
from tests.contract.test_triggers_api_server import order, orders
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile, trigger
from tests.unit.stages.test_turns import NAMES, phases, rolled_out

pytest_plugins = ["tests.kube_fixtures"]

CONFIG = GVK("", "v1", "ConfigMap")
HOUR = timedelta(hours=1)
ALL = "{matchLabels: {env: production}}"
OF_ITS_OWN = "own-{{ .Cluster.metadata.name }}"
"""A name by which one API server may be several clusters."""


@pytest.fixture
def six(source_cluster: Cluster, destination_cluster: Cluster) -> Iterator[dict[str, KubeClient]]:
    """Six registered clusters, which are two API servers, by their names."""
    found = {}
    for number, name in enumerate(NAMES):
        server = (source_cluster, destination_cluster)[number % 2]
        kubeconfig = sanitise(server.kubeconfig(), reach=LOCAL)
        found[name] = KubeClient(f"fleet/{name}", kubeconfig, reach=LOCAL)
    yield found
    for each in found.values():
        each.close()


@pytest.fixture
def many(tmp_path: Path, six: dict[str, KubeClient]) -> Iterator[Fleet]:
    """An installation that knows six clusters."""
    one = Fleet(tmp_path)
    for name, client in six.items():
        one.access.clusters[f"fleet/{name}"] = client  # type: ignore[assignment]
        one.register(name, env="production", zone="a" if name in ("c0", "c1") else "b")
    yield one
    one.close()


def rolls(fleet: Fleet, v: str) -> None:
    """Apply a revision that goes to a third of the clusters at a time."""
    text = config(OF_ITS_OWN, f"v: '{v}'")
    rendered = "projectsveltos.io/template: ok"
    fleet.apply(join(profile(more="maxUpdate: 30%"), holder("own", text, annotations=rendered)))
    fleet.pump()


def own(six: dict[str, KubeClient], name: str) -> dict[str, Any]:
    found = six[name].get(CONFIG, "default", f"own-{name}")
    assert found
    return found


def have(six: dict[str, KubeClient], v: str) -> list[str]:
    return [name for name in six if own(six, name)["data"] == {"v": v}]


def freeze(six: dict[str, KubeClient], name: str) -> None:
    """Have a colleague forbid that what a cluster has is changed."""
    assert six[name].merge(CONFIG, "default", f"own-{name}", {"immutable": True})


def test_a_share_of_the_clusters_changes_until_so_many_refuse(
    many: Fleet, six: dict[str, KubeClient]
) -> None:
    """Thirty of a hundred of six are two: both that refuse keep the places, and are told."""
    rolls(many, "1")
    assert have(six, "1") == NAMES
    assert rolled_out(many) == "6 updated, 0 updating, 0 failed, 0 waiting; 2 at a time"
    for name in ("c0", "c3"):
        freeze(six, name)

    rolls(many, "2")
    assert have(six, "2") == ["c1", "c2"]
    assert rolled_out(many) == "2 updated, 0 updating, 2 failed, 2 waiting; 2 at a time"
    assert phases(many) == {
        "c0": "Invalid",
        "c1": "Provisioned",
        "c2": "Provisioned",
        "c3": "Invalid",
        "c4": "Queued",
        "c5": "Queued",
    }
    refused = many.records.outcomes.get("fleet/c3", "own")
    assert refused
    assert "field is immutable when `immutable` is set" in refused.value.message

    six["c3"].remove(CONFIG, "default", "own-c3")
    many.clock.advance(HOUR)
    many.pump()
    assert have(six, "2") == NAMES[1:]
    assert rolled_out(many) == "5 updated, 0 updating, 1 failed, 0 waiting; 2 at a time"


SETS = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterSet
metadata: {name: pair}
spec: {clusterSelector: {matchLabels: {zone: b}}, maxReplicas: 2}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: Set
metadata: {name: one, namespace: fleet}
spec: {clusterSelector: {matchLabels: {zone: a}}, maxReplicas: 1}
"""
BY_LABELS = "clusterSelector: {matchLabels: {zone: a}}"
BY_EXPRESSIONS = """clusterSelector:
    matchExpressions: [{key: zone, operator: NotIn, values: [a]}]"""
SELECTIONS = {
    BY_LABELS: "c0 c1",
    "setRefs: [none]": "",
    BY_EXPRESSIONS: "c2 c3 c4 c5",
    "clusterRefs: [{namespace: fleet, name: c3, kind: SveltosCluster}]": "c3",
    "setRefs: [pair]": "c2 c3",
    f"{BY_LABELS}\n  setRefs: [pair]": "c0 c1 c2 c3",
}


def selecting(selected: str, namespace: str = "") -> str:
    """Return a profile for some clusters, and what it brings to each."""
    place = namespace or "default"
    text = profile(selected, namespace=namespace)
    rendered = "projectsveltos.io/template: ok"
    own = holder("own", config(OF_ITS_OWN, "v: '1'"), annotations=rendered, namespace=place)
    return join(text.replace("namespace: default}", f"namespace: {place}}}"), own)


def test_each_way_of_selection_reaches_its_clusters(
    many: Fleet, six: dict[str, KubeClient]
) -> None:
    """And no other: those that are selected no more lose what they had."""
    many.apply(SETS)
    for selected, expected in SELECTIONS.items():
        many.apply(selecting(selected))
        # They are all that some clusters have.
        many.release()
        many.pump()
        assert reached(six) == expected.split(), selected


def test_a_profile_with_a_namespace_reaches_the_clusters_of_that_alone(
    many: Fleet, six: dict[str, KubeClient]
) -> None:
    """By labels, and by the Sets that lie there."""
    many.apply(SETS, selecting(BY_LABELS, "team"))
    many.pump()
    assert reached(six) == []
    for selected, expected in ((BY_LABELS, "c0 c1"), ("setRefs: [one]", "c0")):
        many.apply(selecting(selected, "fleet"))
        many.pump()
        assert reached(six) == expected.split(), selected


def reached(six: dict[str, KubeClient]) -> list[str]:
    return [name for name in six if six[name].get(CONFIG, "default", f"own-{name}")]


def test_a_trigger_goes_to_so_many_clusters_at_a_time(
    many: Fleet, six: dict[str, KubeClient]
) -> None:
    """What one event brings to six clusters stops at the two that refuse it.

    It takes seconds: two revisions are rolled out to six clusters, on two API servers.
    """
    goes = trigger(more=f"destinationClusterSelector: {ALL}\n  maxUpdate: 30%")
    text = config(OF_ITS_OWN, "v: '1'")
    later = "projectsveltos.io/template: ok"
    many.apply(join(orders("1"), goes, holder("made", text, annotations=later)))
    order(many, six["c0"], "one", "first", cluster="c0")
    assert have(six, "1") == NAMES
    for name in ("c0", "c3"):
        freeze(six, name)

    many.apply(holder("made", text.replace("'1'", "'2'"), annotations=later))
    many.pump()
    assert have(six, "2") == ["c1", "c2"]


def test_a_cluster_changes_within_its_window(many: Fleet, six: dict[str, KubeClient]) -> None:
    """Others do meanwhile, and a share of them at a time; what waits says until when.

    It takes seconds: two revisions are rolled out to six clusters, on two API servers.
    """
    here = many.installation()
    open_in(here, "fleet/c0", "0 20 * * *", "0 22 * * *")
    rolls(many, "1")
    assert reached(six) == NAMES[1:]
    kept = many.records.outcomes.get("fleet/c0", "own")
    assert kept
    assert kept.value.message.endswith(
        "until 2026-01-01 20:00 UTC, when its maintenance window opens"
    )

    many.clock.advance(timedelta(hours=8, minutes=1))
    many.pump()
    assert have(six, "1") == NAMES
    many.clock.advance(timedelta(hours=2))
    rolls(many, "2")
    assert have(six, "2") == NAMES[1:]
