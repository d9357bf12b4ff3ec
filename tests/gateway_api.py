"""The Gateway API of a cluster of the lab: as much of HTTPRoutes as examples deploy."""

from __future__ import annotations

from typing import Any

from bellhop.core.gvk import GVK

ROUTE = GVK("gateway.networking.k8s.io", "v1beta1", "HTTPRoute")
_TEXT = {"type": "string"}
_PLACE = {"group": _TEXT, "kind": _TEXT, "name": _TEXT, "namespace": _TEXT}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list(each: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": each}


def definition() -> dict[str, Any]:
    """Return the definition of HTTPRoutes, as far as the example goes."""
    path = _object(type={**_TEXT, "enum": ["Exact", "PathPrefix"]}, value=_TEXT)
    rule = _object(
        matches=_list(_object(path=path)),
        backendRefs=_list(_object(kind=_TEXT, name=_TEXT, port={"type": "integer"})),
    )
    spec = _object(parentRefs=_list(_object(**_PLACE)), hostnames=_list(_TEXT), rules=_list(rule))
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object(spec=spec)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "httproutes.gateway.networking.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://example.org/in-a-test"},
        },
        "spec": {
            "group": ROUTE.group,
            "scope": "Namespaced",
            "names": {"kind": "HTTPRoute", "plural": "httproutes"},
            "versions": [version],
        },
    }


def route(name: str) -> dict[str, Any]:
    """Return the HTTPRoute of a Service, as its template writes it."""
    gateway = {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": "contour",
        "namespace": "projectcontour",
    }
    rule = {
        "backendRefs": [{"kind": "Service", "name": name, "port": 80}],
        "matches": [{"path": {"type": "PathPrefix", "value": f"/{name}"}}],
    }
    return {
        "apiVersion": "gateway.networking.k8s.io/v1beta1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "eng", "labels": {"app": name}},
        "spec": {
            "hostnames": ["local.projectcontour.io"],
            "parentRefs": [gateway],
            "rules": [rule],
        },
    }
