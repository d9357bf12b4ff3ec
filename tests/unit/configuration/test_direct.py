"""The API server of the configuration cluster calls ingest itself, or sends its audit log."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import MANAGER
from tests.fakes.manifests import config, holder, profile
from tests.unit.configuration.hub import Hub

_PLURALS = {"ConfigMap": "configmaps", "ClusterProfile": "clusterprofiles"}


def review(operation: str, found: dict[str, Any], *, manager: str = "kubectl") -> dict[str, Any]:
    """Return the AdmissionReview of a write."""
    key = ObjectKey.of(found)
    kind = {"group": key.gvk.group, "version": key.gvk.version, "kind": key.gvk.kind}
    objects = {"oldObject" if operation == "DELETE" else "object": found}
    request = {
        "uid": "one",
        "operation": operation,
        "kind": kind,
        "name": key.name,
        "namespace": key.namespace,
        "options": {"fieldManager": manager},
        **objects,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def audit(verb: str, found: dict[str, Any], *, manager: str = "kubectl") -> dict[str, Any]:
    """Return an audit log with one write of an object, of which it has only the name."""
    key = ObjectKey.of(found)
    event = {
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": f"/some/path?fieldManager={manager}",
        "responseStatus": {"code": 200},
        "objectRef": {
            "apiGroup": key.gvk.group,
            "apiVersion": key.gvk.version,
            "resource": _PLURALS[key.gvk.kind],
            "namespace": key.namespace,
            "name": key.name,
        },
    }
    return {"apiVersion": "audit.k8s.io/v1", "kind": "EventList", "items": [event]}


@pytest.mark.parametrize(
    ("make", "create", "delete"),
    [
        pytest.param(review, "CREATE", "DELETE", id="a webhook"),
        pytest.param(audit, "create", "delete", id="the audit log"),
    ],
)
def test_its_requests_put_objects_in_force(hub: Hub, make: Any, create: str, delete: str) -> None:
    """No resync is needed, and the content of no request is used."""
    for text in (profile(), holder("own", config("made"))):
        stored = hub.kube.put(yaml.safe_load(text))
        post(hub, make(create, {**stored, "data": {"other.yaml": "not what is stored"}}))
    hub.fleet.pump()
    assert hub.east.names() == ["made"]

    hub.delete("ClusterProfile", "own", sent=False)
    post(hub, make(delete, yaml.safe_load(profile())))
    hub.fleet.wait(times=3)
    assert hub.east.names() == []


@pytest.mark.parametrize(("make", "create"), [(review, "UPDATE"), (audit, "patch")])
def test_what_bellhop_writes_there_is_not_read_again(hub: Hub, make: Any, create: str) -> None:
    """Or each status would lead to the next one."""
    hub.write(profile())
    stored = hub.kube.put(yaml.safe_load(profile(more="syncMode: OneTime")))
    hub.kube.calls.clear()

    post(hub, make(create, stored, manager=MANAGER))
    hub.fleet.pump()

    assert hub.kube.calls == []


def post(hub: Hub, body: dict[str, Any]) -> None:
    assert hub.fleet.post("hub", body).status == 200


@pytest.mark.parametrize(
    "hint",
    [
        pytest.param("a name", id="a text"),
        pytest.param([], id="a list"),
        pytest.param({}, id="empty"),
        pytest.param({"key": "/v1/ConfigMap/default/own"}, id="no uid"),
        pytest.param({"key": "own", "uid": "u", "before": 0}, id="no kind"),
        pytest.param({"key": 7, "uid": "u", "before": 0}, id="key is a number"),
        pytest.param(
            {"key": "/v1/ConfigMap/../own", "uid": "u", "before": 0}, id="namespace is a path"
        ),
        pytest.param(
            {"key": "/v1/ConfigMap/default/own", "uid": 7, "before": 0}, id="uid is a number"
        ),
        pytest.param(
            {"key": "/v1/ConfigMap/default/own", "uid": "u", "before": "9" * 99},
            id="a version beyond all",
        ),
    ],
)
def test_a_malformed_hint_fails_and_no_other_item_with_it(hub: Hub, hint: Any) -> None:
    good = {"key": "/v1/ConfigMap/default/own", "uid": "u", "before": 0}
    reply = hub.fleet.send("hub", {"hint": hint}, {"hint": good})

    assert reply.status == 200
    [failed] = reply.body["failed"]
    assert (failed["index"], failed["status"]) == (0, 400)
    assert reply.body["taken"] == 1
