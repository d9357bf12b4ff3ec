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
from infra.lab.cluster import Cluster
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile
from tests.unit.deploy.gates.test_rollout import NAMES, phases, rolled_out

CONFIG = GVK("", "v1", "ConfigMap")
HOUR = timedelta(hours=1)
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
    """Thirty of a hundred of six are two: both that refuse keep the places, and are reported."""
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
