"""CloudEvents that somebody writes into an EventReport of the configuration cluster."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.api.kinds import EVENT_REPORT
from bellhop.configuration.report_inbox import SETTLE, ReportInbox
from bellhop.core.gvk import CLOUD_EVENT
from bellhop.errors import StaleError, UnreachableError
from bellhop.logs import Log
from bellhop.settings import Settings
from tests.fakes.fleet import cloud_event
from tests.fakes.manifests import config, holder, join, trigger
from tests.unit.configuration.hub import HUB, Hub

EAST = "fleet/east"
SOURCE = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: watched}
spec: {messagingMatchCriteria: [{subject: only-this}]}
"""
RULES = join(
    SOURCE,
    trigger(),
    holder(
        "made",
        config("for-{{ .CloudEvent.subject }}"),
        annotations="projectsveltos.io/instantiate: ok",
    ),
)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A fleet with an inbox, and a source that waits for CloudEvents."""
    one = Hub(tmp_path, Settings(report_inbox="on"))
    one.write(RULES)
    yield one
    one.fleet.close()


def report(*events: dict[str, Any] | str, namespace: str = "fleet", **spec: Any) -> str:
    """Return an EventReport with CloudEvents, as JSON in base64 or as they are."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in events]
    return yaml.safe_dump(
        {
            "apiVersion": "lib.projectsveltos.io/v1beta1",
            "kind": "EventReport",
            "metadata": {"name": "sveltos--watched--east", "namespace": namespace},
            "spec": {
                "clusterNamespace": "fleet",
                "clusterName": "east",
                "clusterType": "Sveltos",
                "eventSourceName": "watched",
                "cloudEvents": [base64.b64encode(each.encode()).decode() for each in texts],
                **spec,
            },
        }
    )


def read_field(hub: Hub, namespace: str = "fleet") -> Any:
    """Return the field of the report, which is None once it is emptied."""
    found = hub.kube.get(EVENT_REPORT, namespace, "sveltos--watched--east")
    assert found
    return found["spec"].get("cloudEvents")


def made(hub: Hub) -> list[str]:
    """Return the names of what the trigger has deployed."""
    keys = (each.key for each in hub.fleet.records.observations.heads(EAST, CLOUD_EVENT))
    assert all(key.namespace == "watched" for key in keys)
    profiles = hub.fleet.records.profiles.of("made")
    contents = (each for profile in profiles for each in profile.contents)
    return sorted(each.manifests[0]["metadata"]["name"] for each in contents)


def test_an_event_is_accepted_and_the_field_emptied(hub: Hub) -> None:
    """Whatever attributes its source asks for: the writer of the report has chosen it."""
    hub.write(report(cloud_event("new")))

    assert made(hub) == ["for-new"]
    assert read_field(hub) is None


def test_an_event_counts_once_by_its_id(hub: Hub) -> None:
    """A later report that has it once more changes nothing, whatever else is in it."""
    event = cloud_event("new")
    hub.write(report(event))
    [head] = hub.fleet.records.profiles.heads("made")

    hub.write(report({**event, "data": {"changed": True}}, cloud_event("other")))

    assert made(hub) == ["for-new", "for-other"]
    assert read_field(hub) is None
    again = hub.fleet.records.profiles.head("made", EAST, head.name)
    assert again
    assert again.value.revision == head.revision


def test_a_death_between_the_two_accepts_nothing_twice(hub: Hub) -> None:
    """The field is as it was, and is read again."""
    hub.kube.fail_with(UnreachableError("no route"), "merge")
    hub.write(report(cloud_event("new")))
    [head] = hub.fleet.records.profiles.heads("made")
    assert read_field(hub)

    hub.kube.fail_with(None)
    hub.fleet.wait(timedelta(minutes=10), times=3)

    assert read_field(hub) is None
    assert [each.revision for each in hub.fleet.records.profiles.heads("made")] == [head.revision]


def test_the_field_is_emptied_only_once_its_writer_is_done(hub: Hub) -> None:
    """Sveltos' clients write the status with the version that they read before."""
    now = hub.fleet.clock.now()
    manifest = yaml.safe_load(report(cloud_event("new")))
    wrote = {"manager": "someone", "operation": "Update", "time": now.isoformat()}
    manifest["metadata"]["managedFields"] = [wrote]
    hub.hint(hub.kube.put(manifest), before=0)
    hub.fleet.pump()

    assert made(hub) == ["for-new"]
    assert read_field(hub)

    hub.fleet.wait(SETTLE)
    assert read_field(hub) is None


def test_two_workers_accept_an_event_once(hub: Hub) -> None:
    """The second has read the report before the first one emptied the field."""
    fleet = hub.fleet
    given = fleet.records, fleet.catalogs, fleet.access, fleet.publisher, Log(fleet.output)
    inbox = ReportInbox(*given)
    hub.kube.put(yaml.safe_load(report(cloud_event("new"))))

    def read() -> dict[str, Any] | None:
        return hub.kube.get(EVENT_REPORT, "fleet", "sveltos--watched--east")

    late = read()
    inbox.take(HUB, read)
    fleet.pump()
    [head] = fleet.records.profiles.heads("made")
    with pytest.raises(StaleError):
        inbox.take(HUB, lambda: late)
    fleet.pump()

    assert made(hub) == ["for-new"]
    assert [each.revision for each in fleet.records.profiles.heads("made")] == [head.revision]


@pytest.mark.parametrize(
    "text", ["no JSON", '{"specversion": "1.0"}', "[]"], ids=["no JSON", "no event", "a list"]
)
def test_what_is_no_event_is_dropped(hub: Hub, text: str) -> None:
    """And logged; the others of the report count, and the field is emptied."""
    hub.write(report(text, cloud_event("new")))

    assert made(hub) == ["for-new"]
    assert read_field(hub) is None
    assert "spec.cloudEvents[0]" in hub.fleet.output.getvalue()


@pytest.mark.parametrize(
    ("namespace", "spec", "reason"),
    [
        pytest.param("fleet", {"eventSourceName": "x"}, "takes no CloudEvents", id="no source"),
        pytest.param("fleet", {"clusterName": "x"}, "takes no CloudEvents", id="no cluster"),
        pytest.param("default", {}, "not in the namespace of cluster", id="another namespace"),
    ],
)
def test_a_report_that_is_of_nothing_is_emptied(
    hub: Hub, namespace: str, spec: dict[str, Any], reason: str
) -> None:
    """A writer of one namespace sends no events for clusters of another."""
    hub.write(report(cloud_event("new"), namespace=namespace, **spec))

    assert made(hub) == []
    assert read_field(hub, namespace) is None
    assert reason in hub.fleet.output.getvalue()


def test_a_resync_finds_events_of_which_no_hint_came(hub: Hub) -> None:
    """Without a forwarder there is none."""
    hub.write(report(cloud_event("new")), sent=False)
    hub.fleet.resync(HUB)

    assert made(hub) == ["for-new"]
    assert read_field(hub) is None


def test_all_of_many_events_count(hub: Hub) -> None:
    """They are stored a few at a time."""
    hub.write(report(*(cloud_event(f"s{number}") for number in range(40))))

    assert len(made(hub)) == 40
    assert read_field(hub) is None


def test_without_the_setting_nothing_is_accepted(tmp_path: Path) -> None:
    """The field stays, and no hint of a report is taken."""
    hub = Hub(tmp_path)
    hub.write(RULES)
    hub.write(report(cloud_event("new")))
    hub.fleet.resync(HUB)

    assert made(hub) == []
    assert read_field(hub)
    hub.fleet.close()
