"""Two at work at once, and messages that come back late: the end is that of what is declared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import TemporaryError, UnreachableError
from bellhop.logs import Log
from bellhop.ports.queue import Again, Delivery
from bellhop.state.consumer import Inbox
from bellhop.state.messages import Apply, Evaluate, Instantiate
from tests.fakes.fleet import SERVICE, Fleet
from tests.fakes.kube import FakeKube
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

CONFIG = GVK("", "v1", "ConfigMap")
WEB = ObjectKey(SERVICE, "default", "web")
V = "v: '{{ .Resource.metadata.labels.v }}'"
DECLARED = join(
    source(more=", selector: {matchLabels: {ring: 'yes'}}"),
    trigger(),
    holder("made", config(FOR_EACH, V), annotations=INSTANTIATE),
)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path)
    fleet.register("east", env="production")
    fleet.apply(DECLARED)
    fleet.pump()
    return fleet


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.access.clusters["fleet/east"]


def service(v: str = "1", ring: str = "yes", name: str = "web") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"v": v, "ring": ring}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata}


def made(east: FakeKube) -> dict[str, str]:
    return {each["metadata"]["name"]: each["data"]["v"] for each in east.objects(CONFIG)}


def meanwhile(target: Any, method: str, happens: Callable[[], None]) -> None:
    """Let something happen once, between what a worker read and what it is about to write."""
    real, left = getattr(target, method), [happens]

    def slow(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        while left:
            left.pop()()
        return result

    setattr(target, method, slow)


@pytest.mark.parametrize(("inbox", "refusing"), [("evaluate", "deploy"), ("deploy", "apply")])
def test_a_replayed_dead_letter_does_what_it_was_to_do(
    fleet: Fleet, east: FakeKube, inbox: str, refusing: str
) -> None:
    """What was written before the messages that follow could be published is told a week later."""
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

    meanwhile(fleet.stages["deploy"]._instantiation, "_fill", newer)
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
    for delivery in fleet.queues["evaluate"].receive(10, wait=timedelta(0)):
        fleet.work("evaluate", [delivery])

    def back() -> None:
        become("1")
        fleet.clock.advance(timedelta(seconds=121))
        fleet.pump()
        assert made(east) == {"for-web": "1"}

    meanwhile(fleet.stages["deploy"]._instantiation, "_fill", back)
    fleet.stages["deploy"].handle(Instantiate("made", "fleet/east", str(WEB)))
    fleet.pump()

    assert made(east) == {"for-web": "1"}


@pytest.mark.parametrize("before", ["no", "yes"], ids=["nothing matched", "it matched"])
def test_an_older_judgement_does_not_stay(fleet: Fleet, east: FakeKube, before: str) -> None:
    """A worker that stalls after it has judged does not revive what matches no more."""
    fleet.write("east", service("1", before))
    fleet.pump()
    fleet.write("east", service("2", "yes"))

    def newer() -> None:
        fleet.write("east", service("3", "no"))
        fleet.clock.advance(timedelta(seconds=121))
        fleet.pump()

    meanwhile(fleet.stages["evaluate"], "_judge", newer)
    fleet.pump()

    assert list(fleet.records.matches.of("fleet/east")) == []
    assert made(east) == {}


def test_a_judgement_by_older_sources_does_not_stay(fleet: Fleet, east: FakeKube) -> None:
    """A worker that stalls after it has judged does not bring back what sources left out since."""
    fleet.write("east", service())

    def narrower() -> None:
        fleet.apply(DECLARED.replace("ring: 'yes'", "ring: never"))
        fleet.clock.advance(timedelta(seconds=121))
        fleet.pump()

    meanwhile(fleet.stages["evaluate"], "_judge", narrower)
    fleet.pump()

    assert list(fleet.records.matches.of("fleet/east")) == []
    assert made(east) == {}


def test_a_script_that_had_no_time_hides_no_judgement(fleet: Fleet, east: FakeKube) -> None:
    """Of two judgements of one object the later one to be written has not seen the other."""
    stage: Any = fleet.stages["evaluate"]
    real = stage._judge

    def starved(*args: Any) -> Any:
        stage._judge = real
        judged = real(*args)
        stage.handle(Evaluate("fleet/east", str(WEB)))
        return replace(judged, matching=False, error="it took more than a second")

    stage._judge = starved
    fleet.write("east", service())
    fleet.pump()

    [match] = fleet.records.matches.of("fleet/east")
    assert (match.matching, match.error) == (True, "")
    assert made(east) == {"for-web": "1"}


def test_every_source_and_every_trigger_hears(fleet: Fleet, east: FakeKube) -> None:
    """An object may concern several sources, and each of them several triggers."""

    def named(source: str, trigger: str) -> str:
        text = DECLARED.replace("watched", source).replace("name: made", f"name: {trigger}")
        return text.replace("for-", f"{trigger}-")

    fleet.apply(named("watched", "second"), named("other", "third"), named("other", "fourth"))
    fleet.pump()
    fleet.write("east", service())
    fleet.pump()

    assert set(made(east)) == {"for-web", "second-web", "third-web", "fourth-web"}


def test_all_for_one_event_reads_what_matches_alone(fleet: Fleet) -> None:
    """With oneForEvent off an event opens the objects that match, not all of their kind."""
    fleet.apply(
        DECLARED.replace("oneForEvent: true", "oneForEvent: false")
        .replace("name: made}\nspec", "name: all}\nspec")
        .replace("'for-{{ .Resource.metadata.name }}'", "all")
        .replace("'{{ .Resource.metadata.labels.v }}'", "'{{ len .Resources }}'")
    )
    fleet.pump()
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
def test_a_trigger_made_anew_in_another_form_leaves_nothing_behind(
    fleet: Fleet, east: FakeKube, *, worked: bool
) -> None:
    """Deleted and made anew with the other oneForEvent, as the error for changing it advises."""
    forms = {
        "true": ("'for-{{ .Resource.metadata.name }}'", "oneForEvent: true"),
        "false": ("all", "oneForEvent: false"),
    }

    def declared(one: str) -> str:
        name, form = forms[one]
        text = DECLARED.replace("oneForEvent: true", form).replace(forms["true"][0], name)
        return text.replace("'{{ .Resource.metadata.labels.v }}'", "x")

    for first, then, there in (("true", "false", ["all"]), ("false", "true", ["for-web"])):
        fleet.declare.delete([("EventTrigger", "", "made")])
        fleet.pump()
        fleet.apply(declared(first))
        fleet.write("east", service())
        fleet.pump()
        fleet.declare.delete([("EventTrigger", "", "made")])
        if worked:
            fleet.pump()
        fleet.apply(declared(then))
        fleet.pump()

        assert [each["metadata"]["name"] for each in east.objects(CONFIG)] == there
        assert len(list(fleet.records.profiles.heads("made"))) == 1

    fleet.declare.delete([("EventTrigger", "", "made")])
    fleet.pump()
    assert east.objects(CONFIG) == []


def test_a_label_does_not_bring_back_replaced_credentials(fleet: Fleet) -> None:
    """A registration between the label's read and its write stays; the label is set beside it."""
    found = fleet.records.clusters.get("fleet/east")
    assert found
    anew = replace(found.value, token_digest=hashlib.sha256(b"new").hexdigest())

    meanwhile(fleet.records.clusters, "get", lambda: fleet.declare.register(anew))
    fleet.declare.label("fleet/east", {"dep": "eng"})
    fleet.pump()

    assert fleet.send("east", token="new").status == 200
    assert fleet.send("east", token="east").status == 401
    now = fleet.records.clusters.get("fleet/east")
    assert now
    assert now.value.labels == {"env": "production", "dep": "eng"}


def test_a_match_of_a_source_that_went_meanwhile_does_not_stay(
    fleet: Fleet, east: FakeKube
) -> None:
    """A worker that judged by an older catalog takes back what it wrote after the deletion."""
    fleet.write("east", service())

    def gone() -> None:
        fleet.declare.delete([("EventSource", "", "watched")])
        for name in ("sweep", "deploy", "apply"):
            while deliveries := fleet.queues[name].receive(10, wait=timedelta(0)):
                fleet.work(name, deliveries)

    meanwhile(fleet.stages["evaluate"], "_judge", gone)
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

    def gone() -> None:
        fleet.declare.delete([("EventSource", "", "watched")])
        health.put = too_late

    meanwhile(fleet.stages["evaluate"], "_judge", gone)
    fleet.pump()
    health.put = put
    if comes_back:
        fleet.apply(DECLARED)
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()

    assert made(east) == ({"for-web": "1"} if comes_back else {})
    assert len(list(fleet.records.matches.of("fleet/east"))) == comes_back


def test_what_was_rendered_with_older_labels_does_not_stay(fleet: Fleet, east: FakeKube) -> None:
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
        # Whoever reads is so slow that its message is given to another.
        fleet.clock.advance(timedelta(seconds=121))
        fleet.pump()

    fleet.declare.label("fleet/east", {"color": "blue"})
    meanwhile(fleet.records.clusters, "get", happens)
    fleet.pump()

    assert made(east) == {"for-web": "red"}


OWN = join(profile(), holder("own", config("own", "v: '1'")))


def test_a_cluster_that_comes_back_before_its_end_was_told_gets_all(fleet: Fleet) -> None:
    """Profiles that have not heard that a cluster went are applied to the next one of its name."""
    fleet.apply(OWN)
    fleet.write("east", service())
    fleet.pump()
    fleet.declare.deregister("fleet/east")
    for _ in range(2):
        # Nobody has told the profiles yet.
        fleet.work("apply", fleet.queues["apply"].receive(1, wait=timedelta(0)))
    del fleet.access.clusters["fleet/east"]

    fleet.register("east", env="production")
    east = fleet.access.clusters["fleet/east"]
    fleet.write("east", service())
    fleet.pump()

    assert made(east) == {"for-web": "1", "own": "1"}


def test_a_deletion_that_is_heard_of_after_its_tombstone_ended_counts(
    fleet: Fleet, east: FakeKube
) -> None:
    """What nothing is known of is not there; who is told of it so late withdraws it still."""
    stored = fleet.write("east", service())
    fleet.pump()
    assert made(east) == {"for-web": "1"}

    fleet.drop("east", stored)
    fleet.clock.advance(timedelta(days=8))
    fleet.pump()

    assert made(east) == {}
    assert list(fleet.records.matches.of("fleet/east")) == []


def test_an_outcome_that_is_noted_after_its_profile_was_closed_does_not_stay(
    fleet: Fleet, east: FakeKube
) -> None:
    """Who was slow between applying and noting how it went leaves nothing behind."""
    fleet.apply(OWN)

    def happens() -> None:
        fleet.declare.delete([("ClusterProfile", "", "own")])
        fleet.clock.advance(timedelta(seconds=121))
        fleet.pump()
        assert made(east) == {}

    meanwhile(fleet.records.outcomes, "get", happens)
    fleet.pump()

    assert made(east) == {}
    assert list(fleet.records.outcomes.of("fleet/east")) == []


def test_what_waits_behind_a_failure_stays_behind_it(fleet: Fleet) -> None:
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
