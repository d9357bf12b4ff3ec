"""Objects that are refused: an Event on each, and a line in `bellhop show failures`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bellhop.configuration.object_events import make_event
from bellhop.core.gvk import GVK
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import DeniedError
from bellhop.state.messages import WriteStatus
from tests.fakes.hooks import failing
from tests.fakes.manifests import profile, source
from tests.unit.configuration.hub import HUB, Hub

EVENT = GVK("", "v1", "Event")
WRONG = source().replace("kind: Service", "kind: 7")


def failures(hub: Hub) -> list[tuple[str, str]]:
    """Return the lines of `bellhop show failures` about objects: which, and the sentence."""
    found = list_failures(hub.fleet.installation())
    return [(each.about, each.message) for each in found if each.type == f"object in {HUB}"]


def test_a_refused_object_without_a_status_gets_one_event_and_a_line(hub: Hub) -> None:
    """The line is there until the object is valid, or deleted."""
    hub.write(WRONG)

    [event] = hub.kube.objects(EVENT)
    assert (event["type"], event["reason"]) == ("Warning", "Invalid")
    about = event["involvedObject"]
    assert (about["kind"], about["name"], about["apiVersion"]) == (
        "EventSource",
        "watched",
        "lib.projectsveltos.io/v1beta1",
    )
    assert about["uid"] == hub.read("EventSource", "watched").uid
    assert "kind" in event["message"]
    [(which, said)] = failures(hub)
    assert which == "EventSource watched"
    assert said.endswith("; it is not used until it is changed there")

    hub.write(source())
    assert failures(hub) == []
    hub.write(WRONG)
    [(_, said)] = failures(hub)
    assert said.endswith("; its former version stays in force until it is changed there")
    assert len(hub.kube.objects(EVENT)) == 1
    hub.delete("EventSource", "watched")
    assert failures(hub) == []


def test_a_repeated_reading_writes_nothing(hub: Hub) -> None:
    """Nor does a message that comes again, nor a death before the write is recorded."""
    hub.write(WRONG)
    with (
        failing(hub.fleet.records.written, "put", KeyboardInterrupt()),
        pytest.raises(KeyboardInterrupt),
    ):
        hub.write(source().replace("Resources: true", "Resources: perhaps"))
    hub.fleet.wait(timedelta(minutes=10))
    found = hub.kube.objects(EVENT)
    assert len(found) == 2

    for _ in range(3):
        hub.fleet.resync(HUB)
        hub.fleet.publisher.publish([WriteStatus("EventSource", "", "watched")])
        hub.fleet.wait(timedelta(days=8))
    assert hub.kube.objects(EVENT) == found


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_a_refused_holder_is_seen_without_its_values(hub: Hub, kind: str) -> None:
    """It is in the namespace of the object."""
    named = profile().replace("kind: ConfigMap", f"kind: {kind}")
    field = "binaryData" if kind == "ConfigMap" else "data"
    wrong = f"""
apiVersion: v1
kind: {kind}
metadata: {{name: own, namespace: default}}
{field}: {{word: hidden!}}
"""
    hub.write(named, wrong)

    [event] = hub.kube.objects(EVENT)
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"]["kind"] == kind
    [(which, said)] = failures(hub)
    assert which == f"{kind} default/own"
    for text in (event["message"], said):
        assert "'word' is not base64" in text
        assert "hidden" not in text

    hub.fleet.resync(HUB)
    assert len(hub.kube.objects(EVENT)) == 1
    hub.write(wrong.replace("hidden!", "aGlkZGVu"))
    assert failures(hub) == []


def test_an_object_that_files_hold_says_so(hub: Hub) -> None:
    hub.fleet.deploy(source())
    hub.write(source("Pod"))

    [event] = hub.kube.objects(EVENT)
    assert event["reason"] == "OtherOrigin"
    assert "files hold" in event["message"]
    assert len(failures(hub)) == 1


def test_an_event_that_is_refused_holds_nothing_up(hub: Hub) -> None:
    """The status is there, and the Event once the right is."""
    with failing(hub.kube, "apply", DeniedError("no")):
        hub.write(profile(more="tier: 0"))
    stored = hub.kube.objects(GVK("config.projectsveltos.io", "v1beta1", "ClusterProfile"))
    assert stored[0]["status"]["conditions"]
    assert hub.kube.objects(EVENT) == []

    hub.fleet.resync(HUB)
    assert len(hub.kube.objects(EVENT)) == 1


def test_a_preview_shows_nothing_in_the_cluster(hub: Hub) -> None:
    hub.fleet.declare.configure(HUB, "preview")
    hub.write(WRONG)

    assert hub.read("EventSource", "watched").state == "Rejected"
    assert (hub.kube.objects(EVENT), failures(hub)) == ([], [])


def test_a_long_message_is_cut() -> None:
    """To the bytes that are usual, and not within a character."""
    about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    found = make_event(about, "1", "Invalid", "a" + "ü" * 2000, datetime(2026, 1, 1, tzinfo=UTC))
    assert found["message"] == "a" + "ü" * 511
