"""The example of a HealthCheck: an unhealthy resource sends an event, and an Event reports it."""

from __future__ import annotations

from bellhop.core.gvk import GVK, ObjectKey
from tests.fakes.fleet import service
from tests.flow.conftest import Flow
from tests.waiting import eventually

EAST = "fleet/source"
EVENT = GVK("", "v1", "Event")
WEB = ObjectKey(GVK("", "v1", "Service"), "default", "web")


def said(flow: Flow) -> str:
    """Return how the cluster is and why; nothing where that is not known."""
    kept = flow.stand.records().conditions.of(EAST).get("production")
    return f"{kept.value.healthy} {kept.value.message}" if kept else ""


def events(flow: Flow) -> list[tuple[str, str]]:
    """Return the Events in the cluster."""
    names = (each for each in flow.source.names(EVENT, "default") if each.startswith("production."))
    found = (flow.source.get(ObjectKey(EVENT, "default", each)) for each in names)
    return [(each["type"], each["message"]) for each in found if each]


def test_an_unhealthy_resource_is_reported_until_it_is_healthy(flow: Flow) -> None:
    """By webhook events, status included: no resync is requested after the apply."""
    flow.apply("health")
    eventually("the cluster is known to be well", lambda: said(flow).startswith("True"))

    web = service("web")
    del web["status"]
    web["spec"]["type"] = "LoadBalancer"
    flow.source.create(web)
    sick = "False Service 'default/web' is Progressing: no address"
    eventually("it is not well", lambda: said(flow) == sick)
    eventually("an Event tells of it", lambda: len(events(flow)) == 1)
    [(kind, text)] = events(flow)
    assert kind == "Warning"
    assert "Service 'default/web' is Progressing: no address" in text
    assert "no address" in flow.stand.do("describe", "healthcheck", "addresses")
    (row,) = flow.stand.do("show", "resources", "--kind", "Service", "--no-headers").splitlines()
    assert row.split() == [EAST, "v1/Service", "default", "web", "Progressing:", "no", "address"]

    flow.source.give_address(WEB, "203.0.113.7")
    eventually("it is well again", lambda: said(flow).startswith("True"))
