"""What becomes of what triggers make in a real cluster: kept, left, taken back, refused, tried."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.cli.views.reports import VIEWS
from bellhop.cli.views.view import Query
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.sveltos_annotations import TRIGGER_PAUSED
from bellhop.errors import MissingError
from bellhop.operations.pause import mark, pausable
from bellhop.operations.previews import noted
from bellhop.operations.rollback import history, rollback, undo
from bellhop.state.management_cluster import MANAGEMENT
from infra.lab.cluster import Cluster
from tests.contract.test_preview_api_server import (  # noqa: F401 - fixtures
    EAST,
    fleet,
    kube,
    told,
)
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.unit.stages.test_handling import with_refs

# ruff: noqa: F811 - fixtures

pytest_plugins = ["tests.kube_fixtures"]

CONFIG = GVK("", "v1", "ConfigMap")
HOUR = timedelta(hours=1)


def brings(v: str) -> str:
    """Return what the trigger brings for each order."""
    text = config(FOR_EACH, f"v: '{v}-{{{{ .Resource.data.of }}}}'", namespace="made")
    return holder("made", text, annotations=INSTANTIATE)


def orders(v: str) -> str:
    """Return rules that bring a ConfigMap for each order."""
    selected = ", labelFilters: [{key: order, operation: Equal, value: 'yes'}]"
    return join(source("ConfigMap", more=selected), trigger(), brings(v))


def order(fleet: Fleet, kube: KubeClient, name: str, of: str, *, cluster: str = "east") -> None:
    """Have somebody write an order, and the cluster ring."""
    metadata = {"name": name, "namespace": "default", "labels": {"order": "yes"}}
    written = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"of": of}}
    assert fleet.send(cluster, {"object": kube.apply(written)}).status == 200
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


def test_what_is_left_by_word_stays_as_it_is(fleet: Fleet, kube: KubeClient) -> None:
    """Where its trigger says so: an order that is cancelled leaves what it brought, unmarked."""
    leaving = trigger(more="stopMatchingBehavior: LeavePolicies")
    declare(fleet, join(orders("1"), leaving))
    order(fleet, kube, "one", "first")
    before = kube.get(CONFIG, "made", "for-one")
    assert before

    cancel(fleet, kube, "one")

    assert made(kube) == {}
    left = kube.get(CONFIG, "made", "for-one")
    assert left
    assert (left["metadata"]["uid"], left["data"]) == (before["metadata"]["uid"], before["data"])
    assert list(left["metadata"]["annotations"]) == ["bellhop.dev/made-by"]


def test_a_document_that_fails_brings_nothing_of_its_event(fleet: Fleet, kube: KubeClient) -> None:
    """Nor half of it; the report says which document, key and line, and what was there stays."""
    two = with_refs(trigger(), "tier: 100", "tier: 50").replace("name: own", "name: made")
    good, bad = brings("1"), "v: '{{ .Resource.data.nothing }}'"
    text = "# One line,\n# and another.\n" + config("other", bad, namespace="made")
    other = holder("made1", text, annotations=INSTANTIATE)
    declare(fleet, join(orders("1"), two, good, other))
    order(fleet, kube, "one", "first")
    assert made(kube) == {}
    said = report(fleet)["failureMessage"]
    assert "default/made1/main.yaml:6:" in said
    assert 'map has no entry for key "nothing"' in said

    declare(fleet, holder("made1", config("other", "v: '1'", namespace="made")))
    assert made(kube) == {"for-one": "1-first", "other": "1"}
    assert "failureMessage" not in report(fleet)
    declare(fleet, other)
    assert made(kube) == {"for-one": "1-first", "other": "1"}
    assert "default/made1/main.yaml:6:" in report(fleet)["failureMessage"]


def report(fleet: Fleet) -> dict[str, Any]:
    """Return the status of the one report, as `get eventreports -o yaml` has it."""
    (found,) = VIEWS["eventreport"].manifests(fleet.installation(), Query())
    status: dict[str, Any] = found["status"]
    return status


def fixed(v: str) -> str:
    return config("one", f"v: '{v}'", namespace="made") + "immutable: true\n"


def test_the_refs_of_a_trigger_count_as_those_of_a_profile(fleet: Fleet, kube: KubeClient) -> None:
    """By tier, by force and where a namespace is not to be made; Sveltos loses them on the way."""
    refs = with_refs(trigger(), "tier: 100", "tier: 50, force: true", "skipNamespaceCreation: true")
    lower, forced, apart = (f"own{number or ''}" for number in range(3))
    rules = join(orders("1"), refs, holder(lower, config("one", "v: lower", namespace="made")))
    declare(fleet, join(rules, holder(forced, fixed("1")), holder(apart)))
    order(fleet, kube, "any", "first")
    declare(fleet, holder(forced, fixed("2")))
    assert made(kube) == {"one": "2"}

    declare(fleet, holder(apart, config("apart", "v: '1'", namespace="shop")))
    kept = fleet.records.outcomes.get(EAST, generated(fleet))
    assert kept
    assert "namespace 'shop' is not there; create it first" in kept.value.message


CHECK = """preDeployChecks:
  - {name: ground, featureID: Resources, group: "", version: v1, kind: Namespace,
     labelFilters: [{key: ready, operation: Equal, value: 'yes'}]}
"""


def test_a_trigger_is_tried_dry_then_waits_for_its_ground(fleet: Fleet, kube: KubeClient) -> None:
    """By its syncMode and its checks, as a profile: nothing is written before both let it."""
    declare(fleet, join(orders("1"), trigger(more="syncMode: DryRun")))
    order(fleet, kube, "one", "first")
    assert told(noted(fleet.installation())) == {"for-one": "Create"}
    assert made(kube) == {}

    declare(fleet, trigger(more=CHECK))
    kept = fleet.records.outcomes.get(EAST, generated(fleet))
    assert kept
    assert kept.value.message.startswith("waits for check 'ground': there is no Namespace with")
    assert made(kube) == {}

    labels = {"metadata": {"labels": {"ready": "yes"}}}
    assert kube.merge(GVK("", "v1", "Namespace"), "", "kube-public", labels)
    fleet.clock.advance(HOUR)
    fleet.pump()
    assert made(kube) == {"for-one": "1-first"}


def test_what_is_local_comes_to_the_cluster_for_all_others(
    fleet: Fleet, kube: KubeClient, destination_cluster: Cluster
) -> None:
    """Once one is registered as that, which is told; it goes with its order."""
    kubeconfig = sanitise(destination_cluster.kubeconfig(), reach=LOCAL)
    host = KubeClient(MANAGEMENT, kubeconfig, reach=LOCAL)
    declare(fleet, join(orders("1"), with_refs(trigger(), "deploymentType: Local")))
    declare(fleet, brings("1").replace("name: made,", "name: own,"))
    order(fleet, kube, "one", "first")
    kept = fleet.records.outcomes.get(EAST, generated(fleet))
    assert kept
    assert "no cluster is registered as 'mgmt/mgmt'" in kept.value.message

    fleet.access.clusters[MANAGEMENT] = host  # type: ignore[assignment]
    rig.register_host(fleet)
    fleet.pump()
    assert (made(kube), made(host)) == ({}, {"for-one": "1-first"})
    cancel(fleet, kube, "one")
    assert made(host) == {}
    host.close()
