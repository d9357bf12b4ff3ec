"""How add-ons come to clusters that are real API servers: in steps, not while paused, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.errors import MissingError
from bellhop.fleet.pausing import mark, pausable
from bellhop.fleet.rollback import history, rollback, undo
from bellhop.model.gvk import GVK, ObjectKey
from bellhop.model.kubeconfig import sanitise
from bellhop.model.marks import TRIGGER_PAUSED
from bellhop.model.reach import HERE
from infra.lab.cluster import Cluster
from tests.contract.test_preview_api_server import EAST, fleet, kube  # noqa: F401 - fixtures
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.unit.stages.test_turns import NAMES, phases, rolled_out

# ruff: noqa: F811 - fixtures

pytest_plugins = ["tests.kube_fixtures"]

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
        kubeconfig = sanitise(server.kubeconfig(), reach=HERE)
        found[name] = KubeClient(f"fleet/{name}", kubeconfig, reach=HERE)
    yield found
    for each in found.values():
        each.close()


@pytest.fixture
def many(tmp_path: Path, six: dict[str, KubeClient]) -> Iterator[Fleet]:
    """An installation that knows six clusters."""
    one = Fleet(tmp_path)
    for name, client in six.items():
        one.access.clusters[f"fleet/{name}"] = client  # type: ignore[assignment]
        one.register(name, env="production")
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


# What triggers make -----------------------------------------------------------------------------


def brings(v: str) -> str:
    """Return what the trigger brings for each order."""
    text = config(FOR_EACH, f"v: '{v}-{{{{ .Resource.data.of }}}}'", namespace="made")
    return holder("made", text, annotations=INSTANTIATE)


def orders(v: str) -> str:
    """Return rules that bring a ConfigMap for each order."""
    selected = ", labelFilters: [{key: order, operation: Equal, value: 'yes'}]"
    return join(source("ConfigMap", more=selected), trigger(), brings(v))


def order(fleet: Fleet, kube: KubeClient, name: str, of: str) -> None:
    """Have somebody write an order, and the cluster ring."""
    metadata = {"name": name, "namespace": "default", "labels": {"order": "yes"}}
    written = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"of": of}}
    assert fleet.send("east", {"object": kube.apply(written)}).status == 200
    fleet.pump()


def cancel(fleet: Fleet, kube: KubeClient, name: str) -> None:
    """Have somebody delete an order, and the cluster ring."""
    there = kube.get(CONFIG, "default", name)
    assert there
    kube.remove(CONFIG, "default", name)
    metadata = there["metadata"]
    gone = {"uid": metadata["uid"], "version": int(metadata["resourceVersion"])}
    key = str(ObjectKey(CONFIG, "default", name))
    assert fleet.send("east", {"gone": {"key": key, **gone}}).status == 200
    fleet.pump()


def made(kube: KubeClient) -> dict[str, str]:
    there = kube.list(CONFIG, namespace="made", labels="projectsveltos.io/reason=Resources")
    return {each["metadata"]["name"]: each["data"]["v"] for each in there}


def declare(fleet: Fleet, text: str) -> None:
    fleet.apply(text)
    fleet.pump()


def generated(fleet: Fleet) -> str:
    """Name the profile that the trigger made."""
    (found,) = fleet.records.profiles.of("made")
    return found.name


def by_command(fleet: Fleet, *, paused: bool) -> None:
    """Pause the trigger, or resume it, as `bellhop pause trigger` does."""
    here = fleet.installation()
    assert mark(here, pausable(here, "made", ""), "true" if paused else None) == "configured"


def by_annotation(fleet: Fleet, *, paused: bool) -> None:
    """Apply the trigger with the annotation, or without."""
    annotated = f"{{name: made, annotations: {{{TRIGGER_PAUSED}: ''}}}}"
    fleet.apply(trigger().replace("{name: made}", annotated) if paused else trigger())


@pytest.mark.parametrize("pause", [by_command, by_annotation])
def test_what_a_paused_trigger_brought_stays_until_it_is_resumed(
    fleet: Fleet, kube: KubeClient, pause: Callable[..., None]
) -> None:
    """No order makes, changes or ends anything meanwhile; then all is as orders are."""
    declare(fleet, orders("1"))
    for name in ("kept", "ended", "changed"):
        order(fleet, kube, name, "first")
    before = {f"for-{name}": "1-first" for name in ("kept", "ended", "changed")}
    assert made(kube) == before

    pause(fleet, paused=True)
    declare(fleet, brings("2"))
    cancel(fleet, kube, "ended")
    order(fleet, kube, "changed", "second")
    order(fleet, kube, "new", "first")
    assert made(kube) == before

    pause(fleet, paused=False)
    fleet.pump()
    assert made(kube) == {"for-kept": "2-first", "for-changed": "2-second", "for-new": "2-first"}


def test_what_a_trigger_made_goes_back_and_stays(fleet: Fleet, kube: KubeClient) -> None:
    """To what was before or to a number, whatever is declared or rings; undone, all follows."""
    for v in "123":
        declare(fleet, orders(v))
        order(fleet, kube, "one", "first")
    assert made(kube) == {"for-one": "3-first"}
    here, name = fleet.installation(), generated(fleet)

    rollback(here, name)
    fleet.pump()
    assert made(kube) == {"for-one": "2-first"}
    rollback(here, name, 1)
    fleet.pump()
    assert made(kube) == {"for-one": "1-first"}
    assert [each.number for each in history(here, name) if each.pinned] == [1]
    order(fleet, kube, "one", "second")
    declare(fleet, orders("4"))
    assert made(kube) == {"for-one": "1-first"}
    with pytest.raises(MissingError, match="to revision 9: kept are 2, 3; `bellhop history"):
        rollback(here, name, 9)

    undo(here, name)
    fleet.pump()
    assert made(kube) == {"for-one": "4-second"}
    cancel(fleet, kube, "one")
    assert made(kube) == {}


def test_what_goes_back_and_is_refused_says_so(fleet: Fleet, kube: KubeClient) -> None:
    """What an older revision brought may be refused by now: what is there stays, and is told."""
    for v in "12":
        declare(fleet, orders(v))
        order(fleet, kube, "one", "first")
    kube.merge(CONFIG, "made", "for-one", {"immutable": True})

    rollback(fleet.installation(), generated(fleet))
    fleet.pump()

    assert made(kube) == {"for-one": "2-first"}
    kept = fleet.records.outcomes.get(EAST, generated(fleet))
    assert kept
    assert kept.value.phase == "Failed"
    assert "field is immutable when `immutable` is set" in kept.value.message
