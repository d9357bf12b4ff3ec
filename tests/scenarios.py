"""Scenarios of documented examples in two clusters, whatever carries the events of the first."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import yaml

from bellhop.core.gvk import GVK, ObjectKey
from infra.demo.user import User
from tests.fakes.manifests import INSTANTIATE
from tests.gateway_api import ROUTE, definition, route

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
LIB = "lib.projectsveltos.io"
SERVICE = GVK("", "v1", "Service")
SECRET = GVK("", "v1", "Secret")
CONFIG = GVK("", "v1", "ConfigMap")
NAMESPACE = GVK("", "v1", "Namespace")
ENDPOINTS = GVK("", "v1", "Endpoints")
POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")
INGRESS = GVK("networking.k8s.io", "v1", "Ingress")
WEB = ObjectKey(SERVICE, "default", "web")
TWIN = ObjectKey(SERVICE, "external", "external-web")
ADDRESSES = ObjectKey(ENDPOINTS, "external", "external-web")
NOTE = ObjectKey(CONFIG, "shop", "whose-is-this")
CREDENTIALS = "login-credentials"


class Fleet(Protocol):
    """An installation with two clusters, of the labels `env: production` and `dep: eng`."""

    source: User
    destination: User

    def apply(self, example: str) -> None:
        """Apply an example of the docs, and wait until events of the source count for it."""

    def wait(self, what: str, done: Callable[[], object]) -> object:
        """Wait until something is so."""


def service(name: str, port: int = 80, namespace: str = "default", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"selector": {"app": name}, "ports": [{"port": port, "targetPort": 9376}]},
    }


def balanced(name: str, port: int) -> dict[str, Any]:
    """Return a Service for which a cloud makes a load balancer."""
    manifest = service(name, port)
    return {**manifest, "spec": {**manifest["spec"], "type": "LoadBalancer"}}


def ports(fleet: Fleet, key: ObjectKey) -> list[int]:
    """Return the ports of a Service or its Endpoints in the destination; none if it has none."""
    found = fleet.destination.get(key)
    if found is None:
        return []
    holder = found["spec"] if key.gvk == SERVICE else found["subsets"][0]
    return [port["port"] for port in holder["ports"]]


def carry_service(fleet: Fleet, form: str = "service-discovery") -> None:
    """A balanced Service appears in the other cluster, follows its port, goes with its source."""
    fleet.apply(form)
    fleet.source.create(balanced("web", 60000))
    fleet.source.give_address(WEB, "34.172.32.172")
    fleet.wait("both are there", lambda: ports(fleet, TWIN) == [60000] == ports(fleet, ADDRESSES))
    endpoints = fleet.destination.get(ADDRESSES)
    assert endpoints
    assert endpoints["subsets"][0]["addresses"] == [{"ip": "34.172.32.172"}]

    fleet.source.patch(WEB, {"spec": {"ports": [{"port": 60001}]}})
    fleet.wait("the port follows", lambda: ports(fleet, TWIN) == [60001] == ports(fleet, ADDRESSES))

    fleet.source.delete(WEB)
    fleet.wait("both are deleted", lambda: not ports(fleet, TWIN) + ports(fleet, ADDRESSES))


def carry_service_of_v1alpha1(fleet: Fleet) -> None:
    """The same by the manifests of older versions."""
    carry_service(fleet, "service-discovery-eventbasedaddon")


def note_team(fleet: Fleet) -> None:
    """The namespace of a team has what the trigger makes, for as long as it is a team's."""
    fleet.apply("welcome")
    shop = {"name": "shop", "labels": {"team": "red"}}
    fleet.source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": shop})
    fleet.wait("the note is there", lambda: fleet.source.get(NOTE))
    fleet.source.patch(ObjectKey(NAMESPACE, "", "shop"), {"metadata": {"labels": {"team": None}}})
    fleet.wait("the note is deleted", lambda: not fleet.source.get(NOTE))


def guard_services(fleet: Fleet) -> None:
    """Each Service is guarded by a policy of its own, and the policy is deleted with it."""
    fleet.apply("network-policy")
    for name in ("shop", "web"):
        fleet.source.create(service(name, sveltos="fv"))
    policies = ["front-shop", "front-web"]
    fleet.wait("both are guarded", lambda: fleet.source.names(POLICY, "default") == policies)
    fleet.source.delete(WEB)
    fleet.wait("one is left", lambda: fleet.source.names(POLICY, "default") == policies[:1])
    fleet.source.delete(ObjectKey(SERVICE, "default", "shop"))
    fleet.wait("none is left", lambda: fleet.source.names(POLICY, "default") == [])


def route_services(fleet: Fleet) -> None:
    """Both Services' ports are in the one Ingress; the last Service takes it along.

    Each has an HTTPRoute of its own. Both are, field by field, as the page has them.
    """
    fleet.source.create(definition())
    fleet.source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "eng"}})
    fleet.wait("routes are served", lambda: _is_served(fleet, ROUTE))
    fleet.apply("http-routes")
    fleet.apply("ingress")
    both = {"my-service": 443, "my-service-2": 8443}
    for name, port in both.items():
        manifest = service(name, port, "eng")
        manifest["spec"]["ports"] = [{"name": "http", "port": 80}, {"name": "https", "port": port}]
        fleet.source.create(manifest)

    def ingress() -> dict[str, Any]:
        found = fleet.source.get(ObjectKey(INGRESS, "default", "ingress"))
        return written(found, "ingress") if found else {}

    fleet.wait("both are in", lambda: ingress() == _make_ingress(both))
    found = fleet.source.get(ObjectKey(INGRESS, "default", "ingress"))
    assert found
    rewritten = "nginx.ingress.kubernetes.io/rewrite-target"
    assert found["metadata"]["annotations"][rewritten] == "/"
    fleet.wait("each has a route", lambda: fleet.source.names(ROUTE) == [*both])
    for name in both:
        found = fleet.source.get(ObjectKey(ROUTE, "eng", name))
        assert found
        assert written(found, "http-routes") == route(name)

    fleet.source.delete(ObjectKey(SERVICE, "eng", "my-service"))
    fleet.wait("one is in", lambda: ingress() == _make_ingress({"my-service-2": 8443}))
    fleet.wait("one has a route", lambda: fleet.source.names(ROUTE) == ["my-service-2"])
    fleet.source.delete(ObjectKey(SERVICE, "eng", "my-service-2"))
    fleet.wait("the Ingress is deleted", lambda: fleet.source.names(INGRESS) == [])
    fleet.wait("so is the route", lambda: fleet.source.names(ROUTE) == [])


def ask_for_secret(fleet: Fleet) -> None:
    """Namespaces eng and hr ask for the Secret, and have it."""
    fleet.apply("replicate-secret")
    for name in ("eng", "hr"):
        about = {"name": name, "labels": {"secret": "required"}}
        if fleet.source.get(ObjectKey(NAMESPACE, "", name)):
            fleet.source.patch(ObjectKey(NAMESPACE, "", name), {"metadata": about})
        else:
            fleet.source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": about})
    credentials = {"username": "admin", "password": "a word for the example alone"}
    encoded = {name: base64.b64encode(each.encode()).decode() for name, each in credentials.items()}
    fleet.wait("both have it", lambda: read_replicas(fleet) == {"eng": encoded, "hr": encoded})


def replicate_secret(fleet: Fleet) -> None:
    """A namespace has the Secret for as long as it asks for it."""
    ask_for_secret(fleet)
    for name, left in (("hr", ["eng"]), ("eng", [])):
        fleet.source.patch(
            ObjectKey(NAMESPACE, "", name), {"metadata": {"labels": {"secret": None}}}
        )
        fleet.wait("one is withdrawn", lambda left=left: sorted(read_replicas(fleet)) == left)


def read_replicas(fleet: Fleet) -> dict[str, dict[str, str]]:
    """Return the data of the replicated Secret, by the namespaces that have it."""
    places = {name: ObjectKey(SECRET, name, CREDENTIALS) for name in ("eng", "hr")}
    found = {name: fleet.source.get(key) for name, key in places.items()}
    return {name: each["data"] for name, each in found.items() if each}


def written(manifest: dict[str, Any], holder: str) -> dict[str, Any]:
    """Return what a profile wrote of an object, once its marks are seen to say where it is from."""
    metadata = manifest["metadata"]
    marks = {
        name.removeprefix("projectsveltos.io/"): value
        for name, value in metadata["annotations"].items()
        if name.startswith("projectsveltos.io/")
    }
    assert marks["hash"].startswith("sha256:")
    assert marks["owner-kind"] == "ClusterProfile"
    refers = [marks[f"reference-{each}"] for each in ("kind", "namespace", "name")]
    assert refers == ["ConfigMap", "default", holder]
    own = {name: metadata[name] for name in ("name", "namespace")}
    labels = dict(metadata["labels"])
    assert labels.pop("projectsveltos.io/reason") == "Resources"
    return {
        **{name: manifest[name] for name in ("apiVersion", "kind", "spec")},
        "metadata": {**own, **({"labels": labels} if labels else {})},
    }


def _make_ingress(ports: dict[str, int]) -> dict[str, Any]:
    paths = [
        {
            "backend": {"service": {"name": name, "port": {"number": port}}},
            "path": f"/{name}",
            "pathType": "Prefix",
        }
        for name, port in ports.items()
    ]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "ingress", "namespace": "default"},
        "spec": {"ingressClassName": "http-ingress", "rules": [{"http": {"paths": paths}}]},
    }


def _is_served(fleet: Fleet, gvk: GVK) -> bool:
    try:
        return fleet.source.names(gvk) == []
    except LookupError:
        return False


def read_example(name: str) -> list[dict[str, Any]]:
    """Read the manifests of an example in the version that API servers serve.

    Those of v1alpha1 are of files only: there a trigger instantiates all of its ConfigMaps, and
    later those that ask for it.
    """
    files = sorted((EXAMPLES / name).glob("*.yaml"))
    documents = [each for file in files for each in yaml.safe_load_all(file.read_text()) if each]
    if not any(each["apiVersion"].endswith("/v1alpha1") for each in documents):
        return documents
    return [_serve(each) for each in documents]


def _serve(document: dict[str, Any]) -> dict[str, Any]:
    name, _, value = INSTANTIATE.partition(": ")
    if document["kind"] == "ConfigMap":
        metadata = {**document["metadata"], "annotations": {name: value}}
        return {**document, "metadata": metadata}
    spec = dict(document["spec"])
    if "clusterSelector" in spec:
        spec["sourceClusterSelector"] = spec.pop("clusterSelector")
    for each in ("sourceClusterSelector", "destinationClusterSelector"):
        if each in spec:
            label, _, value = spec[each].partition("=")
            spec[each] = {"matchLabels": {label: value}}
    kind = document["kind"].replace("EventBasedAddOn", "EventTrigger")
    # `kubectl` leaves out the namespace of kinds that have none.
    about = {"metadata": {"name": document["metadata"]["name"]}, "spec": spec}
    return {"apiVersion": f"{LIB}/v1beta1", "kind": kind, **about}


SCENARIOS = (
    note_team,
    carry_service,
    carry_service_of_v1alpha1,
    guard_services,
    route_services,
    replicate_secret,
)
