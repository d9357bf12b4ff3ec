"""Two at work at once, and messages that come back late: the end is that of what is declared."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.errors import TemporaryError, UnreachableError
from bellhop.logs import Log
from bellhop.ports.queue import Again, Delivery
from bellhop.state.consumer import Inbox
from bellhop.state.messages import Apply, Evaluate, Instantiate
from tests.fakes.fleet import SERVICE, Fleet
from tests.fakes.hooks import after_next
from tests.fakes.kube import CONFIG, FakeKube
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

WEB = ObjectKey(SERVICE, "default", "web")
V = "v: '{{ .Resource.metadata.labels.v }}'"
DECLARED = join(
    source(more=", selector: {matchLabels: {ring: 'yes'}}"),
    trigger(),
    holder("made", config(FOR_EACH, V), annotations=INSTANTIATE),
)


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    fleet.register("east", env="production")
    fleet.deploy(DECLARED)
    return fleet


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.access.clusters["fleet/east"]


def service(v: str = "1", ring: str = "yes", name: str = "web") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"v": v, "ring": ring}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata}


def made(east: FakeKube) -> dict[str, str]:
    return {each["metadata"]["name"]: each["data"]["v"] for each in east.objects(CONFIG)}


@pytest.mark.parametrize(("inbox", "refusing"), [("evaluate", "deploy"), ("deploy", "apply")])
def test_a_replayed_dead_letter_has_its_effect(
    fleet: Fleet, east: FakeKube, inbox: str, refusing: str
) -> None:
    """Writes whose messages were not published are published a week later."""
    queue = fleet.queues[refusing]
    publish = queue.publish

    def refuse(messages: Any) -> None:
        if messages:
            raise TemporaryError("the disk is full")

    queue.publish = refuse  # type: ignore[method-assign]
    fleet.write("east", service())
    for _ in range(20):
        fleet.pump()
        fleet.clock.advance(timedelta(seconds=61))
    [letter] = fleet.queues[inbox].list()
    queue.publish = publish  # type: ignore[method-assign]
    assert made(east) == {}
    fleet.clock.advance(timedelta(days=7))

    fleet.queues[inbox].replay(letter.id)
    fleet.pump()

    assert made(east) == {"for-web": "1"}


def test_contents_rendered_from_an_older_object_do_not_stay(fleet: Fleet, east: FakeKube) -> None:
    """A worker that stalls after it has rendered writes nothing over what is newer."""
    fleet.write("east", service("1"))
    fleet.pump()

    def newer() -> None:
        fleet.write("east", service("2"))
        fleet.pump()
        assert made(east) == {"for-web": "2"}

    after_next(fleet.instantiation, "_fill", newer)
    fleet.stages["deploy"].handle(Instantiate("made", "fleet/east", str(WEB)))
    fleet.pump()

    assert made(east) == {"for-web": "2"}


@pytest.mark.parametrize("changes", ["the object", "the text"])
def test_contents_that_came_back_do_not_give_way_to_older_ones(
    fleet: Fleet, east: FakeKube, changes: str
) -> None:
    """A newer worker that finds all as it should be, and writes nothing, still wins."""

    def become(v: str) -> None:
        if changes == "the object":
            fleet.write("east", service(v))
        else:
            fleet.apply(DECLARED.replace("{{ .Resource.metadata.labels.v }}", v))

    fleet.write("east", service("1"))
    fleet.pump()
    become("2")
    fleet.drain("evaluate")

    def back() -> None:
        become("1")
        fleet.wait(timedelta(seconds=121))
        assert made(east) == {"for-web": "1"}

    after_next(fleet.instantiation, "_fill", back)
    fleet.stages["deploy"].handle(Instantiate("made", "fleet/east", str(WEB)))
    fleet.pump()

    assert made(east) == {"for-web": "1"}


@pytest.mark.parametrize("before", ["no", "yes"], ids=["nothing matched", "it matched"])
def test_an_older_evaluation_does_not_stay(fleet: Fleet, east: FakeKube, before: str) -> None:
    """A worker that stalls after an evaluation does not restore an ended match."""
    fleet.write("east", service("1", before))
    fleet.pump()
    fleet.write("east", service("2", "yes"))

    def newer() -> None:
        fleet.write("east", service("3", "no"))
        fleet.wait(timedelta(seconds=121))

    after_next(fleet.stages["evaluate"]._sources, "evaluate", newer)
    fleet.pump()

    assert list(fleet.records.matches.of("fleet/east")) == []
    assert made(east) == {}


def test_an_evaluation_by_older_sources_does_not_stay(fleet: Fleet, east: FakeKube) -> None:
    """A worker that stalls after an evaluation does not restore what sources dropped since."""
    fleet.write("east", service())

    def narrower() -> None:
        fleet.apply(DECLARED.replace("ring: 'yes'", "ring: never"))
        fleet.wait(timedelta(seconds=121))

    after_next(fleet.stages["evaluate"]._sources, "evaluate", narrower)
    fleet.pump()

    assert list(fleet.records.matches.of("fleet/east")) == []
    assert made(east) == {}


def test_a_script_without_time_hides_no_evaluation(fleet: Fleet, east: FakeKube) -> None:
    """Of two evaluations of one object the later write has not seen the other."""
    stage: Any = fleet.stages["evaluate"]
    real = stage._sources.evaluate

    def starved(*args: Any) -> Any:
        stage._sources.evaluate = real
        evaluated = real(*args)
        stage.handle(Evaluate("fleet/east", str(WEB)))
        return replace(evaluated, matching=False, error="it took more than a second")

    stage._sources.evaluate = starved
    fleet.write("east", service())
    fleet.pump()

    [match] = fleet.records.matches.of("fleet/east")
    assert (match.matching, match.error) == (True, "")
    assert made(east) == {"for-web": "1"}


def test_every_source_and_every_trigger_is_evaluated(fleet: Fleet, east: FakeKube) -> None:
    """An object may concern several sources, and each of them several triggers."""

    def named(source: str, trigger: str) -> str:
        text = DECLARED.replace("watched", source).replace("name: made", f"name: {trigger}")
        return text.replace("for-", f"{trigger}-")

    fleet.deploy(named("watched", "second"), named("other", "third"), named("other", "fourth"))
    fleet.write("east", service())
    fleet.pump()

    assert set(made(east)) == {"for-web", "second-web", "third-web", "fourth-web"}


def test_a_trigger_for_one_event_reads_only_its_object(fleet: Fleet) -> None:
    """With oneForEvent off an event opens the objects that match, not all of their kind."""
    fleet.deploy(
        DECLARED.replace("oneForEvent: true", "oneForEvent: false")
        .replace("name: made}\nspec", "name: all}\nspec")
        .replace("'for-{{ .Resource.metadata.name }}'", "all")
        .replace("'{{ .Resource.metadata.labels.v }}'", "'{{ len .Resources }}'")
    )
    for number in range(50):
        fleet.write("east", service(ring="no", name=f"other-{number}"))
    fleet.write("east", service())
    fleet.pump()
    opened = []
    real = fleet.records.observations.get

    def noting(cluster: str, key: ObjectKey) -> Any:
        opened.append(key.name)
        return real(cluster, key)

    fleet.records.observations.get = noting  # type: ignore[method-assign]
    fleet.write("east", service("2"))
    fleet.pump()

    assert set(opened) == {"web"}


@pytest.mark.parametrize("worked", [True, False], ids=["after", "before deploy knew"])
def test_a_trigger_created_again_in_another_form_leaves_nothing(
    fleet: Fleet, east: FakeKube, *, worked: bool
) -> None:
    """It is deleted, and created with the other oneForEvent, as the error advises."""
    forms = {
        "true": ("'for-{{ .Resource.metadata.name }}'", "oneForEvent: true"),
        "false": ("all", "oneForEvent: false"),
    }

    def declared(one: str) -> str:
        name, form = forms[one]
        text = DECLARED.replace("oneForEvent: true", form).replace(forms["true"][0], name)
        return text.replace("'{{ .Resource.metadata.labels.v }}'", "x")

    for first, then, there in (("true", "false", ["all"]), ("false", "true", ["for-web"])):
        fleet.delete("EventTrigger", "made")
        fleet.apply(declared(first))
        fleet.write("east", service())
        fleet.pump()
        fleet.declare.delete([("EventTrigger", "", "made")])
        if worked:
            fleet.pump()
        fleet.deploy(declared(then))

        assert east.names() == there
        assert len(list(fleet.records.profiles.heads("made"))) == 1

    fleet.delete("EventTrigger", "made")
    assert east.objects(CONFIG) == []


def test_a_label_does_not_restore_replaced_credentials(fleet: Fleet) -> None:
    """A registration between the label's read and its write stays; the label is set beside it."""
    found = fleet.records.clusters.get("fleet/east")
    assert found
    again = replace(found.value, token_digest=hashlib.sha256(b"new").hexdigest())

    after_next(fleet.records.clusters, "get", lambda: fleet.declare.register(again))
    fleet.declare.label("fleet/east", {"dep": "eng"})
    fleet.pump()

    assert fleet.send("east", token="new").status == 200
    assert fleet.send("east", token="east").status == 401
    now = fleet.records.clusters.get("fleet/east")
    assert now
    assert now.value.labels == {"env": "production", "dep": "eng"}


def test_a_match_of_a_source_deleted_meanwhile_does_not_stay(fleet: Fleet, east: FakeKube) -> None:
    """A worker with an older catalog deletes what it wrote after the deletion."""
    fleet.write("east", service())

    def delete() -> None:
        fleet.declare.delete([("EventSource", "", "watched")])
        fleet.drain("sweep", "deploy", "apply")

    after_next(fleet.stages["evaluate"]._sources, "evaluate", delete)
    fleet.pump()

    assert list(fleet.records.matches.of("fleet/east")) == []
    assert made(east) == {}


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_match_stays_until_its_source_is_noted_for_the_next_resync(
    fleet: Fleet, east: FakeKube, *, comes_back: bool
) -> None:
    """Other workers write the cluster's health while one notes that a source was deleted."""
    fleet.write("east", service())
    health: Any = fleet.records.health
    put = health.put

    def too_late(cluster: str, value: Any, *, expect: Any) -> Any:
        kept = health.get(cluster)
        put(cluster, replace(kept.value, missed=kept.value.missed + 1), expect=kept.token)
        return put(cluster, value, expect=expect)

    def delete() -> None:
        fleet.declare.delete([("EventSource", "", "watched")])
        health.put = too_late

    after_next(fleet.stages["evaluate"]._sources, "evaluate", delete)
    fleet.pump()
    health.put = put
    if comes_back:
        fleet.apply(DECLARED)
    fleet.wait(timedelta(hours=1))

    assert made(east) == ({"for-web": "1"} if comes_back else {})
    assert len(list(fleet.records.matches.of("fleet/east"))) == comes_back


def test_a_rendering_with_older_labels_does_not_stay(fleet: Fleet, east: FakeKube) -> None:
    """A label set between the reading of a cluster and the applying counts in the end."""
    annotations = "{projectsveltos.io/instantiate: ok, projectsveltos.io/template: ok}"
    later = """'{{ "{{ .Cluster.metadata.labels.color }}" }}'"""
    text = DECLARED.replace("{projectsveltos.io/instantiate: ok}", annotations)
    fleet.declare.label("fleet/east", {"color": "red"})
    fleet.apply(text.replace("'{{ .Resource.metadata.labels.v }}'", later))
    fleet.write("east", service())
    fleet.pump()
    assert made(east) == {"for-web": "red"}

    def happens() -> None:
        fleet.declare.label("fleet/east", {"color": "red"})
        # The reader is so slow that its message is given to another.
        fleet.wait(timedelta(seconds=121))

    fleet.declare.label("fleet/east", {"color": "blue"})
    after_next(fleet.records.clusters, "get", happens)
    fleet.pump()

    assert made(east) == {"for-web": "red"}


OWN = join(profile(), holder("own", config("own", "v: '1'")))


def test_a_cluster_registered_again_before_its_end_was_published_gets_all(fleet: Fleet) -> None:
    """Profiles that still have the former cluster are applied to the next one of its name."""
    fleet.apply(OWN)
    fleet.write("east", service())
    fleet.pump()
    fleet.declare.deregister("fleet/east")
    for _ in range(2):
        # The profiles are not notified yet.
        fleet.work("apply", fleet.queues["apply"].receive(1, wait=timedelta(0)))
    del fleet.access.clusters["fleet/east"]

    fleet.register("east", env="production")
    east = fleet.access.clusters["fleet/east"]
    fleet.write("east", service())
    fleet.pump()

    assert made(east) == {"for-web": "1", "own": "1"}


def test_a_deletion_published_after_its_tombstone_expired_counts(
    fleet: Fleet, east: FakeKube
) -> None:
    """An unknown object counts as deleted; so late a message still withdraws it."""
    stored = fleet.write("east", service())
    fleet.pump()
    assert made(east) == {"for-web": "1"}

    fleet.drop("east", stored)
    fleet.wait(timedelta(days=8))

    assert made(east) == {}
    assert list(fleet.records.matches.of("fleet/east")) == []


def test_a_status_written_after_its_profile_was_closed_does_not_stay(
    fleet: Fleet, east: FakeKube
) -> None:
    """A worker that is slow between applying and recording leaves nothing."""
    fleet.apply(OWN)

    def happens() -> None:
        fleet.declare.delete([("ClusterProfile", "", "own")])
        fleet.wait(timedelta(seconds=121))
        assert made(east) == {}

    after_next(fleet.records.outcomes, "get", happens)
    fleet.pump()

    assert made(east) == {}
    assert list(fleet.records.outcomes.of("fleet/east")) == []


def test_messages_behind_a_failure_stay_behind_it(fleet: Fleet) -> None:
    """Of a batch the rest of a group is given back untouched when one of it is to come again."""
    handled: list[Any] = []

    class Fails:
        def handle(self, message: Any) -> None:
            handled.append(message.trace)
            raise UnreachableError("cluster 'fleet/east' does not answer")

    apply = Apply("", "", "own", "fleet/east")
    others = [replace(apply, contested="v1/ConfigMap/default/a"), replace(apply, profile="other")]
    batch = [
        Delivery(replace(each, trace=str(number)).message(), str(number), "", 1)
        for number, each in enumerate([apply, *others])
    ]
    inbox = Inbox("deploy", Fails(), fleet.settings, Log(fleet.output))

    results = [type(result) for _, result in inbox.work(batch)]

    assert results == [Again, Again, Again]
    assert handled == ["0", "2"]
