"""CloudEvents from the request to the add-ons, and their withdrawal."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bellhop.core.gvk import CLOUD_EVENT
from bellhop.ingest.http import Request, Response
from bellhop.rendering.cloud_events import BATCH, STRUCTURED, CloudEvent, attributes
from tests.fakes.fleet import Fleet, cloud_event, service
from tests.fakes.hooks import after_next
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG
from tests.fakes.manifests import INSTANTIATE, config, holder, join, trigger

SOURCE = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: builds}
spec:
  messagingMatchCriteria:
  - cloudEventSource: ^ci\\.example/
    cloudEventType: ^example\\.build\\.
"""

ACTION = """cloudEventAction: >-
    {{ if eq .CloudEvent.type "example.build.removed" }}Delete{{ else }}Create{{ end }}"""


def deploying(name: str = "each", origin: str = "builds") -> str:
    """Return a trigger of a ConfigMap for each subject, with its image."""
    image = config("{{ .CloudEvent.subject }}", 'image: "{{ .CloudEvent.data.image }}"')
    return join(
        trigger(name, origin=origin, ref="image", more=ACTION),
        holder("image", image, annotations=INSTANTIATE),
    )


EACH = deploying()
ALL = join(
    trigger("all", origin="builds", one="false", ref="list", more=ACTION),
    holder(
        "list",
        """\
apiVersion: v1
kind: ConfigMap
metadata: {name: all, namespace: default}
data:
{{- range .CloudEvents }}
  {{ .subject }}: {{ .data.image }}
{{- end }}
""",
        annotations=INSTANTIATE,
    ),
)


@pytest.fixture
def listening(fleet: Fleet) -> Fleet:
    """A cluster for which a CI's events count, each by itself."""
    fleet.register("east", env="production")
    fleet.deploy(SOURCE, EACH)
    return fleet


def held(fleet: Fleet) -> dict[str, Any]:
    """Return the ConfigMaps in the cluster, by name."""
    found = fleet.access.clusters["fleet/east"].objects(CONFIG)
    return {each["metadata"]["name"]: each.get("data") for each in found}


def kept(fleet: Fleet) -> list[str]:
    """Return what is kept of CloudEvents and is not over, by name."""
    heads = fleet.records.observations.heads("fleet/east", CLOUD_EVENT)
    return [each.key.name for each in heads if not each.gone]


def error(reply: Response) -> str:
    return str(reply.body["error"]["message"])


# Add-ons ----------------------------------------------------------------------------------------


def test_an_event_deploys_its_trigger_and_another_withdraws_it(listening: Fleet) -> None:
    """The add-ons follow the newest event of a subject, and are removed with a Delete."""
    assert listening.tell("east", cloud_event("web"), cloud_event("db")).body == {
        "taken": 2,
        "dropped": 0,
    }
    listening.pump()
    assert held(listening) == {
        "web": {"image": "registry.example/web"},
        "db": {"image": "registry.example/db"},
    }

    listening.tell("east", cloud_event("web", "changed", data={"image": "new"}))
    listening.pump()
    assert held(listening)["web"] == {"image": "new"}

    listening.tell("east", cloud_event("web", "removed"))
    listening.pump()
    assert held(listening) == {"db": {"image": "registry.example/db"}}
    assert len(kept(listening)) == 1
    assert [each.matching for each in listening.records.matches.of("fleet/east")] == [True]


def test_one_profile_has_all_events(fleet: Fleet) -> None:
    """Without oneForEvent `.CloudEvents` are those that no Delete has ended, and objects stay."""
    fleet.register("east", env="production")
    fleet.deploy(SOURCE, ALL)
    fleet.tell("east", cloud_event("web"), cloud_event("db"))
    fleet.pump()
    assert held(fleet) == {"all": {"db": "registry.example/db", "web": "registry.example/web"}}

    fleet.tell("east", cloud_event("db", "removed"))
    fleet.pump()
    assert held(fleet) == {"all": {"web": "registry.example/web"}}

    fleet.tell("east", cloud_event("web", "removed"))
    fleet.pump()
    assert held(fleet) == {}
    assert kept(fleet) == []


def test_an_event_is_stored_until_all_triggers_are_done(listening: Fleet) -> None:
    """An event that one trigger withdraws stays for another, which may be applied later."""
    listening.apply(ALL.replace("Delete{{", "Create{{"))
    listening.tell("east", cloud_event("web"))
    listening.pump()
    listening.tell("east", cloud_event("web", "removed"))
    listening.pump()
    assert set(held(listening)) == {"all"}
    assert len(kept(listening)) == 1

    listening.deploy(ALL)
    assert held(listening) == {}
    assert kept(listening) == []


def test_an_event_beside_objects(fleet: Fleet) -> None:
    """A source may take objects and CloudEvents; each is in its own variable."""
    both = SOURCE + '  resourceSelectors: [{group: "", version: v1, kind: Service}]\n'
    listed = ALL.replace(
        "{{- end }}", "{{- end }}\n      objects: {{ len .MatchingResources }}-{{ len .Resources }}"
    )
    fleet.register("east", env="production")
    fleet.deploy(both, listed)
    fleet.write("east", service("api"))
    fleet.tell("east", cloud_event("web"))
    fleet.pump()

    assert held(fleet) == {"all": {"web": "registry.example/web", "objects": "1-0"}}


def test_a_failing_action_is_shown_and_withdraws_nothing(listening: Fleet) -> None:
    """An error is never a Delete, and quotes nothing of the event."""
    listening.tell("east", cloud_event("web"))
    listening.pump()
    listening.apply(EACH.replace("}}Delete{{", "}}{{ .CloudEvent.data.image }}{{"))
    listening.tell("east", cloud_event("web", "removed"))
    listening.pump()

    assert set(held(listening)) == {"web"}
    [profile] = listening.records.profiles.of("each")
    assert profile.error.endswith(
        "its cloudEventAction was rendered to something else than Create, Delete or nothing"
    )


ACTED = """\
    {{ if eq .CloudEvent.type "example.build.removed" }}Delete
    {{- else if eq .CloudEvent.type "example.build.finished" }}Create{{ end }}"""


@pytest.mark.parametrize("rules", [EACH, ALL], ids=["for each", "for all"])
def test_an_action_that_is_rendered_to_nothing_is_none(fleet: Fleet, rules: str) -> None:
    """Such an event deploys nothing, and withdraws nothing of an earlier one."""
    action = next(line for line in rules.splitlines() if "Delete{{ else }}Create" in line)
    fleet.register("east", env="production")
    fleet.deploy(SOURCE, rules.replace(action, ACTED))

    def send(subject: str, kind: str, **more: str) -> list[dict[str, Any]]:
        fleet.tell("east", cloud_event(subject, kind, **more))
        fleet.pump()
        return list(held(fleet).values())

    assert send("web", "started") == []
    assert list(fleet.records.profiles.heads("each" if rules is EACH else "all")) == []
    deployed = send("web", "finished")
    assert len(deployed) == 1
    assert send("web", "started", id="another") == deployed
    [head] = fleet.records.observations.heads("fleet/east", CLOUD_EVENT)
    kept_now = value_of(fleet.records.observations.get("fleet/east", head.key)).manifest
    assert kept_now
    assert "started" in str(kept_now)
    assert send("web", "removed") == []
    assert [profile.error for profile in fleet.records.profiles.heads("each")] == []


def test_data_decide_by_lua_and_by_cel(fleet: Fleet) -> None:
    """The newest event that the attributes let through says by its data whether it matches."""
    asked = """\
    evaluate: |
      function evaluate(event)
        return {matching = event.data.env == "production", message = "it is " .. event.data.env}
      end
    evaluateCEL: [{name: forced, rule: "has(resource.force) && resource.force == true"}]
"""
    fleet.register("east", env="production")
    fleet.deploy(SOURCE + asked, EACH)
    image = {"image": "x"}
    fleet.tell("east", cloud_event("web", data={"env": "production", **image}))
    fleet.tell("east", cloud_event("db", data={"env": "test", **image}))
    fleet.tell("east", cloud_event("job", data={"env": "test", **image}, force=True))
    fleet.pump()
    assert set(held(fleet)) == {"web", "job"}

    fleet.tell("east", cloud_event("web", "moved", data={"env": "test", **image}))
    fleet.pump()
    assert set(held(fleet)) == {"job"}


def test_the_example_deploys_its_manifests(fleet: Fleet) -> None:
    """A build is announced, and its removal takes it back; other types count for nothing."""
    fleet.register("east", env="production")
    fleet.apply_example("cloud-events")
    fleet.pump()
    for kind, names in (("built", {"build-web"}), ("tested", {"build-web"}), ("removed", set())):
        fleet.tell("east", cloud_event("web", kind, type=f"example.image.{kind}"))
        fleet.pump()
        assert set(held(fleet)) == names


# What it is not deployed by ----------------------------------------------------------------------


def test_an_event_that_no_source_accepts_is_dropped(listening: Fleet) -> None:
    """It is answered, counted, and leaves no trace; what was kept of its subject stays."""
    listening.tell("east", cloud_event("web"))
    listening.pump()
    other = cloud_event("web", type="example.test.built", id="1")
    other_source = cloud_event("web", source="https://ci.example/builds", id="2")

    assert listening.tell("east", other, other_source).body == {"taken": 0, "dropped": 2}
    listening.pump()

    assert set(held(listening)) == {"web"}
    assert len(list(listening.records.store.query("arrival/fleet/east"))) == 1


def test_the_subject_of_a_broker_is_an_extension(fleet: Fleet) -> None:
    """`subject` is asked of what carried the event, or was subscribed to; by HTTP nothing did."""
    fleet.register("east", env="production")
    fleet.deploy(SOURCE.replace("cloudEventSource: ^ci\\.example/", "subject: ^ci[.]"), EACH)

    carried = cloud_event("web", messagingsubject="ci.builds")

    asked = cloud_event("shop", messagingsubject="elsewhere", messagingasked="ci.>")

    assert fleet.tell("east", cloud_event("db")).body["taken"] == 0
    assert fleet.tell("east", carried).body["taken"] == 1
    assert fleet.tell("east", asked).body["taken"] == 1


def test_a_resync_withdraws_nothing_of_an_event(listening: Fleet) -> None:
    """CloudEvents are in no cluster, so no list shows that one was deleted."""
    listening.tell("east", cloud_event("web"))
    listening.pump()
    for _ in range(4):
        listening.wait(timedelta(hours=1))

    assert set(held(listening)) == {"web"}


def test_a_changed_source_evaluates_stored_events_again(listening: Fleet) -> None:
    """Events that its criteria reject are withdrawn, and restored once these accept them."""
    listening.tell("east", cloud_event("web"))
    listening.pump()
    listening.deploy(SOURCE.replace("build\\.", "test\\."))
    assert held(listening) == {}

    listening.deploy(SOURCE)
    assert set(held(listening)) == {"web"}


def test_a_source_that_takes_no_events_any_more_forgets_them(listening: Fleet) -> None:
    """Events are stored as long as a source asks for them; another source's stay."""
    other = SOURCE.replace("name: builds", "name: others")
    listening.deploy(other, deploying("more", "others"))
    listening.tell("east", cloud_event("web"))
    listening.pump()
    assert len(kept(listening)) == 2
    flat = SOURCE.partition("  messagingMatch")[0] + "  {group: '', version: v1, kind: Service}\n"

    listening.deploy(flat)
    heads = listening.records.observations.heads("fleet/east", CLOUD_EVENT)
    assert [each.key.namespace for each in heads] == ["others"]


def test_a_trigger_that_leaves_the_cluster_withdraws_its_add_ons(listening: Fleet) -> None:
    """They are removed with the cluster's label, and all events when it is deregistered."""
    listening.tell("east", cloud_event("web"))
    listening.pump()
    listening.declare.label("fleet/east", {"env": "test"})
    listening.pump()
    assert held(listening) == {}
    assert kept(listening) == []

    listening.declare.deregister("fleet/east")
    listening.pump()
    assert list(listening.records.store.query("arrival/fleet/east")) == []


# Order and repeats ------------------------------------------------------------------------------


def at(listening: Fleet, minutes: float) -> str:
    return (listening.clock.now() + timedelta(minutes=minutes)).isoformat()


def test_an_event_after_an_end_is_evaluated_separately(listening: Fleet) -> None:
    """It is not over because the event before it was, and counts once a source takes it."""
    asked = "    evaluateCEL: [{name: own, rule: resource.data.env == 'own'}]\n"
    listening.deploy(SOURCE + asked)
    first, last, other = (
        cloud_event("web", kind, id=f"{kind}-{env}", data={"image": kind, "env": env})
        for kind, env in (("built", "own"), ("removed", "own"), ("removed", "another"))
    )
    listening.tell("east", first)
    listening.pump()
    listening.tell("east", last)
    listening.work("evaluate", listening.queues["evaluate"].receive(1, wait=timedelta(0)))
    after_next(listening.records.observations, "get", lambda: listening.tell("east", other))
    listening.pump()
    assert held(listening) == {}

    listening.deploy(SOURCE, EACH.replace("}}Delete{{", "}}Create{{"))
    assert held(listening) == {"web": {"image": "removed"}}


def test_an_old_event_that_comes_late_changes_nothing(listening: Fleet) -> None:
    """Of a subject the event counts that happened last, in whatever order they come."""
    listening.tell("east", cloud_event("web", "late", time=at(listening, -1), data={"image": "b"}))
    listening.tell("east", cloud_event("web", "soon", time=at(listening, -2), data={"image": "a"}))
    listening.pump()

    assert held(listening) == {"web": {"image": "b"}}


def test_a_delete_that_arrives_before_its_event(listening: Fleet) -> None:
    """An event from before its end has no effect if it arrives after it."""
    listening.tell("east", cloud_event("web", "removed", time=at(listening, -1)))
    listening.pump()
    listening.tell("east", cloud_event("web", time=at(listening, -2)))
    listening.pump()
    assert held(listening) == {}

    listening.tell("east", cloud_event("web", time=at(listening, 0)))
    listening.pump()
    assert set(held(listening)) == {"web"}


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("days", [0, 1, 6.5, 8, 20])
def test_a_repeated_event_after_its_end(listening: Fleet, days: float, *, timed: bool) -> None:
    """A repeat is known by source and id, a moment later as next week, and has no effect."""
    first = cloud_event("web", **({"time": at(listening, -2)} if timed else {}))
    last = cloud_event("web", "removed", **({"time": at(listening, -1)} if timed else {}))
    for each in (first, last):
        listening.tell("east", each)
        listening.pump()
    listening.clock.advance(timedelta(days=days))

    assert listening.tell("east", first).status == 200
    listening.pump()

    assert held(listening) == {}


def test_two_events_of_one_second_count_in_their_order(listening: Fleet) -> None:
    """Clocks with seconds give several events one time; a repeat of the first has no effect."""
    moment = at(listening, -1)
    first = cloud_event("web", time=moment)
    for each in (first, cloud_event("web", "removed", time=moment), first):
        listening.tell("east", each)
        listening.pump()

    assert held(listening) == {}


def test_an_event_without_a_time_is_the_last(listening: Fleet) -> None:
    """Beside one whose clock is ahead, who says no time counts when it comes."""
    ahead = cloud_event("web", time=at(listening, 10))
    for each in (ahead, cloud_event("web", "removed")):
        listening.tell("east", each)
        listening.pump()

    assert held(listening) == {}


def test_accepts_events_while_its_own_clock_is_behind(listening: Fleet) -> None:
    """Events keep the order in which they come; later ones count as ever once it is right."""
    first, removed = at(listening, 0), at(listening, 1)
    with listening.clock.behind(timedelta(minutes=20)):
        for each in (
            cloud_event("web", time=first),
            cloud_event("api", time=first),
            cloud_event("web", "removed", time=removed),
        ):
            assert listening.tell("east", each).body["taken"] == 1
    listening.pump()
    assert set(held(listening)) == {"api"}

    listening.clock.advance(timedelta(minutes=2))
    listening.tell("east", cloud_event("api", "removed", time=at(listening, -1)))
    listening.pump()
    assert held(listening) == {}


def test_an_event_far_in_the_future_delays_none_after_it(listening: Fleet) -> None:
    """It is taken as it comes, and so is what comes next of the same source and subject."""
    for each in (
        cloud_event("web", time="9999-12-31T23:59:59Z"),
        cloud_event("web", "removed", time=at(listening, 1)),
    ):
        assert listening.tell("east", each).body["taken"] == 1
        listening.pump()

    assert held(listening) == {}


def test_a_stored_event_is_published_after_a_death(listening: Fleet) -> None:
    """The sender had no answer, sends the event again, and it is evaluated."""
    event = cloud_event("web")
    assert listening.tell("east", event).status == 200
    [delivery] = listening.queues["evaluate"].receive(1, wait=timedelta(0))
    listening.queues["evaluate"].settle(delivery, None)
    listening.pump()
    assert held(listening) == {}

    listening.clock.advance(timedelta(hours=1))
    listening.tell("east", event)
    listening.pump()
    assert set(held(listening)) == {"web"}


# A time to live ---------------------------------------------------------------------------------

SHORT = SOURCE.replace(
    "{name: builds}", "{name: builds, annotations: {bellhop.dev/cloud-event-ttl: 24h}}"
)


def test_an_event_ends_when_its_time_is_over(listening: Fleet) -> None:
    """A source may limit the time for which events count; a newer one counts from its own."""
    listening.apply(SHORT)
    listening.tell("east", cloud_event("web"), cloud_event("db"))
    listening.pump()
    listening.clock.advance(timedelta(hours=23))
    listening.tell("east", cloud_event("web", "changed"))
    listening.pump()
    assert set(held(listening)) == {"web", "db"}

    listening.wait(timedelta(hours=2))
    assert set(held(listening)) == {"web"}
    listening.tell("east", cloud_event("db"))
    listening.pump()
    assert set(held(listening)) == {"web"}

    listening.wait(timedelta(hours=24))
    assert (held(listening), kept(listening)) == ({}, [])


def test_a_later_time_to_live_counts_for_stored_events(listening: Fleet) -> None:
    """A changed source evaluates stored events again, by their age."""
    listening.tell("east", cloud_event("web"))
    listening.pump()
    listening.clock.advance(timedelta(hours=25))
    listening.deploy(SHORT)

    assert held(listening) == {}


# Requests ---------------------------------------------------------------------------------------


def ask(fleet: Fleet, media: str, body: bytes, **headers: str) -> Response:
    event_attributes = attributes({f"ce-{name}": value for name, value in headers.items()})
    return fleet.ingest.respond(
        Request("fleet/east", "east", body, media, attributes=event_attributes)
    )


def newest(fleet: Fleet) -> Any:
    [head] = fleet.records.observations.heads("fleet/east", CLOUD_EVENT)
    found = fleet.records.observations.get("fleet/east", head.key)
    assert found
    assert found.value.manifest
    return found.value.manifest["event"]


HEADERS = {
    "specversion": "1.0",
    "id": "1",
    "source": "ci.example/builds",
    "type": "example.build.built",
    "subject": "w%C3%BCrfel%20%22a%22",
}


def test_takes_a_binary_event(listening: Fleet) -> None:
    """Its attributes are headers, percent-encoded, and its data are the body."""
    reply = ask(listening, "application/json", b'{"image": "x"}', **HEADERS, extra="7")

    assert (reply.status, reply.body) == (200, {"taken": 1, "dropped": 0})
    assert newest(listening) == {
        **HEADERS,
        "subject": 'würfel "a"',
        "extra": "7",
        "datacontenttype": "application/json",
        "data": {"image": "x"},
    }


@pytest.mark.parametrize(
    ("media", "body", "data"),
    [
        pytest.param("text/plain; charset=utf-8", "ä".encode(), {"data": "ä"}, id="text"),
        pytest.param("text/plain", b"\xff", {"data_base64": "/w=="}, id="text that is none"),
        pytest.param("application/x-tar", b"tar", {"data_base64": "dGFy"}, id="bytes"),
        pytest.param("application/vnd.x+json", b"[1]", {"data": [1]}, id="a sort of JSON"),
        pytest.param("", b"", {}, id="nothing"),
    ],
)
def test_takes_any_data(listening: Fleet, media: str, body: bytes, data: object) -> None:
    """JSON is read, text is text, and all else is in base64."""
    assert ask(listening, media, body, **HEADERS).status == 200

    event = newest(listening)
    assert {
        name: event[name] for name in event if name.startswith("data") and event[name] != media
    } == data


def test_takes_a_structured_event(listening: Fleet) -> None:
    """The body is the event, with JSON in base64 as some senders write it."""
    event = cloud_event("web", data_base64="eyJpbWFnZSI6ICJ4In0=", extra=None)
    del event["data"]

    reply = ask(listening, f"{STRUCTURED}; charset=utf-8", json.dumps(event).encode())

    assert reply.status == 200
    assert newest(listening)["data"] == {"image": "x"}


def test_a_stored_event_is_sealed(listening: Fleet) -> None:
    """Data are stored as other payloads are: encrypted."""
    listening.tell("east", cloud_event("web", data={"image": "hidden-word"}))

    rows = [str(item.value) for item in listening.records.store.all()]

    assert not any("hidden-word" in row for row in rows)


def test_a_sender_of_events_is_not_the_forwarder(listening: Fleet) -> None:
    """A CI that goes on sending does not make a forwarder that is dead look alive."""
    listening.tell("east", cloud_event("web"))

    assert listening.records.hearings.get("fleet/east") is None


def test_refuses_an_unauthenticated_sender(listening: Fleet) -> None:
    """Events are let in by the token of the cluster, before they are read."""
    assert listening.tell("east", {}, token="other").status == 401
    assert kept(listening) == []


def test_a_batch_is_taken_or_refused_as_a_whole(listening: Fleet) -> None:
    """The sentence says which event is none, and nothing of the others is kept."""
    reply = listening.tell("east", cloud_event("web"), {**cloud_event("db"), "id": ""})

    assert reply.status == 400
    assert error(reply) == (
        "cannot take a CloudEvent: its id is empty; it is number 2 of 2, and none of them is taken"
    )
    assert kept(listening) == []


def test_takes_events_of_a_forwarder_one_by_one(listening: Fleet) -> None:
    """Among its other items: one that is no event costs no other."""
    items = [cloud_event("web"), {**cloud_event("bad"), "id": ""}, cloud_event("db")]
    other = cloud_event("api", source="other")
    reply = listening.send("east", *({"event": each} for each in (*items, other)))
    listening.pump()

    why = "cannot take a CloudEvent: its id is empty"
    failed = [{"index": 1, "status": 400, "reason": why}]
    assert reply.body == {"taken": 2, "dropped": 1, "failed": failed}
    assert held(listening).keys() == {"web", "db"}


def test_takes_an_empty_batch(listening: Fleet) -> None:
    """The specification has it."""
    assert listening.tell("east").body == {"taken": 0, "dropped": 0}


def test_refuses_too_many_at_once(listening: Fleet) -> None:
    """Each event is written before the sender has its answer."""
    reply = listening.tell("east", *[cloud_event(str(number)) for number in range(201)])

    assert reply.status == 413
    assert error(reply) == "cannot take 201 CloudEvents at once: the limit is 200; send less"


@pytest.mark.parametrize(
    ("media", "body", "sentence"),
    [
        pytest.param(STRUCTURED, b"", "the body is not JSON", id="nothing"),
        pytest.param(STRUCTURED, b"[]", "the body is not a JSON object", id="a list"),
        pytest.param(STRUCTURED, b"{}", "it has no specversion", id="an empty object"),
        pytest.param(BATCH, b"{}", "the body is not a JSON array", id="one as a batch"),
        pytest.param(BATCH, b"[7]", "it is not a JSON object", id="a number in a batch"),
        pytest.param(BATCH, b"[" * 300 + b"]" * 300, "nested more than 200", id="deep"),
        pytest.param(
            "application/cloudevents+avro",
            b"",
            "cannot read CloudEvents in 'application/cloudevents+avro'; send them as",
            id="another format",
        ),
    ],
)
def test_refuses_an_invalid_event(listening: Fleet, media: str, body: bytes, sentence: str) -> None:
    """A wrong body is answered with what is wrong with it."""
    reply = ask(listening, media, body)

    assert reply.status == 400
    assert sentence in error(reply)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param({"specversion": "0.3"}, "its specversion is '0.3', and 1.0 is read", id="old"),
        pytest.param({"id": 7}, "its id must be a string", id="a number as id"),
        pytest.param({"source": "x" * 1025}, "its source has 1025 characters", id="long"),
        pytest.param({"subject": "a\nb"}, "its subject has a control character", id="two lines"),
        pytest.param({"time": "yesterday"}, "its time is not in", id="no time"),
        pytest.param({"time": "2026-01-01T00:00:00"}, "its time is not in", id="no zone"),
        pytest.param({"time": "2026-02-31T00:00:00Z"}, "its time is not", id="no such day"),
        pytest.param({"Extra": "x"}, "'Extra' is not the name of an attribute", id="a capital"),
        pytest.param({"extra": {}}, "its extra must be a string", id="an object"),
        pytest.param({"data_base64": "eA=="}, "it has both data and data_base64", id="both"),
    ],
)
def test_refuses_what_the_specification_lacks(
    listening: Fleet, change: dict[str, Any], sentence: str
) -> None:
    """Each attribute is what CloudEvents 1.0 says of it, or the event is refused."""
    body = json.dumps({**cloud_event("web"), **change}).encode()

    reply = ask(listening, STRUCTURED, body)

    assert reply.status == 400
    assert error(reply).startswith(f"cannot take a CloudEvent: {sentence}")


_TEXT = st.text(max_size=12)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)
_NAME = st.sampled_from(sorted({*cloud_event("x"), "time", "data_base64", "datacontenttype", "X"}))
_ODD = st.dictionaries(_NAME | _TEXT, _VALUE | st.just("2026-01-01T00:00:00Z"), max_size=5)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    media=st.sampled_from([STRUCTURED, BATCH, "text/plain", "application/json", "x"]) | _TEXT,
    odd=st.lists(_ODD, max_size=2),
    headers=st.dictionaries(_NAME | _TEXT, _TEXT, max_size=4),
    whole=st.booleans(),
)
def test_no_request_is_an_error_of_ours(
    listening: Fleet, media: str, odd: list[dict[str, Any]], headers: dict[str, str], *, whole: bool
) -> None:
    """Whatever is sent as an event is taken, or refused with a sentence; never a 500."""
    events = [{**cloud_event("web"), **each} if whole else each for each in odd]
    body: object = events[0] if events and media == STRUCTURED else events
    sent_headers = {**HEADERS, **headers} if whole else headers
    request = Request(
        "fleet/east", "east", json.dumps(body).encode(), media, attributes=sent_headers
    )

    reply = listening.ingest.respond(request)

    assert reply.status in {200, 400, 413, 415}
    assert reply.status == 200 or error(reply)


def test_names_the_subject_of_an_event() -> None:
    """A name says the subject, is as long as it may be, and differs where source or subject do."""
    names = [
        CloudEvent({"source": source, "subject": subject}).name
        for source, subject in (("a", "x/Y z"), ("b", "x/Y z"), ("a", "ü"), ("a", "y" * 900))
    ]

    assert names[0].startswith("x-y-z-")
    assert len(set(names)) == 4
    assert max(map(len, names)) == 53


def heartbeat(fleet: Fleet, cluster: str, body: Any, media: str = STRUCTURED) -> Response:
    """Have ingest hear what a cloud let in, which shows nothing of a sender's."""
    return fleet.ingest.hear(Request(f"fleet/{cluster}", "", json.dumps(body).encode(), media))


def test_an_event_that_a_cloud_authenticated_counts_as_any(listening: Fleet) -> None:
    """It is matched, stored once, and no heartbeat of the cluster."""
    event = cloud_event("web")
    assert heartbeat(listening, "east", event) == Response(200, {"taken": 1, "dropped": 0})
    listening.pump()
    assert held(listening).keys() == {"web"}
    assert heartbeat(listening, "east", cloud_event("web", "removed")).status == 200
    listening.pump()
    assert heartbeat(listening, "east", event).status == 200
    listening.pump()
    assert heartbeat(listening, "east", cloud_event("api", source="other")).body["dropped"] == 1

    assert held(listening) == {}
    assert listening.records.hearings.get("fleet/east") is None


@pytest.mark.parametrize(
    ("cluster", "body", "media", "status"),
    [
        pytest.param("nowhere", cloud_event("web"), STRUCTURED, 404, id="of no cluster"),
        pytest.param("east", {"id": "1"}, STRUCTURED, 400, id="no event"),
        pytest.param("east", {"kind": "Missed"}, "application/json", 403, id="something else"),
        pytest.param("east", "x" * 5_000_000, STRUCTURED, 413, id="very long"),
    ],
)
def test_an_event_that_a_cloud_authenticated_has_the_same_limits(
    fleet: Fleet, cluster: str, body: Any, media: str, status: int
) -> None:
    """It may be a CloudEvent of an existing cluster, and nothing else."""
    fleet.register("east", env="production")

    assert heartbeat(fleet, cluster, body, media).status == status
