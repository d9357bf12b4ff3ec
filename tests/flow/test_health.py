"""The example of a HealthCheck: a resource that is not well rings, and an Event tells of it."""

from __future__ import annotations

from bellhop.model.gvk import GVK, ObjectKey
from tests.fakes.fleet import service
from tests.flow.conftest import Flow, until

EAST = "fleet/source"
EVENT = GVK("", "v1", "Event")
WEB = ObjectKey(GVK("", "v1", "Service"), "default", "web")


def said(flow: Flow) -> str:
    """Return how the cluster is and why; nothing where that is not known."""
    kept = flow.stand.records().conditions.of(EAST).get("production")
    return f"{kept.value.healthy} {kept.value.message}" if kept else ""


def events(flow: Flow) -> list[tuple[str, str]]:
    """Return what is told in the cluster."""
    names = (each for each in flow.source.names(EVENT, "default") if each.startswith("production."))
    found = (flow.source.get(ObjectKey(EVENT, "default", each)) for each in names)
    return [(each["type"], each["message"]) for each in found if each]


def test_a_resource_that_is_not_well_is_told_of_until_it_is(flow: Flow) -> None:
    """By rings, status included: no sweep is asked for after what is declared."""
    flow.apply("health")
    until("the cluster is known to be well", lambda: said(flow).startswith("True"))

    web = service("web")
    del web["status"]
    web["spec"]["type"] = "LoadBalancer"
    flow.source.create(web)
    sick = "False Service 'default/web' is Progressing: no address"
    until("it is not well", lambda: said(flow) == sick)
    until("an Event tells of it", lambda: len(events(flow)) == 1)
    [(kind, text)] = events(flow)
    assert kind == "Warning"
    assert "Service 'default/web' is Progressing: no address" in text
    assert "no address" in flow.stand.do("describe", "healthcheck", "addresses")

    flow.source.give_address(WEB, "203.0.113.7")
    until("it is well again", lambda: said(flow).startswith("True"))
