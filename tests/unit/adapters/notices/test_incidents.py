"""Incident managers get what their documentation says, and one incident for one trouble."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from bellhop.adapters.notices import Sender
from bellhop.core.address_policy import LOCAL
from bellhop.errors import DeniedError, InvalidError
from tests.fakes.incidents import GENIE_KEY, ROUTING_KEY, Incidents, incident_managers

FACTS: Mapping[str, Any] = {
    "id": "i",
    "incident": "key/of-it",
    "cluster": "fleet/east",
    "clusterHealthCheck": "addons",
    "healthy": False,
    "message": "why",
    "since": "2026-01-31T12:00:00Z",
}
SUBJECT = "Cluster fleet/east is unhealthy (addons)"
TEXT = f"{SUBJECT}\nwhy"


@pytest.fixture
def here() -> Iterator[Incidents]:
    with incident_managers() as found:
        yield found


def secret(here: Incidents, kind: str) -> dict[str, str]:
    return {
        "PagerDuty": {"PAGERDUTY_ROUTING_KEY": f"{ROUTING_KEY}\n"},
        "Opsgenie": {"OPSGENIE_API_KEY": GENIE_KEY},
        "Alertmanager": {"ALERTMANAGER_URL": f"{here.url}/am/"},
    }[kind]


def send(
    here: Incidents,
    kind: str,
    *,
    healthy: bool = False,
    subject: str = SUBJECT,
    text: str = TEXT,
    **more: str,
) -> None:
    endpoints = {"PagerDuty": f"{here.url}/v2/enqueue", "Opsgenie": here.url}
    facts = {**FACTS, "healthy": healthy}
    Sender(LOCAL, endpoints).send(kind, secret(here, kind) | more, subject, text, facts)


@pytest.mark.parametrize("kind", ["PagerDuty", "Opsgenie", "Alertmanager"])
def test_one_incident_is_opened_and_closed(here: Incidents, kind: str) -> None:
    """A notification that is sent twice opens no second one; recovery closes it, twice too."""
    send(here, kind)
    send(here, kind)
    assert len(here.opened) == 1
    assert TEXT in str(here.opened).replace("\\n", "\n")
    assert "fleet/east" in str(here.opened)

    send(here, kind, healthy=True)
    send(here, kind, healthy=True)
    assert here.opened == {}
    assert all(status in {200, 202} for status in here.statuses)


@pytest.mark.parametrize("kind", ["PagerDuty", "Opsgenie", "Alertmanager"])
def test_text_of_any_length_is_taken(here: Incidents, kind: str) -> None:
    """The longest subject and text that Bellhop writes, with a quote and an accent."""
    send(here, kind, subject='"é' * 1000, text='"é' * 2000)
    send(here, kind, healthy=True, subject='"é' * 1000, text='"é' * 2000)

    assert here.opened == {}
    assert set(here.statuses) <= {200, 202}


def test_urgency_is_set_by_the_secret(here: Incidents) -> None:
    """Each service has its own words for it."""
    send(here, "PagerDuty", PAGERDUTY_SEVERITY="critical")
    send(here, "Opsgenie", OPSGENIE_PRIORITY="P1")
    send(here, "Alertmanager", ALERTMANAGER_SEVERITY="page")

    event, alert, [fired] = here.received
    assert event["payload"]["severity"] == "critical"
    assert alert["priority"] == "P1"
    assert fired["labels"]["severity"] == "page"


def test_a_regional_address_replaces_the_common_one(here: Incidents) -> None:
    """Accounts in the EU have servers of their own."""
    urls = {"PAGERDUTY_URL": f"{here.url}/v2/enqueue", "OPSGENIE_URL": f"{here.url}/"}
    for kind in ("PagerDuty", "Opsgenie"):
        sent = secret(here, kind) | urls
        Sender(LOCAL, {}).send(kind, sent, SUBJECT, TEXT, FACTS)

    assert here.statuses == [202, 202]


@pytest.mark.parametrize(
    ("kind", "more", "error", "said"),
    [
        pytest.param(
            "PagerDuty",
            {"PAGERDUTY_ROUTING_KEY": "of-hidden"},
            InvalidError,
            "it answers 400",
            id="a routing key that is none",
        ),
        pytest.param(
            "Opsgenie", {"OPSGENIE_API_KEY": "of-hidden"}, DeniedError, "401", id="another key"
        ),
        pytest.param(
            "PagerDuty",
            {"PAGERDUTY_SEVERITY": "hidden"},
            InvalidError,
            "its PAGERDUTY_SEVERITY is not supported; use one of critical, error, warning, info",
            id="a severity of another service",
        ),
        pytest.param(
            "Opsgenie", {"OPSGENIE_PRIORITY": "hidden"}, InvalidError, "P1, P2", id="no priority"
        ),
        pytest.param(
            "Alertmanager", {"ALERTMANAGER_URL": ""}, InvalidError, "no ALERTMANAGER_URL", id="none"
        ),
    ],
)
def test_a_refusal_names_no_value_of_the_secret(
    here: Incidents, kind: str, more: dict[str, str], error: type[Exception], said: str
) -> None:
    """The error says which key to correct, or the status."""
    with pytest.raises(error, match=said) as raised:
        send(here, kind, **more)

    assert "hidden" not in str(raised.value)
    assert here.opened == {}


def test_alertmanager_is_called_with_a_token(here: Incidents) -> None:
    """A proxy in front of it may require one; a token that is none is not sent."""
    with pytest.raises(InvalidError, match="its token has characters"):
        send(here, "Alertmanager", ALERTMANAGER_TOKEN="a\nb")
    send(here, "Alertmanager", ALERTMANAGER_TOKEN="of-hidden")

    assert here.statuses == [200]
