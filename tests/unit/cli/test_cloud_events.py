"""CloudEvents in commands: selected ones, stored ones, and the reason why one matches."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
import yaml

from bellhop.api.kinds import parse_all, read_documents
from bellhop.installation import Installation
from bellhop.rendering.cloud_events import CloudEvent
from bellhop.state.cluster import Cluster
from bellhop.state.match import Match, Observation
from tests.fakes.fleet import cloud_event
from tests.unit.cli.conftest import Bellhop

MANIFESTS = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata:
  name: builds
  annotations: {bellhop.dev/cloud-event-ttl: 1h30m}
spec:
  messagingMatchCriteria:
  - cloudEventSource: ^ci
    cloudEventType: built$
    subject: ^ci[.]
    evaluate: "function evaluate() return {matching = true} end"
  - cloudEventSubject: ^web$
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: announce}
spec:
  sourceClusterSelector: {matchLabels: {env: fv}}
  eventSourceName: builds
  oneForEvent: true
  policyRefs: [{kind: ConfigMap, namespace: default, name: build}]
"""
WEB = CloudEvent(cloud_event("web"))
NAME = f"builds/{WEB.name}"


@pytest.fixture
def received(here: Installation) -> Installation:
    """One event that is kept, and matches."""
    now, place = datetime.now(UTC), "default/workload"
    here.declare.apply(parse_all(list(read_documents(MANIFESTS, source="test.yaml"))))
    here.declare.register(Cluster("default", "workload", {"env": "fv"}, "v1.20.2", "x", now))
    key, manifest = WEB.key("builds"), WEB.manifest("builds")
    here.records.observations.put(Observation(place, key, WEB.uid, 1, manifest, now))
    here.records.matches.put(Match(place, "builds", key, matching=True, digest="x", since=now))
    return here


@pytest.mark.usefixtures("received")
def test_describes_what_is_asked_for_and_what_is_kept(bellhop: Bellhop) -> None:
    output = " ".join(bellhop("describe", "eventsource", "builds").stdout.split())
    row = bellhop("get", "eventsource", "-o", "json").stdout

    assert (
        "CloudEvent, source ~ ^ci, type ~ built$, messagingsubject ~ ^ci[.], a Lua script" in output
    )
    assert "CloudEvent, subject ~ ^web$" in output
    assert "a CloudEvent for 1h30m after it came" in output
    assert f"CloudEvent {NAME}" in output
    assert "messagingMatchCriteria" in row


@pytest.mark.usefixtures("received")
def test_a_report_has_events_as_sveltos_writes_them(bellhop: Bellhop) -> None:
    """They are JSON in base64, and none of the resources."""
    [report] = yaml.safe_load_all(bellhop("get", "eventreport", "-o", "yaml").stdout)
    report = report["items"][0] if report.get("kind") == "List" else report

    assert report["spec"]["matchingResources"] == []
    [output] = report["spec"]["cloudEvents"]
    assert json.loads(base64.b64decode(output)) == cloud_event("web")


@pytest.mark.usefixtures("received")
def test_explains_an_event(bellhop: Bellhop) -> None:
    result = bellhop("explain", "workload", "cloudevent", NAME)

    assert result.exit_code == 0, result.stderr
    output = " ".join(result.stdout.split())
    assert "its attributes match" in output
    assert "no cluster has CloudEvents: what is kept is what was sent" in output


@pytest.mark.usefixtures("received")
def test_explains_a_trigger_to_which_nothing_was_sent(
    bellhop: Bellhop, received: Installation
) -> None:
    received.records.matches.delete("default/workload", "builds", WEB.key("builds"))
    received.records.observations.delete("default/workload", WEB.key("builds"))

    output = " ".join(bellhop("explain", "trigger", "announce").stdout.split())

    assert "no CloudEvent is known in default/workload" in output


@pytest.mark.usefixtures("received")
def test_reports_why_a_source_does_not_take_an_event(bellhop: Bellhop) -> None:
    """Each criterion says what it asked and what there is; a source asks for no other kinds."""
    other = json.dumps(cloud_event("db"))

    result = bellhop("evaluate", "builds", "--object", "-", "-o", "json", stdin=other)

    [row] = json.loads(result.stdout)
    assert row["matching"] is False
    assert row["because"] == (
        "its messagingsubject is not there, and must match '^ci[.]';"
        " its subject is 'db', and must match '^web$'"
    )
    service = "{apiVersion: v1, kind: Service, metadata: {name: web}}"
    output = bellhop("evaluate", "builds", "--object", "-", stdin=service).stdout
    assert "the source selects nothing of this kind" in output


@pytest.mark.usefixtures("received")
def test_refuses_a_file_that_is_no_event(bellhop: Bellhop) -> None:
    wrong = json.dumps({**cloud_event("db"), "id": 7})

    result = bellhop("evaluate", "builds", "--object", "-", stdin=wrong)

    assert "cannot take a CloudEvent: its id must be a string" in result.stderr


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(
            ("^ci\n", "'(ci'\n"),
            "spec.messagingMatchCriteria[0].cloudEventSource: the regular expression cannot be"
            " compiled: missing ): (ci in '(ci'",
            id="an expression that is none",
        ),
        pytest.param(
            ("return {matching = true} end", "return {"),
            "spec.messagingMatchCriteria[0].evaluate: the Lua script cannot be compiled",
            id="Lua that is none",
        ),
        pytest.param(
            ("1h30m", "soon"),
            "bellhop.dev/cloud-event-ttl is 'soon'; write it like '24h' or '1h30m'",
            id="a time that is none",
        ),
        pytest.param(
            ("spec:\n  messaging", "spec:\n  aggregatedSelection: x\n  messaging"),
            "aggregatedSelection stands beside messagingMatchCriteria, whose CloudEvents it is not"
            " given; write an EventSource for each",
            id="a selection among events",
        ),
    ],
)
def test_refuses_what_could_never_match(
    bellhop: Bellhop, here: Installation, change: tuple[str, str], sentence: str
) -> None:
    result = bellhop("apply", "-f", "-", stdin=MANIFESTS.replace(*change, 1))

    assert sentence in result.stderr
    assert here.catalogs.current().sources == {}
