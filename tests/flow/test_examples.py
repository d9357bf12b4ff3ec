"""The documented examples on real API servers, from the YAML to the other cluster and back."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from bellhop.core.gvk import GVK, ObjectKey
from tests.flow.conftest import EXAMPLES, Flow
from tests.scenarios import (
    CONFIG,
    CREDENTIALS,
    POLICY,
    SERVICE,
    TWIN,
    WEB,
    ask_for_secret,
    balanced,
    carry_service,
    ports,
    read_replicas,
    route_services,
    service,
    written,
)
from tests.waiting import eventually

JOB = GVK("batch", "v1", "Job")


@pytest.mark.parametrize("form", ["service-discovery", "service-discovery-eventbasedaddon"])
def test_carries_a_service_to_the_other_cluster_and_takes_it_away(flow: Flow, form: str) -> None:
    """Nothing is kept of it."""
    carry_service(flow, form)
    eventually(
        "nothing is kept",
        lambda: not list(flow.stand.records().inventories.of("fleet/destination")),
    )


def test_guards_each_service_with_its_own_policy(flow: Flow) -> None:
    """front-my-service, then front-another-service: one per Service, deleted with it.

    Policy and report are as the page has them that the example is from.
    """
    flow.apply("network-policy")
    mine = service("my-service", 80, sveltos="fv")
    mine["spec"]["selector"] = {"app.kubernetes.io/name": "MyApp"}
    flow.source.create(mine)
    eventually("the first is there", lambda: flow.source.names(POLICY) == ["front-my-service"])
    policy = flow.source.get(ObjectKey(POLICY, "default", "front-my-service"))
    assert policy
    assert written(policy, "network-policy") == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "front-my-service", "namespace": "default"},
        "spec": {
            "ingress": [
                {
                    "from": [{"podSelector": {"matchLabels": {"app": "internal"}}}],
                    "ports": [{"port": 80, "protocol": "TCP"}],
                }
            ],
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "MyApp"}},
            "policyTypes": ["Ingress"],
        },
    }
    report = yaml.safe_load(
        flow.stand.do("get", "eventreport", REPORT, "-n", "fleet", "-o", "yaml")
    )
    (collected,) = resources(report)
    assert collected["spec"]["selector"] == mine["spec"]["selector"]
    assert {**report["spec"], "resources": ""} == {
        "clusterName": "source",
        "clusterNamespace": "fleet",
        "clusterType": "Sveltos",
        "eventSourceName": "sveltos-service",
        "matchingResources": [
            {"apiVersion": "v1", "kind": "Service", "name": "my-service", "namespace": "default"}
        ],
        "resources": "",
    }

    flow.source.create(service("another-service", 443, sveltos="fv"))
    both = ["front-another-service", "front-my-service"]
    eventually("both are there", lambda: flow.source.names(POLICY) == both)
    flow.source.delete(ObjectKey(SERVICE, "default", "another-service"))
    eventually("one is gone", lambda: flow.source.names(POLICY) == ["front-my-service"])
    flow.source.patch(ObjectKey(SERVICE, "default", "my-service"), {"metadata": {"labels": None}})
    eventually("the other too", lambda: flow.source.names(POLICY) == [])


REPORT = "sveltos--sveltos-service--source"


def test_cloud_events_deploy_and_remove_add_ons(flow: Flow) -> None:
    """By HTTP with the sender's token, in each mode, as the page on CloudEvents says."""
    flow.apply("cloud-events")
    send = _sender(flow)
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": "ci.example/shop",
        "type": "example.image.built",
        "subject": "web",
    }
    data = json.dumps({"image": "registry.example/web:1"}).encode()
    binary = {f"ce-{name}": value for name, value in event.items()}
    web = ObjectKey(CONFIG, "default", "build-web")
    assert send(data, **binary, **{"content-type": "application/json"}) == (200, 1)
    eventually("it is there", lambda: flow.source.get(web))
    found = flow.source.get(web)
    assert found
    assert found["data"] == {"image": "registry.example/web:1", "event": "1"}

    structured = {**event, "id": "2", "type": "example.image.removed"}
    media = {"content-type": "application/cloudevents+json"}
    assert send(json.dumps(structured).encode(), **media) == (200, 1)
    eventually("it is gone", lambda: not flow.source.get(web))
    batch = {"content-type": "application/cloudevents-batch+json"}
    assert send(json.dumps([event, {**structured, "type": "other"}]).encode(), **batch) == (200, 1)
    assert send(b"[7]", **batch)[0] == 400


def _sender(flow: Flow) -> Callable[..., tuple[int, int]]:
    """Return who sends with what the forwarder's Secret says; it answers status and taken."""
    secret = flow.source.get(
        ObjectKey(GVK("", "v1", "Secret"), "bellhop-system", "bellhop-forwarder")
    )
    assert secret
    data = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    context = ssl.create_default_context(cadata=data["ingest-ca"])
    token = {"authorization": f"Bearer {data['token']}"}

    def send(body: bytes, **headers: str) -> tuple[int, int]:
        url = f"{data['ingest-url']}/clusters/{data['cluster']}"
        with urllib3.PoolManager(ssl_context=context, retries=False) as pool:
            reply = pool.request("POST", url, body=body, headers=token | headers)
        return reply.status, reply.json().get("taken", 0)

    return send


def test_selects_by_labels_names_and_namespaces(flow: Flow) -> None:
    """Three sources at once: each takes what all it asks for is true of, and nothing else."""
    for example in ("alerts", "trust"):
        flow.stand.do("apply", "-f", str(EXAMPLES / example))
    flow.apply("scrape")
    for name in ("shop", "trust"):
        flow.source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    labels = {"team": "shop", "tier": "web", "on-call": "ann"}
    others = {
        "elsewhere": ("default", labels),
        "silent": ("shop", {**labels, "alerts": "none"}),
        "of-another": ("shop", {**labels, "team": "hr"}),
        "of-no-tier": ("shop", {**labels, "tier": "batch"}),
        "tested": ("shop", {**labels, "stage": "test"}),
        "of-nobody": ("shop", {"team": "shop", "tier": "web"}),
        "old": ("shop", {**labels, "deprecated": "2025"}),
    }
    for name, (namespace, each) in others.items():
        flow.source.create(deployment(name, namespace, each))
    flow.source.create(deployment("web", "shop", labels))
    for name in ("authority", "other"):
        meta = {"name": name, "namespace": "trust"}
        text = {"ca.crt": f"of {name}"}
        flow.source.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": text}
        )
    flow.source.create(service("tried", metrics="yes", stage="test"))
    flow.source.create(service("shop", metrics="yes"))

    alert = config_map("alert-web", "shop")
    eventually("of all one is watched", lambda: flow.source.get(alert))
    eventually("the authority is trusted", lambda: flow.destination.get(config_map("authority")))
    eventually("metrics are read", lambda: flow.source.names(POLICY) == ["let-prometheus-in"])
    assert [each for each in flow.source.names(CONFIG) if each.startswith("alert-")] == [
        "alert-web"
    ]
    assert "other" not in flow.destination.names(CONFIG)
    policy = flow.source.get(ObjectKey(POLICY, "default", "let-prometheus-in"))
    assert policy
    assert policy["metadata"]["annotations"]["services"] == "shop"
    flow.source.patch(config_map("authority", "trust"), {"data": {"ca.crt": "anew"}})

    def trusted() -> object:
        found = flow.destination.get(config_map("authority"))
        return found and found["data"]

    eventually("the new one is trusted", lambda: trusted() == {"ca.crt": "anew"})


def deployment(name: str, namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    pod = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "app", "image": "registry.example/app"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": pod},
    }


def test_guards_what_cel_says_is_reachable(flow: Flow) -> None:
    """By one rule a node port, by the other an address; without either, nothing."""
    flow.apply("cel")
    flow.source.create(service("quiet"))
    exposed = service("exposed", 443)
    flow.source.create({**exposed, "spec": {**exposed["spec"], "type": "NodePort"}})
    eventually("the node port", lambda: flow.source.names(POLICY) == ["guard-exposed"])
    flow.source.create(balanced("web", 8080))
    flow.source.give_address(WEB, "34.172.32.172")
    eventually("the address", lambda: flow.source.names(POLICY) == ["guard-exposed", "guard-web"])

    flow.source.patch(ObjectKey(SERVICE, "default", "exposed"), {"spec": {"type": "ClusterIP"}})
    eventually("one is gone", lambda: flow.source.names(POLICY) == ["guard-web"])
    flow.source.delete(WEB)
    eventually("the other too", lambda: flow.source.names(POLICY) == [])


def test_cleans_up_after_what_is_being_deleted(flow: Flow) -> None:
    """Nothing while it lives; its Job from its deletion on, until nothing holds it any more."""
    flow.apply("clean-up")
    held = balanced("web", 8080)
    held["metadata"]["finalizers"] = ["dns.example/name"]
    flow.source.create(held)
    flow.source.patch(WEB, {"metadata": {"labels": {"team": "web"}}})
    assert flow.source.names(JOB) == []
    flow.source.delete(WEB)
    eventually("its Job is there", lambda: flow.source.names(JOB) == ["release-web"])
    found = flow.source.get(WEB)
    assert found
    assert found["metadata"]["deletionTimestamp"]

    flow.source.patch(WEB, {"metadata": {"finalizers": None}})
    eventually("the Job is gone", lambda: flow.source.names(JOB) == [])
    assert flow.source.get(WEB) is None


def test_denies_what_no_policy_of_its_own_guards(flow: Flow) -> None:
    """A script over namespaces and policies: ours goes when there is another, and comes back."""
    flow.apply("default-deny")
    labels = {"guarded": "yes"}
    team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}}
    flow.source.create(team)
    eventually("ours is there", lambda: flow.source.names(POLICY) == ["default-deny"])
    own = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "own", "namespace": "team"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    }
    flow.source.create(own)
    eventually("ours is gone", lambda: flow.source.names(POLICY) == ["own"])
    flow.source.delete(ObjectKey(POLICY, "team", "own"))
    eventually("ours is back", lambda: flow.source.names(POLICY) == ["default-deny"])


def test_makes_one_ingress_and_a_route_for_each_of_two_services(flow: Flow) -> None:
    route_services(flow)


def test_shows_the_report_as_sveltos_does(flow: Flow) -> None:
    """`bellhop get eventreport -o yaml` says what the example shows, when something failed too."""
    flow.apply("report")
    shown = yaml.safe_load((EXAMPLES / "report/shown/eventreport.yaml").read_text())
    for name, data in {
        "order-1": {"amount": "20", "to": "Oslo"},
        "order-2": {"amount": "5"},
    }.items():
        flow.source.create(order(name, number=name[-1], **data))
    flow.source.create(order("order-3", number="3"))
    (event,) = cloud_events(shown)
    media = {"content-type": "application/cloudevents+json"}
    assert _sender(flow)(json.dumps(event).encode(), **media) == (200, 1)

    def report() -> dict[str, Any]:
        name = shown["metadata"]["name"]
        printed = flow.stand.do("get", "eventreport", name, "-n", "fleet", "-o", "yaml")
        return dict(yaml.safe_load(printed))

    def status(manifest: dict[str, Any]) -> dict[str, Any]:
        return {**manifest.get("status", {}), "sweptAt": "at some time"}

    eventually("all is reported", lambda: status(report()) == status(shown))
    assert report()["status"]["sweptAt"]
    eventually("what can be is there", lambda: flow.source.get(config_map("shipment-4")))
    found = report()
    assert cloud_events(found) == [event]
    assert [stored(each) for each in resources(found)] == [
        stored(each) for each in resources(shown)
    ]
    for each in (found, shown):
        del each["spec"]["resources"], each["spec"]["cloudEvents"]
        del each["status"]["sweptAt"]
    assert found == shown


def config_map(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey(CONFIG, namespace, name)


def order(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"order": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def resources(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the objects of a report: each one's JSON, closed by three dashes."""
    *each, rest = base64.b64decode(report["spec"]["resources"]).split(b"\n---")
    assert rest == b""
    return [json.loads(one) for one in each]


def cloud_events(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(base64.b64decode(each)) for each in report["spec"]["cloudEvents"]]


def stored(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what each API server writes of its own."""
    drawn = {"creationTimestamp", "resourceVersion", "selfLink", "uid"}
    meta = {name: each for name, each in manifest["metadata"].items() if name not in drawn}
    return {**manifest, "metadata": meta}


def test_serves_what_is_older_shows_it_and_withdraws_it(flow: Flow) -> None:
    """A resync finds an object older than its EventSource, and deleted manifests take all back.

    `show addons` has sveltosctl's columns; `show events` prints the whole chain.
    """
    flow.source.create(service("older", sveltos="fv"))
    flow.apply("network-policy")
    eventually("the older one's is there", lambda: flow.source.names(POLICY) == ["front-older"])
    flow.source.create(service("my-service", sveltos="fv"))
    both = ["front-my-service", "front-older"]
    eventually("both are applied", lambda: flow.source.names(POLICY) == both)

    def chain() -> set[str]:
        shown = flow.stand.do("show", "events")
        return {word for word in ("changed", "matched", "rendered", "applied") if word in shown}

    eventually(lambda: f"the event log has more than {chain()}", lambda: len(chain()) == 4)
    eventually("it is listed", lambda: "front-my-service" in flow.stand.do("show", "addons"))
    addons = flow.stand.do("show", "addons")
    assert "networking.k8s.io:NetworkPolicy" in addons
    assert "RESOURCE TYPE" in addons

    flow.stand.do("delete", "-f", str(EXAMPLES / "network-policy"))
    eventually("both are withdrawn", lambda: flow.source.names(POLICY) == [])
    flow.apply("network-policy")
    eventually("both are back", lambda: flow.source.names(POLICY) == both)


def test_follows_the_clusters_labels(flow: Flow) -> None:
    """A cluster that is labelled becomes a destination; one that is not any more is left."""
    flow.apply("service-discovery")
    flow.source.create(balanced("web", 60000))
    flow.source.give_address(WEB, "34.172.32.172")
    eventually("the twin is there", lambda: ports(flow, TWIN) == [60000])

    flow.stand.do("label", "cluster", "fleet/destination", "dep-")
    eventually("the twin is withdrawn", lambda: flow.destination.get(TWIN) is None)

    flow.stand.do("label", "cluster", "fleet/destination", "dep=eng")
    eventually("the twin is back", lambda: ports(flow, TWIN) == [60000])


def test_another_cluster_takes_the_place_of_one_that_leaves(flow: Flow) -> None:
    """The set has one cluster: at first the first by name, then the other, which it keeps."""

    def where() -> list[str]:
        users = {"source": flow.source, "destination": flow.destination}
        return [name for name, user in users.items() if user.names(POLICY) == ["gateway"]]

    for name in ("source", "destination"):
        flow.stand.do("label", "cluster", f"fleet/{name}", "pool=a")
    flow.stand.do("apply", "-f", str(EXAMPLES / "failover"))
    eventually("one has it", lambda: where() == ["destination"])

    flow.stand.do("label", "cluster", "fleet/destination", "pool-")
    eventually("the other has it", lambda: where() == ["source"])
    flow.stand.do("label", "cluster", "fleet/destination", "pool=a")
    shown = yaml.safe_load(flow.stand.do("get", "clusterset", "active", "-o", "yaml"))["status"]

    assert [each["name"] for each in shown["selectedClusterRefs"]] == ["source"]
    assert len(shown["matchingClusterRefs"]) == 2
    assert where() == ["source"]


def test_a_team_has_a_profile_and_a_set_of_its_own(flow: Flow, tmp_path: Path) -> None:
    """One of its clusters has the gateway; by the same from another namespace none has."""

    def where() -> list[str]:
        users = {"source": flow.source, "destination": flow.destination}
        return [name for name, user in users.items() if "team-gateway" in user.names(POLICY)]

    for name in ("source", "destination"):
        flow.stand.do("label", "cluster", f"fleet/{name}", "gateway=allowed")
    others = tmp_path / "others.yaml"
    text = (EXAMPLES / "team" / "gateway.yaml").read_text()
    others.write_text(text.replace("namespace: fleet", "namespace: others"))
    flow.stand.do("apply", "-f", str(others))
    flow.stand.do("apply", "-f", str(EXAMPLES / "team"))
    eventually("one has it", lambda: where() == ["destination"])
    policy = flow.destination.get(ObjectKey(POLICY, "default", "team-gateway"))
    assert policy
    assert policy["metadata"]["annotations"]["projectsveltos.io/owner-name"] == "fleet/gateway"

    flow.stand.do("label", "cluster", "fleet/destination", "gateway-")
    eventually("the other has it", lambda: where() == ["source"])

    def rows() -> list[list[str]]:
        lines = flow.stand.do("get", "profiles").splitlines()[1:]
        return [line.split()[:3] for line in lines]

    # Its status is written after the object.
    desired = [["fleet", "gateway", "1/1"], ["others", "gateway", "0/0"]]
    eventually(lambda: f"it is provisioned: {rows()}", lambda: rows() == desired)
    assert "Profile/fleet/gateway" in flow.stand.do("show", "addons")

    flow.stand.do("delete", "profile", "fleet/gateway")
    eventually("nobody has it", lambda: where() == [])


ROLE = GVK("rbac.authorization.k8s.io", "v1", "Role")


def test_a_team_writes_where_it_was_given_rights(flow: Flow, tmp_path: Path) -> None:
    """It is denied in other namespaces, with the missing right; deleted at once all of it goes."""
    hours = config_map("opening-hours", "shop")
    flow.stand.do("apply", "-f", str(EXAMPLES / "tenant"))
    eventually("the team's is there", lambda: flow.source.get(hours))
    assert len(flow.source.names(ROLE, "shop")) == 1
    assert flow.destination.names(ROLE, "shop") == []

    other = tmp_path / "elsewhere.yaml"
    text = (EXAMPLES / "tenant" / "shop.yaml").read_text()
    other.write_text(text.replace("opening-hours\n      namespace: shop", "opening-hours"))
    flow.stand.do("apply", "-f", str(other))
    eventually("it is denied", lambda: "grant it this one" in flow.failures())
    assert flow.source.get(config_map("opening-hours")) is None

    flow.stand.do("delete", "-f", str(EXAMPLES / "tenant"))
    eventually("the role is gone", lambda: flow.source.names(ROLE, "shop") == [])
    assert flow.source.get(hours) is None
    eventually("nothing is left to do", lambda: "shop" not in flow.failures())


QUOTA = GVK("", "v1", "ResourceQuota")


def test_a_cluster_gets_what_its_class_gets(flow: Flow) -> None:
    """A new device plugin deploys a label and a quota, and takes both along when it goes.

    It takes long: a cluster keeps its label for thirty seconds in which what went may come back.
    """
    plugin: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nvidia-device-plugin", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "plugin"}},
            "template": {
                "metadata": {"labels": {"app": "plugin"}},
                "spec": {"containers": [{"name": "plugin", "image": "registry.example/plugin:1"}]},
            },
        },
    }

    def classes() -> list[list[str]]:
        shown = flow.stand.do("get", "classifiers", "--no-headers", "-o", "wide")
        return [[line.split()[0], line.split()[-1]] for line in shown.splitlines()]

    flow.apply("classified")
    eventually(
        "a script is satisfied", lambda: classes()[1][0] == "roomy" and "/" in classes()[1][1]
    )
    flow.source.create(plugin)
    eventually("the quota is there", lambda: flow.source.names(QUOTA) == ["gpus"])
    assert classes()[0] == ["gpu", "fleet/source"]
    assert flow.destination.names(QUOTA) == []

    flow.source.delete(ObjectKey(GVK("apps", "v1", "DaemonSet"), "default", "nvidia-device-plugin"))
    eventually("the quota is gone", lambda: flow.source.names(QUOTA) == [], patience=90)


def test_replicates_a_secret_on_demand(flow: Flow) -> None:
    """Namespaces eng and hr ask for it: both have it, and the list of them is a ConfigMap."""
    ask_for_secret(flow)
    generated = yaml.safe_load(
        flow.stand.do(
            "get", "configmap", "fleet-source-namespaces", "-n", "projectsveltos", "-o", "yaml"
        )
    )
    generated = generated["items"][0] if generated.get("kind") == "List" else generated
    assert generated["metadata"]["namespace"] == "projectsveltos"
    lines = [line.strip() for line in generated["data"]["namespaces"].splitlines()]
    assert [line for line in lines if line] == ['eng: "ok"', 'hr: "ok"']
    head = flow.stand.do("show", "addons").splitlines()[0]
    assert " ".join(head.split()) == ("CLUSTER RESOURCE TYPE NAMESPACE NAME VERSION AGE PROFILES")

    def rows() -> list[list[str]]:
        return [line.split() for line in flow.stand.do("show", "addons").splitlines()[1:]]

    # A profile lists its objects a moment after they are there.
    eventually(
        lambda: f"both are listed, and not {rows()}",
        lambda: (
            [row[:5] for row in rows()]
            == [["fleet/source", ":Secret", name, CREDENTIALS, "N/A"] for name in ("eng", "hr")]
        ),
    )
    (profile,) = {row[-1] for row in rows()}
    assert profile.startswith("ClusterProfile/")
    used = flow.stand.do("show", "usage", "--kind", "ClusterProfile", "--no-headers").split()
    assert (used[0], used[-1]) == ("ClusterProfile", "fleet/source")

    flow.source.patch(
        ObjectKey(GVK("", "v1", "Namespace"), "", "hr"), {"metadata": {"labels": None}}
    )
    eventually("one is withdrawn", lambda: sorted(read_replicas(flow)) == ["eng"])
