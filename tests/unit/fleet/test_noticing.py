"""Who is told that a cluster is unhealthy, and when; what he is told goes to a real chat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.notices import Sender
from bellhop.adapters.notices.sender import ENDPOINTS
from bellhop.api.health_check import ClusterHealthCheck
from bellhop.api.kinds import parse_all, read_documents
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.diagnosis.failures import failures
from bellhop.errors import DeniedError
from bellhop.extras.health.notifier import HealthNotifier
from bellhop.extras.health.state import PAUSE
from bellhop.extras.health.texts import words
from bellhop.gotemplate import Limits
from bellhop.logs import Log
from bellhop.state.condition import Condition
from bellhop.state.consumer import Inbox
from bellhop.state.delays import notice_timer
from bellhop.state.messages import CheckHealth, Resync
from bellhop.state.record import Cluster
from tests.fakes.chat import Chat, chat
from tests.fakes.clock import START
from tests.fakes.fleet import Fleet
from tests.fakes.incidents import incident_managers
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile

CHECK = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterHealthCheck
metadata: {name: production}
spec:
  clusterSelector: {matchLabels: {env: production}}
  livenessChecks: [{name: deployment, type: Addons}]
  notifications:
  - name: slack
    type: Slack
    notificationRef: {apiVersion: v1, kind: Secret, namespace: default, name: slack}
"""
SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: slack, namespace: default}
stringData: {SLACK_TOKEN: xoxb-hidden, SLACK_CHANNEL_ID: C1}
"""
OWN = join(profile(), holder("own", config("own")))


@pytest.fixture
def here() -> Iterator[Chat]:
    with chat() as found:
        yield found


@pytest.fixture
def fleet(tmp_path: Path, here: Chat) -> Iterator[Fleet]:
    one = Fleet(tmp_path)
    _notice(one, here)
    yield one
    one.close()


def _notice(fleet: Fleet, here: Chat) -> None:
    """Have a fleet tell a chat, as the compositions have it tell the world."""
    send = Sender(LOCAL, {kind: f"{here.url}/{kind}" for kind in ENDPOINTS}).send
    log = Log(fleet.output)
    stage = HealthNotifier(fleet.installation(), fleet.stages["sweep"], log, send=send)
    fleet.stages["sweep"] = stage
    for name in ("confirm", "sweep", "probe"):
        fleet.inboxes[name] = Inbox(name, stage, fleet.settings, log)


def deny(kube: FakeKube) -> None:
    kube.fail_with(DeniedError("may not apply"), "apply")


def swept(fleet: Fleet) -> None:
    fleet.clock.advance(timedelta(minutes=5))
    fleet.publisher.publish([Resync("fleet/east")])
    fleet.pump()


def resynced(fleet: Fleet) -> None:
    """Have all clusters listed, one after the other."""
    fleet.clock.advance(timedelta(minutes=5))
    for each in fleet.catalogs.current().clusters:
        fleet.publisher.publish([Resync(each)])
        fleet.pump()


def found(fleet: Fleet) -> Condition:
    return fleet.records.conditions.of("fleet/east")["production"].value


def unwell(fleet: Fleet) -> FakeKube:
    """Return a cluster of which somebody was told that it is unhealthy."""
    east = fleet.register("east", env="production")
    deny(east)
    fleet.apply(CHECK, SECRET, OWN)
    fleet.pump()
    swept(fleet)
    return east


def test_tells_once_that_a_cluster_is_not_well_and_once_that_it_is(
    fleet: Fleet, here: Chat
) -> None:
    """With the profile and the reason, and without a word of the Secret."""
    east = unwell(fleet)
    [text] = here.texts
    assert text.startswith("Cluster fleet/east is unhealthy (production)\nClusterProfile/own: ")
    assert "may not apply" in text
    assert text.endswith("\nSince 2026-01-01 12:00 UTC.")
    swept(fleet)
    assert len(here.texts) == 1

    east.fail_with(None)
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    swept(fleet)
    swept(fleet)
    assert [each.partition("\n")[0] for each in here.texts[1:]] == [
        "Cluster fleet/east is healthy again (production)"
    ]
    assert "hidden" not in fleet.output.getvalue()


def test_one_cause_in_several_clusters_is_told_once(fleet: Fleet, here: Chat) -> None:
    """The clusters are counted; one that fails otherwise is another notice, and so is its end."""
    kubes = {name: fleet.register(name, env="production") for name in ("east", "west", "south")}
    other = fleet.register("north", env="production")
    fleet.apply(CHECK, SECRET, OWN)
    fleet.pump()
    for name, kube in kubes.items():
        kube.fail_with(DeniedError(f"may not apply on 'fleet/{name}'"), "apply")
    other.fail_with(DeniedError("no quota"), "apply")
    fleet.apply(holder("own", config("own", "v: bad")))
    fleet.pump()
    resynced(fleet)
    one, another = sorted(here.texts, key=len, reverse=True)

    assert one.startswith("Cluster fleet/")
    assert "It is so in 3 clusters: fleet/" in one
    assert "no quota" in another
    assert "clusters" not in another

    for kube in (*kubes.values(), other):
        kube.fail_with(None)
    fleet.clock.advance(timedelta(minutes=1))
    fleet.pump()
    resynced(fleet)
    [well] = here.texts[2:]
    assert "healthy again" in well
    assert "It is so in 4 clusters: " in well


def test_alertmanager_is_told_again_until_the_cluster_recovers(fleet: Fleet) -> None:
    """An alert that it loses is there again; a refusal is reported, and the end ends it."""
    with incident_managers() as managers:
        east = fleet.register("east", env="production")
        deny(east)
        secret = SECRET.replace("SLACK_TOKEN: xoxb-hidden", f"ALERTMANAGER_URL: {managers.url}/am")
        fleet.apply(CHECK.replace("type: Slack", "type: Alertmanager"), secret, OWN)
        fleet.pump()
        swept(fleet)
        [alert] = managers.opened.values()
        assert alert["labels"]["cluster"] == "fleet/east"

        managers.opened.clear()
        fleet.clock.advance(2 * PAUSE)
        fleet.pump()
        assert len(managers.opened) == 1

        fleet.apply(secret.replace("/am", "/gone"))
        fleet.clock.advance(2 * PAUSE)
        fleet.pump()
        [told] = [each for each in failures(fleet.installation()) if each.what == "notice"]
        assert "it answers 404" in told.sentence

        fleet.apply(secret)
        fleet.clock.advance(4 * PAUSE)
        fleet.pump()
        east.fail_with(None)
        fleet.apply(holder("own", config("own", "v: good")))
        fleet.publisher.publish([Resync("fleet/east")])
        fleet.pump()
        assert found(fleet).healthy
        fleet.clock.advance(2 * PAUSE)
        fleet.pump()
        assert managers.opened == {}
        count = len(managers.received)
        swept(fleet)
        assert len(managers.received) == count


def test_tells_nothing_of_a_cluster_that_was_always_well(fleet: Fleet, here: Chat) -> None:
    """Nor of one that the check does not select."""
    fleet.register("east", env="production")
    west = fleet.register("west", env="test")
    deny(west)
    fleet.apply(CHECK, SECRET, OWN)
    fleet.pump()
    swept(fleet)

    assert here.texts == []
    assert found(fleet).healthy
    assert fleet.records.conditions.of("fleet/west") == {}


EVENTS = CHECK.replace(
    """
  - name: slack
    type: Slack
    notificationRef: {apiVersion: v1, kind: Secret, namespace: default, name: slack}""",
    " [{name: event, type: KubernetesEvent}]",
)


def events(kube: FakeKube) -> list[dict[str, Any]]:
    return [dict(each) for each in kube.list(GVK("", "v1", "Event"))]


def test_tells_by_an_event_of_the_cluster_itself(fleet: Fleet) -> None:
    """It needs no Secret; one that is told twice is one, and what is well again is another."""
    east = fleet.register("east", env="production")
    fleet.apply(EVENTS, profile())
    fleet.pump()
    swept(fleet)
    [first] = events(east)
    assert first["type"] == "Warning"
    assert first["reason"] == "ClusterHealthCheck"
    assert first["involvedObject"]["name"] == "production"
    assert first["message"].startswith("Cluster fleet/east is unhealthy (production)\n")
    told = fleet.records.conditions.of("fleet/east")["production"]
    [notice] = told.value.notices
    unsure = replace(told.value, notices=(replace(notice, told=True, until=None),))
    fleet.records.conditions.put("fleet/east", "production", unsure, expect=told.token)
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    assert events(east) == [first]

    fleet.apply(holder("own", config("own")))
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    swept(fleet)
    assert sorted(each["type"] for each in events(east)) == ["Normal", "Warning"]


def test_each_time_that_a_cluster_is_not_well_has_its_event(fleet: Fleet) -> None:
    """It says since when: the one of the first time tells nothing of the second."""
    east = fleet.register("east", env="production")
    fleet.apply(EVENTS, profile())
    fleet.pump()
    swept(fleet)
    fleet.apply(holder("own", config("own")))
    fleet.pump()
    swept(fleet)
    fleet.declare.delete([("ConfigMap", "default", "own")])
    fleet.pump()
    swept(fleet)

    assert sorted(each["type"] for each in events(east)) == ["Normal", "Warning", "Warning"]


def test_tells_by_an_event_of_the_cluster_that_manages_others(fleet: Fleet) -> None:
    """As Sveltos does, where one is registered as that."""
    east = fleet.register("east", env="production")
    home = fleet.access.clusters["mgmt/mgmt"] = FakeKube("mgmt/mgmt")
    kept = fleet.records.clusters.get("fleet/east")
    assert kept
    fleet.declare.register(replace(kept.value, namespace="mgmt", name="mgmt", labels={}))
    deny(east)
    fleet.apply(EVENTS, OWN)
    fleet.pump()
    swept(fleet)

    assert [each["type"] for each in events(home)] == ["Warning"]
    assert events(east) == []


def test_tries_an_event_again_that_a_cluster_does_not_take(fleet: Fleet) -> None:
    """And says so, as of any other notice."""
    east = fleet.register("east", env="production")
    deny(east)
    fleet.apply(EVENTS, profile())
    fleet.pump()
    swept(fleet)
    told = [each for each in failures(fleet.installation()) if each.what == "notice"]
    assert [each.which for each in told] == ["event of production about fleet/east"]
    assert "may not apply" in told[0].sentence

    east.fail_with(None)
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    assert [each["type"] for each in events(east)] == ["Warning"]


def test_tells_a_program_what_it_tells_people(fleet: Fleet, here: Chat) -> None:
    """With an id by which it knows what came twice."""
    hook = CHECK.replace("type: Slack", "type: Webhook")
    deny(fleet.register("east", env="production"))
    fleet.apply(hook, SECRET.replace("SLACK_TOKEN: xoxb-hidden", f"WEBHOOK_URL: '{here.url}'"), OWN)
    fleet.pump()
    swept(fleet)
    told = fleet.records.conditions.of("fleet/east")["production"]
    [notice] = told.value.notices
    unsure = replace(told.value, notices=(replace(notice, told=True, until=None),))
    fleet.records.conditions.put("fleet/east", "production", unsure, expect=told.token)
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))

    [first, again] = [body for _, _, body in here.taken]
    assert first == again
    assert (first["cluster"], first["clusterHealthCheck"]) == ("fleet/east", "production")
    assert (first["healthy"], first["since"]) == (False, "2026-01-01T12:00:00Z")
    assert first["message"] in first["text"]


WORDED = CHECK.replace(
    "metadata: {name: production}",
    """
metadata:
  name: production
  annotations:
    bellhop.dev/notice: |
      {{ with .Cluster.metadata }}{{ .labels.env | upper }}: {{ .name }} is {{ end -}}
      {{ if .Healthy }}up{{ else }}down{{ end }}
      by {{ .ClusterHealthCheck.metadata.name }}: {{ .Message }}""",
)


def test_tells_it_in_the_words_of_a_template(fleet: Fleet, here: Chat) -> None:
    """Its first line is the subject."""
    deny(fleet.register("east", env="production"))
    fleet.apply(WORDED, SECRET, OWN)
    fleet.pump()
    swept(fleet)

    [text] = here.texts
    assert text.startswith("PRODUCTION: east is down\nby production: ClusterProfile/own: ")


@pytest.mark.parametrize(
    ("template", "subject", "length"),
    [
        pytest.param("a\rBcc: x@example.com", "a", 20, id="a header of its own"),
        pytest.param("a\x1b[2Jb\nc", "a[2Jb", 8, id="what moves a cursor"),
        pytest.param('{{ repeat 9000 "x" }}', 200 * "x", 4000, id="more than is read"),
    ],
)
def test_the_subject_is_one_line(template: str, subject: str, length: int) -> None:
    """Whatever a template makes of it: a mail's header ends with a line."""
    annotated = f"{{name: production, annotations: {{bellhop.dev/notice: {json.dumps(template)}}}}}"
    text = CHECK.replace("{name: production}", annotated)
    [check] = parse_all(read_documents(text, source="test.yaml"))
    assert isinstance(check, ClusterHealthCheck)
    east = Cluster("fleet", "east", {}, "v1.20.2", "", START)

    told = words(check, east, Condition(healthy=False, since=START), Limits())

    assert (told.subject, len(told.text)) == (subject, length)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        pytest.param(
            "{{ .Nobody.knows }}", "The template of this notice fails: template: ", id="fails"
        ),
        pytest.param(
            "{{ range until 100000000 }}x{{ end }}", "The template of this notice", id="loops"
        ),
        pytest.param("{{ if .Healthy }}well{{ end }}", "Since ", id="says nothing"),
    ],
)
def test_tells_it_in_our_words_where_a_template_fails(
    fleet: Fleet, here: Chat, template: str, said: str
) -> None:
    """Who is to be told is told, and of the template too."""
    name = "metadata: {name: production}"
    annotated = f"{name[:-1]}, annotations: {{bellhop.dev/notice: '{template}'}}}}"
    deny(fleet.register("east", env="production"))
    fleet.apply(CHECK.replace(name, annotated), SECRET, OWN)
    fleet.pump()
    swept(fleet)

    [text] = here.texts
    assert text.startswith("Cluster fleet/east is unhealthy (production)\n")
    assert said in text


def test_tries_again_with_pauses_and_says_so(fleet: Fleet, here: Chat) -> None:
    """A notice that fails is told by `show failures`, and is sent when it can be."""
    here.status = 503
    unwell(fleet)
    told = [each for each in failures(fleet.installation()) if each.what == "notice"]
    assert [each.which for each in told] == ["slack of production about fleet/east"]
    assert "it answers 503" in told[0].sentence
    assert len(here.taken) >= 1

    here.status = 200
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    assert found(fleet).notices[0].told is False
    assert [each for each in failures(fleet.installation()) if each.what == "notice"] == []


def test_a_message_that_comes_twice_tells_once(fleet: Fleet, here: Chat) -> None:
    """Whatever became of the first: what is being sent is claimed."""
    here.status = 503
    unwell(fleet)
    before = len(here.taken)
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))

    assert len(here.taken) == before


def test_a_cluster_that_changes_all_the_time_is_told_of_once_a_minute(
    fleet: Fleet, here: Chat
) -> None:
    """What was so in between is not told; what is so in the end is."""
    east = unwell(fleet)
    fleet.clock.advance(PAUSE)
    for _ in range(3):
        for error in (None, DeniedError("may not apply")):
            east.fail_with(error, "apply")
            fleet.apply(holder("own", config("own", f"n: '{len(here.taken)}{error}{_}'")))
            fleet.pump()
            fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    assert len(here.texts) == 2
    fleet.clock.advance(PAUSE)
    fleet.pump()

    assert "is unhealthy" in here.texts[-1]
    assert len(here.texts) == 3


PATIENT = CHECK.replace("type: Slack", "type: Slack\n    policy: {failingFor: 10m}")
SELDOM = CHECK.replace("type: Slack", "type: Slack\n    policy: {minInterval: 1h}")


def mended(fleet: Fleet, east: FakeKube) -> None:
    """Have all be well in a cluster, as it is seen at once."""
    east.fail_with(None, "apply")
    fleet.apply(holder("own", config("own", "n: mended")))
    fleet.pump()
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))


def test_what_ends_soon_is_not_told_to_the_patient(fleet: Fleet, here: Chat) -> None:
    """Nor its end; what goes on is, without a sweep."""
    east = fleet.register("east", env="production")
    deny(east)
    fleet.apply(PATIENT, SECRET, OWN)
    fleet.pump()
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    assert not found(fleet).healthy
    fleet.clock.advance(timedelta(minutes=9))
    mended(fleet, east)
    assert found(fleet).healthy
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    assert here.texts == []

    deny(east)
    fleet.apply(holder("own", config("own", "n: again")))
    fleet.pump()
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    timer = fleet.records.timers.get("notice/fleet/east")
    assert timer
    assert timer.value.at == found(fleet).since + timedelta(minutes=10)
    fleet.clock.advance(timedelta(minutes=10))
    fleet.pump()
    assert [each.partition("\n")[0] for each in here.texts] == [
        "Cluster fleet/east is unhealthy (production)"
    ]


def test_who_hears_seldom_hears_what_is_so_in_the_end(fleet: Fleet, here: Chat) -> None:
    """An hour after the notice before; a notice that fails is tried again as ever."""
    here.status = 503
    east = fleet.register("east", env="production")
    deny(east)
    fleet.apply(SELDOM, SECRET, OWN)
    fleet.pump()
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    here.status = 200
    here.taken.clear()
    fleet.clock.advance(2 * PAUSE)
    fleet.pump()
    assert len(here.texts) == 1
    told_at = fleet.clock.now()

    mended(fleet, east)
    fleet.clock.advance(timedelta(minutes=50))
    fleet.pump()
    assert len(here.texts) == 1
    fleet.clock.advance(told_at + timedelta(hours=1) - fleet.clock.now())
    fleet.pump()
    assert [each.partition("\n")[0] for each in here.texts[1:]] == [
        "Cluster fleet/east is healthy again (production)"
    ]


def test_who_dies_before_it_is_sent_has_it_sent_later(fleet: Fleet, here: Chat) -> None:
    """What is owed is on record, and when its claim ends somebody sends it."""
    sent: list[str] = []

    def dies(*told: object) -> None:
        sent.append(str(told[0]))
        raise KeyboardInterrupt

    stage = fleet.stages["sweep"]
    assert isinstance(stage, HealthNotifier)
    send, stage._send = stage._send, dies
    fleet.register("east", env="production")
    deny(fleet.access.clusters["fleet/east"])
    fleet.apply(SECRET, OWN)
    fleet.pump()
    fleet.apply(CHECK)
    with pytest.raises(KeyboardInterrupt):
        stage.handle(CheckHealth("fleet/east"))
    stage._send = send
    assert sent == ["Slack"]
    assert here.texts == []

    fleet.clock.advance(PAUSE)
    fleet.pump()
    assert len(here.texts) == 1


def test_a_check_that_goes_leaves_nothing(fleet: Fleet, here: Chat) -> None:
    """One that comes back tells anew."""
    unwell(fleet)
    fleet.declare.delete([("ClusterHealthCheck", "", "production")])
    fleet.pump()
    swept(fleet)
    assert fleet.records.conditions.of("fleet/east") == {}

    fleet.apply(CHECK)
    fleet.pump()
    assert len(here.texts) == 2


def test_says_which_secret_is_missing(fleet: Fleet, here: Chat) -> None:
    """And sends when it is there."""
    east = fleet.register("east", env="production")
    deny(east)
    fleet.apply(CHECK, OWN)
    fleet.pump()
    swept(fleet)
    assert "there is no Secret 'default/slack', which it names; apply it" in (
        found(fleet).notices[0].error
    )

    fleet.apply(SECRET)
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    assert len(here.texts) == 1


def test_two_at_once_tell_once(fleet: Fleet, here: Chat) -> None:
    """Who comes while another sends finds it claimed."""
    stage = fleet.stages["sweep"]
    assert isinstance(stage, HealthNotifier)
    send = stage._send

    def slow(*told: Any) -> None:
        stage.handle(CheckHealth("fleet/east"))
        send(*told)

    stage._send = slow
    unwell(fleet)

    assert len(here.texts) == 1
    assert found(fleet).notices[0].told is False


def test_what_another_finds_due_sooner_is_looked_at_as_soon(fleet: Fleet, here: Chat) -> None:
    """Who looked at the same time, and has less to wait for, is not made to wait longer."""
    here.status = 503
    unwell(fleet)
    soon = fleet.clock.now() + timedelta(seconds=1)
    name = notice_timer("fleet/east")
    fleet.records.timers.set(name, soon, CheckHealth("fleet/east").message().body)
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))

    timer = fleet.records.timers.get(name)
    assert timer
    assert timer.value.at == soon
