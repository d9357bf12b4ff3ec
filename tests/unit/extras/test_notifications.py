"""Notifications of unhealthy clusters, and their times; the texts go to a real chat server."""

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
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import DeniedError
from bellhop.extras.health.notifier import HealthNotifier
from bellhop.extras.health.records import Condition
from bellhop.extras.health.state import PAUSE
from bellhop.extras.health.texts import words
from bellhop.gotemplate import Limits
from bellhop.logs import Log
from bellhop.state.cluster import Cluster
from bellhop.state.delays import notice_timer
from bellhop.state.messages import CheckHealth
from tests.fakes.chat import Chat, chat
from tests.fakes.clock import START
from tests.fakes.fleet import Fleet
from tests.fakes.incidents import incident_managers
from tests.fakes.kept import require_value
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
    """Have a fleet notify a chat, as the compositions have it notify people."""
    send = Sender(LOCAL, {kind: f"{here.url}/{kind}" for kind in ENDPOINTS}).send
    log = Log(fleet.output)
    fleet.handlers[CheckHealth] = HealthNotifier(fleet.installation(), log, send=send).handle


def deny(kube: FakeKube) -> None:
    kube.fail_with(DeniedError("may not apply"), "apply")


def resynced_east(fleet: Fleet) -> None:
    fleet.clock.advance(timedelta(minutes=5))
    fleet.resync()


def resynced(fleet: Fleet) -> None:
    """Have all clusters listed, one after the other."""
    fleet.clock.advance(timedelta(minutes=5))
    for each in fleet.catalogs.current().clusters:
        fleet.resync(each)


def found(fleet: Fleet) -> Condition:
    return fleet.records.conditions.of("fleet/east")["production"].value


def unwell(fleet: Fleet) -> FakeKube:
    """Return a cluster whose failure was notified."""
    east = fleet.register("east", env="production")
    deny(east)
    fleet.deploy(CHECK, SECRET, OWN)
    resynced_east(fleet)
    return east


def test_notifies_once_of_a_failure_and_once_of_its_end(fleet: Fleet, here: Chat) -> None:
    """With the profile and the reason, and without a word of the Secret."""
    east = unwell(fleet)
    [text] = here.texts
    assert text.startswith("Cluster fleet/east is unhealthy (production)\nClusterProfile/own: ")
    assert "may not apply" in text
    assert text.endswith("\nSince 2026-01-01 12:00 UTC.")
    resynced_east(fleet)
    assert len(here.texts) == 1

    east.fail_with(None)
    fleet.wait(timedelta(hours=1))
    resynced_east(fleet)
    resynced_east(fleet)
    assert [each.partition("\n")[0] for each in here.texts[1:]] == [
        "Cluster fleet/east is healthy again (production)"
    ]
    assert "hidden" not in fleet.output.getvalue()


def test_one_cause_in_several_clusters_is_notified_once(fleet: Fleet, here: Chat) -> None:
    """The clusters are counted; one that fails otherwise is another notice, and so is its end."""
    kubes = {name: fleet.register(name, env="production") for name in ("east", "west", "south")}
    other = fleet.register("north", env="production")
    fleet.deploy(CHECK, SECRET, OWN)
    for name, kube in kubes.items():
        kube.fail_with(DeniedError(f"may not apply on 'fleet/{name}'"), "apply")
    other.fail_with(DeniedError("no quota"), "apply")
    fleet.deploy(holder("own", config("own", "v: bad")))
    resynced(fleet)
    one, another = sorted(here.texts, key=len, reverse=True)

    assert one.startswith("Cluster fleet/")
    assert "It is so in 3 clusters: fleet/" in one
    assert "no quota" in another
    assert "clusters" not in another

    for kube in (*kubes.values(), other):
        kube.fail_with(None)
    fleet.wait(timedelta(minutes=1))
    resynced(fleet)
    [well] = here.texts[2:]
    assert "healthy again" in well
    assert "It is so in 4 clusters: " in well


def test_alertmanager_is_notified_again_until_the_cluster_recovers(fleet: Fleet) -> None:
    """An alert that it loses is there again; a refusal is reported, and the end ends it."""
    with incident_managers() as managers:
        east = fleet.register("east", env="production")
        deny(east)
        secret = SECRET.replace("SLACK_TOKEN: xoxb-hidden", f"ALERTMANAGER_URL: {managers.url}/am")
        fleet.deploy(CHECK.replace("type: Slack", "type: Alertmanager"), secret, OWN)
        resynced_east(fleet)
        [alert] = managers.opened.values()
        assert alert["labels"]["cluster"] == "fleet/east"

        managers.opened.clear()
        fleet.wait(2 * PAUSE)
        assert len(managers.opened) == 1

        fleet.apply(secret.replace("/am", "/gone"))
        fleet.wait(2 * PAUSE)
        [failure] = [each for each in list_failures(fleet.installation()) if each.type == "notice"]
        assert "it answers 404" in failure.message

        fleet.apply(secret)
        fleet.wait(4 * PAUSE)
        east.fail_with(None)
        fleet.apply(holder("own", config("own", "v: good")))
        fleet.resync()
        assert found(fleet).healthy
        fleet.wait(2 * PAUSE)
        assert managers.opened == {}
        count = len(managers.received)
        resynced_east(fleet)
        assert len(managers.received) == count


def test_a_cluster_that_was_always_healthy_is_not_notified(fleet: Fleet, here: Chat) -> None:
    """Nor of one that the check does not select."""
    fleet.register("east", env="production")
    west = fleet.register("west", env="test")
    deny(west)
    fleet.deploy(CHECK, SECRET, OWN)
    resynced_east(fleet)

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


def test_writes_an_event_of_the_cluster_itself(fleet: Fleet) -> None:
    """It needs no Secret; two of one failure are one, and the recovery is another."""
    east = fleet.register("east", env="production")
    fleet.deploy(EVENTS, profile())
    resynced_east(fleet)
    [first] = events(east)
    assert first["type"] == "Warning"
    assert first["reason"] == "ClusterHealthCheck"
    assert first["involvedObject"]["name"] == "production"
    assert first["message"].startswith("Cluster fleet/east is unhealthy (production)\n")
    condition = fleet.records.conditions.of("fleet/east")["production"]
    [notice] = condition.value.notices
    unsure = replace(condition.value, notices=(replace(notice, told=True, until=None),))
    fleet.records.conditions.put("fleet/east", "production", unsure, expect=condition.token)
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    assert events(east) == [first]

    fleet.apply(holder("own", config("own")))
    fleet.wait(timedelta(hours=1))
    resynced_east(fleet)
    assert sorted(each["type"] for each in events(east)) == ["Normal", "Warning"]


def test_each_failure_of_a_cluster_has_its_event(fleet: Fleet) -> None:
    """It has the time of the failure, so that the first one does not count for the second."""
    east = fleet.register("east", env="production")
    fleet.deploy(EVENTS, profile())
    resynced_east(fleet)
    fleet.deploy(holder("own", config("own")))
    resynced_east(fleet)
    fleet.delete("ConfigMap", "own", "default")
    resynced_east(fleet)

    assert sorted(each["type"] for each in events(east)) == ["Normal", "Warning", "Warning"]


def test_writes_an_event_of_the_management_cluster(fleet: Fleet) -> None:
    """As Sveltos does, where one is registered as that."""
    east = fleet.register("east", env="production")
    home = fleet.access.clusters["mgmt/mgmt"] = FakeKube("mgmt/mgmt")
    kept = require_value(fleet.records.clusters.get("fleet/east"))
    fleet.declare.register(replace(kept, namespace="mgmt", name="mgmt", labels={}))
    deny(east)
    fleet.deploy(EVENTS, OWN)
    resynced_east(fleet)

    assert [each["type"] for each in events(home)] == ["Warning"]
    assert events(east) == []


def test_tries_an_event_again_that_a_cluster_does_not_take(fleet: Fleet) -> None:
    """And says so, as of any other notice."""
    east = fleet.register("east", env="production")
    deny(east)
    fleet.deploy(EVENTS, profile())
    resynced_east(fleet)
    failures = [each for each in list_failures(fleet.installation()) if each.type == "notice"]
    assert [each.about for each in failures] == ["event of production about fleet/east"]
    assert "may not apply" in failures[0].message

    east.fail_with(None)
    fleet.wait(timedelta(hours=1))
    assert [each["type"] for each in events(east)] == ["Warning"]


def test_notifies_a_program_as_it_notifies_people(fleet: Fleet, here: Chat) -> None:
    """With an id by which it knows what came twice."""
    hook = CHECK.replace("type: Slack", "type: Webhook")
    deny(fleet.register("east", env="production"))
    fleet.deploy(
        hook, SECRET.replace("SLACK_TOKEN: xoxb-hidden", f"WEBHOOK_URL: '{here.url}'"), OWN
    )
    resynced_east(fleet)
    condition = fleet.records.conditions.of("fleet/east")["production"]
    [notice] = condition.value.notices
    unsure = replace(condition.value, notices=(replace(notice, told=True, until=None),))
    fleet.records.conditions.put("fleet/east", "production", unsure, expect=condition.token)
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


def test_notifies_in_the_text_of_a_template(fleet: Fleet, here: Chat) -> None:
    """Its first line is the subject."""
    deny(fleet.register("east", env="production"))
    fleet.deploy(WORDED, SECRET, OWN)
    resynced_east(fleet)

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
    """A template cannot add a line: a mail's header ends with one."""
    annotated = f"{{name: production, annotations: {{bellhop.dev/notice: {json.dumps(template)}}}}}"
    text = CHECK.replace("{name: production}", annotated)
    [check] = parse_all(read_documents(text, source="test.yaml"))
    assert isinstance(check, ClusterHealthCheck)
    east = Cluster("fleet", "east", {}, "v1.20.2", "", START)

    made = words(check, east, Condition(healthy=False, since=START), Limits())

    assert (made.subject, len(made.text)) == (subject, length)


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
def test_notifies_in_our_text_if_a_template_fails(
    fleet: Fleet, here: Chat, template: str, said: str
) -> None:
    """The notification is sent, with the error of the template."""
    name = "metadata: {name: production}"
    annotated = f"{name[:-1]}, annotations: {{bellhop.dev/notice: '{template}'}}}}"
    deny(fleet.register("east", env="production"))
    fleet.deploy(CHECK.replace(name, annotated), SECRET, OWN)
    resynced_east(fleet)

    [text] = here.texts
    assert text.startswith("Cluster fleet/east is unhealthy (production)\n")
    assert said in text


def test_retries_with_pauses_and_shows_it(fleet: Fleet, here: Chat) -> None:
    """A failed notification is in `show failures`, and is sent when it can be."""
    here.status = 503
    unwell(fleet)
    failures = [each for each in list_failures(fleet.installation()) if each.type == "notice"]
    assert [each.about for each in failures] == ["slack of production about fleet/east"]
    assert "it answers 503" in failures[0].message
    assert len(here.taken) >= 1

    here.status = 200
    fleet.wait(timedelta(hours=1))
    assert found(fleet).notices[0].told is False
    assert [each for each in list_failures(fleet.installation()) if each.type == "notice"] == []


def test_a_redelivered_message_notifies_once(fleet: Fleet, here: Chat) -> None:
    """A notification is claimed before it is sent, whatever became of the first."""
    here.status = 503
    unwell(fleet)
    before = len(here.taken)
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))

    assert len(here.taken) == before


def test_a_cluster_that_changes_all_the_time_is_notified_once_a_minute(
    fleet: Fleet, here: Chat
) -> None:
    """States in between are not sent; the last one is."""
    east = unwell(fleet)
    fleet.clock.advance(PAUSE)
    for _ in range(3):
        for error in (None, DeniedError("may not apply")):
            east.fail_with(error, "apply")
            fleet.deploy(holder("own", config("own", f"n: '{len(here.taken)}{error}{_}'")))
            fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    assert len(here.texts) == 2
    fleet.wait(PAUSE)

    assert "is unhealthy" in here.texts[-1]
    assert len(here.texts) == 3


PATIENT = CHECK.replace("type: Slack", "type: Slack\n    policy: {failingFor: 10m}")
SELDOM = CHECK.replace("type: Slack", "type: Slack\n    policy: {minInterval: 1h}")


def mended(fleet: Fleet, east: FakeKube) -> None:
    """Make a cluster healthy, with immediate effect."""
    east.fail_with(None, "apply")
    fleet.deploy(holder("own", config("own", "n: mended")))
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))


def test_a_short_failure_is_not_notified_with_failing_for(fleet: Fleet, here: Chat) -> None:
    """Nor its end; a lasting failure is, without a resync."""
    east = fleet.register("east", env="production")
    deny(east)
    fleet.deploy(PATIENT, SECRET, OWN)
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    assert not found(fleet).healthy
    fleet.clock.advance(timedelta(minutes=9))
    mended(fleet, east)
    assert found(fleet).healthy
    fleet.wait(timedelta(hours=1))
    assert here.texts == []

    deny(east)
    fleet.deploy(holder("own", config("own", "n: again")))
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    timer = require_value(fleet.records.timers.get("notice/fleet/east"))
    assert timer.at == found(fleet).since + timedelta(minutes=10)
    fleet.wait(timedelta(minutes=10))
    assert [each.partition("\n")[0] for each in here.texts] == [
        "Cluster fleet/east is unhealthy (production)"
    ]


def test_min_interval_sends_the_last_state_when_it_ends(fleet: Fleet, here: Chat) -> None:
    """An hour after the notice before; a notice that fails is tried again as ever."""
    here.status = 503
    east = fleet.register("east", env="production")
    deny(east)
    fleet.deploy(SELDOM, SECRET, OWN)
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))
    here.status = 200
    here.taken.clear()
    fleet.wait(2 * PAUSE)
    assert len(here.texts) == 1
    sent_at = fleet.clock.now()

    mended(fleet, east)
    fleet.wait(timedelta(minutes=50))
    assert len(here.texts) == 1
    fleet.wait(sent_at + timedelta(hours=1) - fleet.clock.now())
    assert [each.partition("\n")[0] for each in here.texts[1:]] == [
        "Cluster fleet/east is healthy again (production)"
    ]


def test_a_notification_is_sent_after_a_death_before_sending(fleet: Fleet, here: Chat) -> None:
    """A due notification is recorded, and when its claim ends another worker sends it."""
    sent: list[str] = []

    def dies(*arguments: object) -> None:
        sent.append(str(arguments[0]))
        raise KeyboardInterrupt

    stage: Any = fleet.handlers[CheckHealth]
    stage = stage.__self__
    send, stage._send = stage._send, dies
    fleet.register("east", env="production")
    deny(fleet.access.clusters["fleet/east"])
    fleet.deploy(SECRET, OWN)
    fleet.apply(CHECK)
    with pytest.raises(KeyboardInterrupt):
        stage.handle(CheckHealth("fleet/east"))
    stage._send = send
    assert sent == ["Slack"]
    assert here.texts == []

    fleet.wait(PAUSE)
    assert len(here.texts) == 1


def test_a_deleted_check_leaves_nothing(fleet: Fleet, here: Chat) -> None:
    """A check that is applied again notifies again."""
    unwell(fleet)
    fleet.delete("ClusterHealthCheck", "production")
    resynced_east(fleet)
    assert fleet.records.conditions.of("fleet/east") == {}

    fleet.deploy(CHECK)
    assert len(here.texts) == 2


def test_says_which_secret_is_missing(fleet: Fleet, here: Chat) -> None:
    """And sends when it is there."""
    east = fleet.register("east", env="production")
    deny(east)
    fleet.deploy(CHECK, OWN)
    resynced_east(fleet)
    assert "there is no Secret 'default/slack', which it names; apply it" in (
        found(fleet).notices[0].error
    )

    fleet.apply(SECRET)
    fleet.wait(timedelta(hours=1))
    assert len(here.texts) == 1


def test_two_workers_at_once_notify_once(fleet: Fleet, here: Chat) -> None:
    """The second finds the notification claimed."""
    stage: Any = fleet.handlers[CheckHealth]
    stage = stage.__self__
    send = stage._send

    def slow(*arguments: Any) -> None:
        stage.handle(CheckHealth("fleet/east"))
        send(*arguments)

    stage._send = slow
    unwell(fleet)

    assert len(here.texts) == 1
    assert found(fleet).notices[0].told is False


def test_the_earlier_of_two_due_times_counts(fleet: Fleet, here: Chat) -> None:
    """A worker that read at the same time, and has an earlier time, is not delayed."""
    here.status = 503
    unwell(fleet)
    soon = fleet.clock.now() + timedelta(seconds=1)
    name = notice_timer("fleet/east")
    fleet.records.timers.set(name, soon, CheckHealth("fleet/east").message().body)
    fleet.stages["sweep"].handle(CheckHealth("fleet/east"))

    timer = require_value(fleet.records.timers.get(name))
    assert timer.at == soon
