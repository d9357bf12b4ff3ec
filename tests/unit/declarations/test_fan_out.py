"""An apply, or a label, publishes messages only for what it affects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.declarations.apply import ManifestWriter
from bellhop.errors import DeniedError
from bellhop.state.messages import Resync
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, source, trigger

made_by = partial(trigger, ref="made")
MADE = holder("made", config(FOR_EACH), annotations=INSTANTIATE)


def count_messages(fleet: Fleet, act: Callable[[], Any]) -> Counter[str]:
    """Count the messages that are worked on because of something, by what they ask."""
    fleet.pump(limit=10**6)
    done: Counter[str] = Counter()
    for name, stage in fleet.stages.items():
        real = stage.handle

        def counting(message: Any, real: Any = real) -> None:
            done[message.do] += 1
            real(message)

        stage.handle = counting  # type: ignore[method-assign]
        assert name
    act()
    fleet.pump(limit=10**6)
    for stage in fleet.stages.values():
        del stage.handle
    return done


@pytest.mark.parametrize("clusters", [3, 12])
def test_a_label_without_a_selector_affects_only_its_cluster(fleet: Fleet, clusters: int) -> None:
    """Whatever the size of the fleet, only profiles of that cluster are rendered."""
    fleet.apply(source(), made_by("one"), made_by("two"), MADE)
    for number in range(clusters):
        kube = fleet.register(f"c{number}", env="production")
        kube.put(service("web"))
        fleet.publisher.publish([Resync(f"fleet/c{number}")])
    found = count_messages(fleet, lambda: fleet.declare.label("fleet/c0", {"colour": "red"}))

    # Both triggers, for all and for the one object; what is applied to it, and no resync.
    assert found == {"instantiate": 4, "apply": 2}


def test_a_label_of_a_cluster_that_nothing_selects_asks_for_nothing(fleet: Fleet) -> None:
    """Profiles of other clusters are not even resolved again."""
    fleet.apply(source(), made_by("one"), MADE)
    fleet.register("east", env="production").put(service("web"))
    fleet.register("west", env="other")
    fleet.publisher.publish([Resync("fleet/east")])

    assert count_messages(fleet, lambda: fleet.declare.label("fleet/west", {"colour": "red"})) == {}


def test_a_label_that_selects_a_destination_places_what_goes_there(fleet: Fleet) -> None:
    """Profiles whose destinations the label changes are placed, others are left unchanged."""
    east = fleet.register("east", env="production")
    west = fleet.register("west")
    fleet.apply(
        source(),
        source("Pod", name="other"),
        made_by("one", more="destinationClusterSelector: {matchLabels: {dep: eng}}"),
        made_by("two", origin="other"),
        MADE,
    )
    east.put(service("web"))
    east.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}})
    fleet.publisher.publish([Resync("fleet/east")])

    found = count_messages(fleet, lambda: fleet.declare.label("fleet/west", {"dep": "eng"}))
    assert west.names() == ["for-web"]
    assert found == {"instantiate": 1, "apply": 1}

    found = count_messages(fleet, lambda: fleet.declare.label("fleet/west", {"dep": None}))
    assert west.objects(CONFIG) == []
    assert found["instantiate"] == 1
    assert east.names() == ["for-p"]


def test_a_label_that_selects_a_source_cluster_has_it_resynced(fleet: Fleet) -> None:
    """A cluster that a trigger selects now is looked at, and its matches are taken up."""
    kube = fleet.register("east", env="test")
    kube.put(service("web"))
    fleet.apply(source(), made_by("one"), MADE)

    found = count_messages(fleet, lambda: fleet.declare.label("fleet/east", {"env": "production"}))

    assert kube.names() == ["for-web"]
    assert found["sweep"] == 1


def test_an_unrelated_source_evaluates_nothing_of_the_others(fleet: Fleet) -> None:
    """Beside many matches of one source, another kind's source costs what it itself matches."""
    kube = fleet.register("east", env="production")
    fleet.apply(source(), made_by("one"), MADE)
    for number in range(50):
        kube.put(service(f"s{number}"))
    fleet.publisher.publish([Resync("fleet/east")])

    found = count_messages(
        fleet, lambda: fleet.apply(source("Pod", name="other"), made_by("two", origin="other"))
    )

    assert found["evaluate"] == 0
    assert found["instantiate"] <= 3


def test_another_trigger_on_a_source_evaluates_nothing(fleet: Fleet) -> None:
    """Its profiles wait for those of the first, which are applied once more to find that out."""
    kube = fleet.register("east", env="production")
    fleet.apply(source(), made_by("one"), MADE)
    for number in range(5):
        kube.put(service(f"s{number}"))
    fleet.publisher.publish([Resync("fleet/east")])

    found = count_messages(fleet, lambda: fleet.apply(made_by("two")))

    assert found == {"instantiate": 6, "apply": 10}


def test_a_denied_kind_has_no_other_kind_evaluated_in_full(fleet: Fleet) -> None:
    """Resyncs go on evaluating only what changed of the kinds that can be listed."""

    class Partly(FakeKube):
        def page(self, gvk: GVK, **more: Any) -> Any:
            if gvk.kind == "Secret":
                raise DeniedError("secrets is forbidden")
            return super().page(gvk, **more)

    kube = fleet.access.clusters["fleet/east"] = Partly("fleet/east")
    fleet.register("east", env="production")
    fleet.apply(
        source(),
        source("Secret", name="secrets"),
        made_by("one"),
        made_by("two", origin="secrets"),
        MADE,
    )
    for number in range(20):
        kube.put(service(f"s{number}"))
    for _ in range(2):
        count_messages(fleet, lambda: fleet.publisher.publish([Resync("fleet/east")]))

    found = count_messages(fleet, lambda: fleet.publisher.publish([Resync("fleet/east")]))

    assert found["evaluate"] == 0
    assert "secrets is forbidden" in fleet.records.health.get("fleet/east").value.message


def test_what_follows_is_published_in_pages(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A declaration that touches many clusters holds no more than a page of messages at a time."""
    pages: list[int] = []

    class Counting(type(fleet.publisher)):  # type: ignore[misc]
        def publish(self, messages: Any) -> None:
            found = list(messages)
            pages.append(len(found))
            super().publish(found)

    monkeypatch.setattr("bellhop.declarations.fan_out._PAGE", 7)
    for number in range(20):
        fleet.register(f"c{number:02}", env="production")
    fleet.pump(limit=10**6)
    fleet.declare = ManifestWriter(
        fleet.records, fleet.catalogs, Counting(fleet.queues), fleet.settings
    )

    found = count_messages(fleet, lambda: fleet.apply(source(), made_by("one"), MADE))

    assert max(pages) == 7
    assert sum(pages) == 40
    assert found["sweep"] == 20
    assert found["instantiate"] >= 20
