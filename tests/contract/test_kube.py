"""Every sentence of the port `Kube`, asked of a real API server and of the fake."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.api.health_check import ClusterHealthCheck
from bellhop.api.kinds import parse_all, read_documents
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, Resource
from bellhop.core.terminating_objects import why_kept
from bellhop.errors import InvalidError, MissingError, StaleError
from bellhop.extras.health.records import Condition
from bellhop.extras.health.texts import event
from bellhop.ports.kube import Kube, Manifest, Page
from tests.fakes.kube import FakeKube
from tests.waiting import eventually

CONFIG_MAP = GVK("", "v1", "ConfigMap")
EVENT = GVK("", "v1", "Event")
SERVICE = GVK("", "v1", "Service")
NAMESPACE = GVK("", "v1", "Namespace")
DEPLOYMENT = GVK("apps", "v1", "Deployment")
CLUSTER_ROLE = GVK("rbac.authorization.k8s.io", "v1", "ClusterRole")
WIDGET = GVK("lab.example", "v1", "Widget")
OLD_WIDGET = WIDGET._replace(version="v1beta1")

CHECK = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterHealthCheck
metadata: {name: production}
spec:
  clusterSelector: {matchLabels: {env: production}}
  livenessChecks: [{name: deployment, type: Addons}]
  notifications: [{name: event, type: KubernetesEvent}]
"""


def config_map(name: str = "a", namespace: str = "default", **data: str) -> Manifest:
    """Make a ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def namespace(name: str) -> Manifest:
    """Make a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def widgets(scope: str = "Namespaced", **served: bool) -> Manifest:
    """Make the definition of a custom kind, of which v1 is stored and other versions may be."""
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    versions = [
        {"name": each, "served": is_served, "storage": each == "v1"}
        for each, is_served in {"v1": True, **served}.items()
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.lab.example"},
        "spec": {
            "group": "lab.example",
            "scope": scope,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [
                {**version, "schema": {"openAPIV3Schema": schema}} for version in versions
            ],
        },
    }


@pytest.fixture(params=[pytest.param("api server", marks=pytest.mark.oldest), "fake"])
def kube(request: pytest.FixtureRequest) -> Iterator[Kube]:
    """One cluster, as after its start."""
    if request.param == "fake":
        yield FakeKube("prod/eu-1")
        return
    client = KubeClient(
        "prod/eu-1",
        sanitise(request.getfixturevalue("source_cluster").kubeconfig(), reach=LOCAL),
        reach=LOCAL,
    )
    yield client
    client.close()


def test_returns_the_issuer_of_its_accounts_tokens(kube: Kube) -> None:
    """The issuer, and a key set that holds only public keys."""
    issuer, published = kube.issuer()

    assert issuer == "https://kubernetes.default.svc"
    assert all("d" not in key for key in published["keys"])


def names(objects: Iterator[Manifest]) -> list[str]:
    """Return the names, in order."""
    return sorted(each["metadata"]["name"] for each in objects)


def widget(gvk: GVK = WIDGET) -> Manifest:
    """Make an object of the custom kind."""
    metadata = {"name": "w", "namespace": "default"}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": {"a": 1}}


def wait_for(kube: Kube, gvk: GVK) -> None:
    """Wait until a kind is served; it takes an API server a moment to establish it."""
    eventually("the kind is served", lambda: kube.resource(gvk))


@pytest.mark.parametrize(
    ("gvk", "plural", "namespaced"),
    [
        pytest.param(SERVICE, "services", True, id="core"),
        pytest.param(DEPLOYMENT, "deployments", True, id="of a group"),
        pytest.param(NAMESPACE, "namespaces", False, id="cluster-scoped"),
    ],
)
def test_finds_the_resource_of_a_kind(
    kube: Kube,
    gvk: GVK,
    plural: str,
    namespaced: bool,  # noqa: FBT001
) -> None:
    """A kind is served under a plural, in namespaces or not."""
    resource = kube.resource(gvk)

    assert resource is not None
    assert (resource.gvk, resource.plural, resource.namespaced) == (gvk, plural, namespaced)


@pytest.mark.parametrize(
    "gvk",
    [
        pytest.param(GVK("nobody.example", "v1", "Thing"), id="group"),
        pytest.param(GVK("apps", "v1", "Thing"), id="kind"),
        pytest.param(GVK("apps", "v17", "Deployment"), id="version"),
    ],
)
def test_an_unknown_kind_has_no_resource(kube: Kube, gvk: GVK) -> None:
    """What the cluster does not know is None, and no error."""
    assert kube.resource(gvk) is None


def test_reads_an_object(kube: Kube) -> None:
    """What was applied is read back."""
    kube.apply(config_map(key="value"))

    manifest = kube.get(CONFIG_MAP, "default", "a")

    assert manifest is not None
    assert manifest["data"] == {"key": "value"}
    assert manifest["metadata"]["uid"]


@pytest.mark.parametrize("where", ["default", "nowhere"])
def test_an_object_that_is_not_there_is_none(kube: Kube, where: str) -> None:
    """Not there is an answer, also in a namespace that is not there."""
    assert kube.get(CONFIG_MAP, where, "a") is None


def test_an_object_of_an_unknown_kind_is_not_none(kube: Kube) -> None:
    """A cluster without the kind says nothing about the object."""
    with pytest.raises(MissingError, match=r"(?s)prod/eu-1.*lab.example/v1/Widget"):
        kube.get(WIDGET, "default", "a")


def test_lists_the_objects_of_all_namespaces(kube: Kube) -> None:
    """Each comes with apiVersion and kind, which API servers leave out of lists."""
    kube.apply(namespace("web"))
    kube.apply(config_map("a"))
    kube.apply(config_map("b", "web"))

    found = [
        each
        for each in kube.list(CONFIG_MAP)
        if each["metadata"]["namespace"] in {"default", "web"}
    ]

    assert names(iter(found)) == ["a", "b"]
    assert {(each["apiVersion"], each["kind"]) for each in found} == {("v1", "ConfigMap")}


def test_lists_the_objects_of_one_namespace(kube: Kube) -> None:
    """Others are left out."""
    kube.apply(namespace("web"))
    kube.apply(config_map("a"))
    kube.apply(config_map("b", "web"))

    assert names(kube.list(CONFIG_MAP, namespace="web")) == ["b"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param("app=web", ["a"], id="equals"),
        pytest.param("app in (web, api)", ["a", "b"], id="in"),
        pytest.param("app!=web", ["b", "c"], id="not equals"),
        pytest.param("!app", ["c"], id="absent"),
        pytest.param("app,app notin (api)", ["a"], id="two"),
    ],
)
def test_lists_by_labels(kube: Kube, labels: str, expected: list[str]) -> None:
    """A selector is Kubernetes' own."""
    for name, app in (("a", "web"), ("b", "api"), ("c", None)):
        manifest = config_map(name)
        manifest["metadata"]["labels"] = {"app": app} if app else {}
        kube.apply(manifest)

    assert names(kube.list(CONFIG_MAP, namespace="default", labels=labels)) == expected


def test_a_list_of_nothing_is_empty(kube: Kube) -> None:
    """Nothing is there, and that is certain."""
    assert list(kube.list(DEPLOYMENT)) == []


def test_a_list_of_an_unknown_kind_is_not_empty(kube: Kube) -> None:
    """A cluster without the kind is not a cluster without objects."""
    with pytest.raises(MissingError):
        list(kube.list(WIDGET))


def test_applies_a_new_object(kube: Kube) -> None:
    """What is returned is the object as the cluster has it."""
    applied = kube.apply(config_map(key="value"))

    assert applied == kube.get(CONFIG_MAP, "default", "a")


def test_applying_the_same_again_changes_nothing(kube: Kube) -> None:
    """A repeat is no new version."""
    first = kube.apply(config_map(key="value"))

    assert kube.apply(config_map(key="value")) == first


def test_applies_changed_fields_and_removes_deleted_ones(kube: Kube) -> None:
    """Fields applied before and not now are removed."""
    first = kube.apply(config_map(kept="1", changed="1", dropped="1"))

    second = kube.apply(config_map(kept="1", changed="2"))

    assert second["data"] == {"kept": "1", "changed": "2"}
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]


def test_applies_what_it_read(kube: Kube) -> None:
    """What only the cluster writes is not sent, however old it is."""
    old = kube.apply(config_map(key="1"))
    kube.apply(config_map(key="2"))
    old["metadata"] |= {"uid": "another", "creationTimestamp": "2001-01-01T00:00:00Z"}

    assert kube.apply(old)["data"] == {"key": "1"}


def test_does_not_change_what_it_is_given(kube: Kube) -> None:
    """The caller's manifest stays its own."""
    manifest = config_map(key="1")

    kube.apply(manifest)

    assert manifest == config_map(key="1")


def test_makes_an_object_only_where_there_is_none(kube: Kube) -> None:
    """With an empty uid whatever is there stays as it is, be it what was to be made."""
    made = kube.apply(config_map(key="1"), uid="")

    for again in ("1", "2"):
        with pytest.raises(StaleError):
            kube.apply(config_map(key=again), uid="")
    assert kube.get(CONFIG_MAP, "default", "a") == made


def test_makes_a_service_only_where_there_is_none(kube: Kube) -> None:
    """Old API servers refuse a resourceVersion in a new object of its kind."""
    ports = [{"port": 80, "protocol": "TCP"}]
    head = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}

    uid = kube.apply({**head, "spec": {"ports": ports}}, uid="")["metadata"]["uid"]

    with pytest.raises(StaleError):
        kube.apply({**head, "spec": {"ports": ports}}, uid="")
    there = kube.get(SERVICE, "default", "a")
    assert there
    assert there["metadata"]["uid"] == uid


@pytest.mark.parametrize("kind", ["built in", "custom"])
def test_applies_to_one_life_of_an_object(kube: Kube, kind: str) -> None:
    """What has another uid stays as it is, and where nothing is, nothing is made."""
    manifest = config_map(v="1")
    if kind == "custom":
        kube.apply(widgets())
        wait_for(kube, WIDGET)
        manifest = widget()
    with pytest.raises(StaleError):
        kube.apply(manifest, uid="another")
    made = kube.apply(manifest)
    changed = {**manifest, "metadata": {**manifest["metadata"], "labels": {"new": "yes"}}}

    with pytest.raises(StaleError):
        kube.apply(changed, uid="another")
    assert kube.get(GVK.of(manifest), "default", manifest["metadata"]["name"]) == made
    applied = kube.apply(changed, uid=made["metadata"]["uid"])
    assert applied["metadata"]["labels"] == {"new": "yes"}


@pytest.mark.parametrize("kind", ["built in", "custom"])
def test_applies_to_one_version_of_a_life(kube: Kube, kind: str) -> None:
    """What was written since by anybody, ourselves among them, stays as it is."""
    manifest = config_map(v="1")
    if kind == "custom":
        kube.apply(widgets())
        wait_for(kube, WIDGET)
        manifest = widget()
    seen = kube.apply(manifest)["metadata"]
    changed = {**manifest, "metadata": {**manifest["metadata"], "labels": {"new": "yes"}}}
    other = {**manifest, "metadata": {**manifest["metadata"], "labels": {"new": "no"}}}
    life = {"uid": seen["uid"], "version": seen["resourceVersion"]}

    assert kube.apply(changed, **life)["metadata"]["labels"] == {"new": "yes"}
    with pytest.raises(StaleError):
        kube.apply(other, **life)

    there = kube.get(GVK.of(manifest), "default", manifest["metadata"]["name"])
    assert there
    assert there["metadata"]["labels"] == {"new": "yes"}


def test_integers_stay_integers(kube: Kube) -> None:
    """A port and 2**63 - 1 come back as they went in."""
    kube.apply(widgets())
    wait_for(kube, WIDGET)
    spec = {"port": 443, "largest": 2**63 - 1, "least": -(2**63), "half": 0.5}
    widget = {
        "apiVersion": "lab.example/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": spec,
    }

    applied = kube.apply(widget)

    assert applied["spec"] == spec
    assert [type(value) for value in spec.values()] == [int, int, int, float]


def test_puts_an_object_without_a_namespace_into_default(kube: Kube) -> None:
    """As kubectl does without one."""
    manifest = config_map()
    del manifest["metadata"]["namespace"]

    assert kube.apply(manifest)["metadata"]["namespace"] == "default"
    assert kube.get(CONFIG_MAP, "default", "a") is not None


def test_drops_the_namespace_of_a_cluster_scoped_object(kube: Kube) -> None:
    """A namespace means nothing there."""
    manifest = namespace("web")
    manifest["metadata"]["namespace"] = "default"

    applied = kube.apply(manifest)

    assert "namespace" not in applied["metadata"]


def test_a_change_that_may_not_be_is_refused(kube: Kube) -> None:
    """What is immutable stays, and the refusal says by its status that it is about a change."""
    fixed = {**config_map("fixed"), "immutable": True}
    kube.apply({**fixed, "data": {"v": "1"}})

    with pytest.raises(InvalidError) as caught:
        kube.apply({**fixed, "data": {"v": "2"}})

    assert caught.value.context["status"] == 422
    there = kube.get(GVK("", "v1", "ConfigMap"), "default", "fixed")
    assert there
    assert there["data"] == {"v": "1"}


def test_a_dry_run_changes_nothing(kube: Kube) -> None:
    """It shows what would be, of a new object and of one that is there."""
    kube.apply(config_map("there", key="1"))

    shown = [
        kube.apply(config_map(name, key="2"), dry_run=True)["data"] for name in ("new", "there")
    ]

    assert shown == [{"key": "2"}, {"key": "2"}]
    assert kube.get(CONFIG_MAP, "default", "new") is None
    there = kube.get(CONFIG_MAP, "default", "there")
    assert there is not None
    assert there["data"] == {"key": "1"}


def test_a_missing_namespace_is_named(kube: Kube) -> None:
    """The person sees what to create."""
    with pytest.raises(MissingError, match="nowhere"):
        kube.apply(config_map("a", "nowhere"))


def test_an_object_of_an_unknown_kind_cannot_be_applied(kube: Kube) -> None:
    """The kind is missing, not the object wrong."""
    manifest = {"apiVersion": "lab.example/v1", "kind": "Widget", "metadata": {"name": "w"}}

    with pytest.raises(MissingError):
        kube.apply(manifest)


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}, id="no name"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap"}, id="no metadata"),
        pytest.param({"apiVersion": "v1", "metadata": {"name": "a"}}, id="no kind"),
    ],
)
def test_an_object_without_identity_is_invalid(kube: Kube, manifest: Manifest) -> None:
    """What cannot be named cannot be applied."""
    with pytest.raises(InvalidError):
        kube.apply(manifest)


def test_merges_a_patch_into_an_object(kube: Kube) -> None:
    """What it names changes, None takes away, and the rest stays."""
    manifest = config_map(a="1", b="1", c="1")
    manifest["metadata"]["labels"] = {"app": "web", "tier": "front"}
    kube.apply(manifest)
    patch = {"metadata": {"labels": {"app": None}}, "data": {"b": "2", "c": None, "d": "4"}}

    assert kube.merge(CONFIG_MAP, "default", "a", patch) is True
    there = kube.get(CONFIG_MAP, "default", "a")
    assert there is not None
    assert there["metadata"]["labels"] == {"tier": "front"}
    assert there["data"] == {"a": "1", "b": "2", "d": "4"}


STATUS = {"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}}


def balanced(**spec: str) -> Manifest:
    """Make a Service with a status that somebody else usually writes."""
    head = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    ports = [{"port": 80, "protocol": "TCP"}]
    # Newer API servers refuse the status of another type.
    desired = {"type": "LoadBalancer", "ports": ports, **spec}
    return {**head, "spec": desired, "status": STATUS}


def test_writes_a_status_apart_from_the_rest(kube: Kube) -> None:
    """`apply` leaves it out, and writing it later changes nothing else, nor is it lost."""
    made = kube.apply(balanced())
    assert made.get("status", {}) in ({}, {"loadBalancer": {}})

    kube.merge_status(balanced(externalName="x"), uid=made["metadata"]["uid"])
    kube.apply(balanced(externalName="y"))
    there = kube.get(SERVICE, "default", "a")
    assert there is not None
    assert there["status"] == STATUS
    assert there["spec"]["externalName"] == "y"


def test_writes_the_status_of_only_one_uid(kube: Kube) -> None:
    """Another life is left as it is, and none is made."""
    with pytest.raises(StaleError):
        kube.merge_status(balanced(), uid="another")
    kube.apply(balanced())
    with pytest.raises(StaleError):
        kube.merge_status(balanced(), uid="another")

    there = kube.get(SERVICE, "default", "a")
    assert there is not None
    assert there.get("status", {}) in ({}, {"loadBalancer": {}})


def test_applies_a_status_whole(kube: Kube) -> None:
    """Fields of the last one that are not in the next are deleted; the rest stays as it is."""
    uid = kube.apply(balanced(externalName="x"))["metadata"]["uid"]
    kube.apply_status(balanced(), uid=uid)

    kube.apply_status({**balanced(externalName="y"), "status": {}}, uid=uid)

    there = kube.get(SERVICE, "default", "a")
    assert there is not None
    assert there.get("status", {}) in ({}, {"loadBalancer": {}})
    assert there["spec"]["externalName"] == "x"
    with pytest.raises(StaleError):
        kube.apply_status(balanced(), uid="another")
    with pytest.raises(InvalidError, match="has no status of its own; leave it out"):
        kube.apply_status({**config_map(a="1"), "status": {}}, uid="any")


def test_says_which_kinds_have_no_status(kube: Kube) -> None:
    """And which are not there at all."""
    uid = kube.apply(config_map(a="1"))["metadata"]["uid"]
    with pytest.raises(InvalidError, match="has no status of its own; leave it out"):
        kube.merge_status({**config_map(a="1"), "status": {}}, uid=uid)
    with pytest.raises(MissingError):
        kube.merge_status({**widget(), "status": {}}, uid=uid)


def test_takes_an_event_that_is_sent_twice_once(kube: Kube) -> None:
    """The report of a cluster's health is an Event that an API server takes."""
    declared = parse_all(read_documents(CHECK, source="check.yaml"))[0]
    assert isinstance(declared, ClusterHealthCheck)
    found = Condition(healthy=False, since=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    sent = event(declared, "fleet/east", found, "not well\n" + "é" * 2000)

    for _ in range(2):
        kube.apply(sent)

    [there] = [each for each in kube.list(EVENT) if each["reason"] == "ClusterHealthCheck"]
    assert there["type"] == "Warning"
    assert there["firstTimestamp"] == "2026-01-02T03:04:05Z"
    assert there["message"].startswith("not well\né")
    kube.remove(EVENT, "default", there["metadata"]["name"])


def test_merges_into_the_state_that_was_meant(kube: Kube) -> None:
    """A change or a re-creation of the object in the meantime is not undone."""
    old = kube.apply(config_map(a="1"))["metadata"]["resourceVersion"]
    new = kube.apply(config_map(a="2"))["metadata"]["resourceVersion"]

    with pytest.raises(StaleError):
        kube.merge(CONFIG_MAP, "default", "a", {"metadata": {"resourceVersion": old}, "data": {}})

    patch = {"metadata": {"resourceVersion": new}, "data": {"a": "3"}}
    assert kube.merge(CONFIG_MAP, "default", "a", patch) is True
    there = kube.get(CONFIG_MAP, "default", "a")
    assert there is not None
    assert there["data"] == {"a": "3"}


def test_merges_into_nothing_that_is_not_there(kube: Kube) -> None:
    """No object is made, and none of an unknown kind is taken for deleted."""
    assert kube.merge(CONFIG_MAP, "default", "a", {"data": {"a": "1"}}) is False
    assert kube.get(CONFIG_MAP, "default", "a") is None
    with pytest.raises(MissingError):
        kube.merge(WIDGET, "default", "w", {"spec": {}})


def test_removes_an_object_once(kube: Kube) -> None:
    """The second time it was not there any more."""
    kube.apply(config_map())

    assert kube.remove(CONFIG_MAP, "default", "a") == {}
    assert kube.get(CONFIG_MAP, "default", "a") is None
    assert kube.remove(CONFIG_MAP, "default", "a") is None


def test_removes_an_object_that_still_has_the_uid(kube: Kube) -> None:
    """It is the one that was meant."""
    uid = kube.apply(config_map())["metadata"]["uid"]

    assert kube.remove(CONFIG_MAP, "default", "a", uid=uid) == {}


def test_does_not_remove_an_object_of_another_uid(kube: Kube) -> None:
    """Somebody else made a new one under the name: nothing of ours is there any more."""
    kube.apply(config_map())

    assert kube.remove(CONFIG_MAP, "default", "a", uid="another") is None
    assert kube.get(CONFIG_MAP, "default", "a") is not None


def test_does_not_remove_a_re_created_object(kube: Kube) -> None:
    """The name is the same and the object another."""
    first = kube.apply(config_map())["metadata"]["uid"]
    kube.remove(CONFIG_MAP, "default", "a")
    second = kube.apply(config_map())["metadata"]["uid"]

    assert kube.remove(CONFIG_MAP, "default", "a", uid=first) is None
    there = kube.get(CONFIG_MAP, "default", "a")
    assert there is not None
    assert there["metadata"]["uid"] == second != first


def test_removes_an_object_that_finalizers_hold(kube: Kube) -> None:
    """It is returned as long as they keep it; asking again does no harm."""
    manifest = config_map()
    manifest["metadata"]["finalizers"] = ["lab.example/held"]
    uid = kube.apply(manifest)["metadata"]["uid"]

    removed = [kube.remove(CONFIG_MAP, "default", "a", uid=uid) for _ in range(2)]
    there = kube.get(CONFIG_MAP, "default", "a")

    assert there is not None
    since = there["metadata"]["deletionTimestamp"]
    why = [why_kept(left or {}) for left in removed]
    deleted_at = datetime.fromisoformat(since).strftime("%Y-%m-%d %H:%M:%S UTC")
    assert why == [f"finalizer 'lab.example/held' has kept it since {deleted_at}"] * 2
    kube.apply(config_map())
    assert kube.get(CONFIG_MAP, "default", "a") is None
    assert kube.remove(CONFIG_MAP, "default", "a", uid=uid) is None


def test_removing_an_object_of_an_unknown_kind_finds_nothing(kube: Kube) -> None:
    """With its definition went every object of the kind."""
    assert kube.remove(WIDGET, "default", "w") is None


def test_finds_a_kind_that_was_defined_meanwhile(kube: Kube) -> None:
    """That it was not there is not remembered."""
    assert kube.resource(WIDGET) is None

    kube.apply(widgets(scope="Cluster"))
    wait_for(kube, WIDGET)

    resource = kube.resource(WIDGET)
    assert resource is not None
    assert (resource.plural, resource.namespaced) == ("widgets", False)
    assert list(kube.list(WIDGET)) == []


def test_apply_returns_the_uid(kube: Kube) -> None:
    """A later removal of the object can say which one was meant."""
    first = kube.apply(config_map(key="1"))["metadata"]["uid"]
    again = kube.apply(config_map(key="2"))["metadata"]["uid"]
    shown = kube.apply(config_map("new"), dry_run=True)["metadata"]["uid"]
    there = kube.get(CONFIG_MAP, "default", "a")

    assert there is not None
    assert first == again == there["metadata"]["uid"]
    assert shown


# Pages ------------------------------------------------------------------------------------------


def test_reads_a_list_page_by_page(kube: Kube) -> None:
    """Each page says where the next one begins, and the last one that it is the last."""
    for index in range(5):
        kube.apply(config_map(f"of-{index}"))

    pages = [kube.page(CONFIG_MAP, limit=2, namespace="default")]
    while pages[-1].after:
        pages.append(kube.page(CONFIG_MAP, limit=2, after=pages[-1].after, namespace="default"))

    assert [[each["metadata"]["name"] for each in page.items] for page in pages] == [
        ["of-0", "of-1"],
        ["of-2", "of-3"],
        ["of-4"],
    ]
    assert {(each["apiVersion"], each["kind"]) for page in pages for each in page.items} == {
        ("v1", "ConfigMap")
    }


def test_pages_follow_the_bytes_of_namespaces_and_names(kube: Kube) -> None:
    """An object on no page is found by the ranges that the pages cover."""
    places = ["a-b/x", "a-b/x-1", "a-b/x.y", "a/x", "a/x-1", "a/x.y", "a0/x"]
    for each in ("a", "a0", "a-b"):
        kube.apply(namespace(each))
    for place in reversed(places):
        where, _, name = place.partition("/")
        kube.apply(config_map(name, where))
    pages = [kube.page(CONFIG_MAP, limit=2)]
    while pages[-1].after:
        pages.append(kube.page(CONFIG_MAP, limit=2, after=pages[-1].after))

    metadata = [each["metadata"] for page in pages for each in page.items]
    found = [f"{each['namespace']}/{each['name']}" for each in metadata]
    assert found == sorted(found)
    assert [each for each in found if each in places] == places


def test_a_page_names_the_manager_of_an_object(kube: Kube) -> None:
    """Other tools leave the same labels; ours is the field manager."""
    kube.apply(config_map("mine", v="1"))

    items = kube.page(CONFIG_MAP, limit=50).items
    [metadata] = [each["metadata"] for each in items if each["metadata"]["name"] == "mine"]
    assert {each["manager"] for each in metadata["managedFields"]} == {"bellhop"}


def test_pages_may_have_different_sizes(kube: Kube) -> None:
    """Who learns that pages are too large asks for less from where it was."""
    for index in range(5):
        kube.apply(config_map(f"of-{index}"))

    first = kube.page(CONFIG_MAP, limit=1, namespace="default")
    rest = kube.page(CONFIG_MAP, limit=9, after=first.after, namespace="default")

    assert len(first.items) == 1
    assert len(rest.items) == 4
    assert rest.after == ""


def test_pages_show_one_state(kube: Kube) -> None:
    """What is deleted while it is being read is not missed on the pages to come."""
    for name in ("a", "b", "c"):
        kube.apply(config_map(name))

    first = kube.page(CONFIG_MAP, limit=2, namespace="default")
    kube.remove(CONFIG_MAP, "default", "c")
    kube.apply(config_map("d"))
    rest = kube.page(CONFIG_MAP, limit=2, after=first.after, namespace="default")

    assert [each["metadata"]["name"] for each in rest.items] == ["c"]


def test_a_page_is_chosen_by_labels(kube: Kube) -> None:
    """As a list is."""
    for name, app in (("a", "web"), ("b", "api"), ("c", "web")):
        manifest = config_map(name)
        manifest["metadata"]["labels"] = {"app": app}
        kube.apply(manifest)

    page = kube.page(CONFIG_MAP, limit=9, namespace="default", labels="app=web")

    assert [each["metadata"]["name"] for each in page.items] == ["a", "c"]


def test_a_page_of_nothing_is_the_last(kube: Kube) -> None:
    """Nothing is there, and that is certain."""
    page = kube.page(DEPLOYMENT, limit=9)

    assert page == Page([], "", size=page.size)


def test_a_page_of_an_unknown_kind_is_not_empty(kube: Kube) -> None:
    """A cluster without the kind is not a cluster without objects."""
    with pytest.raises(MissingError):
        kube.page(WIDGET, limit=9)


# Versions ---------------------------------------------------------------------------------------


@pytest.fixture
def two_versions(kube: Kube) -> Kube:
    """Serve a kind in two versions."""
    kube.apply(widgets(v1beta1=True))
    for gvk in (WIDGET, OLD_WIDGET):
        wait_for(kube, gvk)
    return kube


def test_names_the_versions_of_a_kind(two_versions: Kube) -> None:
    """The preferred one comes first, and is the one that is served."""
    resource = two_versions.served("lab.example", "Widget")

    assert two_versions.versions("lab.example", "Widget") == ("v1", "v1beta1")
    assert resource == Resource(WIDGET, "widgets", namespaced=True)


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        pytest.param("", "Service", id="core"),
        pytest.param("apps", "Deployment", id="of a group"),
    ],
)
def test_names_the_versions_of_a_built_in_kind(kube: Kube, group: str, kind: str) -> None:
    """The core group has another path."""
    resource = kube.served(group, kind)

    assert resource is not None
    assert resource.gvk == GVK(group, "v1", kind)
    assert kube.versions(group, kind)[0] == "v1"


@pytest.mark.parametrize(
    ("group", "kind"),
    [("nobody.example", "Thing"), ("apps", "Thing"), ("", "Thing"), ("../apis", "Thing")],
)
def test_an_unknown_kind_has_no_versions(kube: Kube, group: str, kind: str) -> None:
    """What the cluster does not know is None, and no error."""
    assert kube.served(group, kind) is None
    assert kube.versions(group, kind) == ()


def test_versions_show_one_object(two_versions: Kube) -> None:
    """What is written in one is read, listed, applied and removed in the other."""
    kube = two_versions
    uid = kube.apply(widget(OLD_WIDGET))["metadata"]["uid"]

    there = kube.get(WIDGET, "default", "w")
    again = kube.apply(widget(WIDGET))
    (listed,) = kube.list(OLD_WIDGET)

    assert there is not None
    assert there["apiVersion"] == again["apiVersion"] == WIDGET.api_version
    assert there["metadata"]["uid"] == again["metadata"]["uid"] == uid
    assert (listed["apiVersion"], listed["metadata"]["uid"]) == (OLD_WIDGET.api_version, uid)
    assert kube.remove(OLD_WIDGET, "default", "w", uid=uid) == {}
    assert kube.get(WIDGET, "default", "w") is None


def test_an_object_outlives_the_version_in_which_it_was_written(two_versions: Kube) -> None:
    """Where that is not served any more it is read and removed by another one, and not applied."""
    kube = two_versions
    uid = kube.apply(widget(OLD_WIDGET))["metadata"]["uid"]
    kube.apply(widgets(v1beta1=False))

    def read() -> dict[str, Any] | None:
        there = kube.get(OLD_WIDGET, "default", "w")
        assert there is not None
        served = kube.versions("lab.example", "Widget") != ("v1",) or kube.resource(OLD_WIDGET)
        return there if there["apiVersion"] == WIDGET.api_version and not served else None

    # The API server stops serving a version, and says so in its discovery, one after the other.
    there = eventually("the old version is not served", read)
    assert there is not None
    assert there["metadata"]["uid"] == uid
    assert kube.resource(OLD_WIDGET) is None
    assert kube.versions("lab.example", "Widget") == ("v1",)
    with pytest.raises(MissingError):
        kube.apply(widget(OLD_WIDGET))
    with pytest.raises(MissingError):
        list(kube.list(OLD_WIDGET))
    assert kube.remove(OLD_WIDGET, "default", "w", uid="another") is None
    assert kube.remove(OLD_WIDGET, "default", "w", uid=uid) == {}
    assert kube.get(OLD_WIDGET, "default", "w") is None


def test_threads_share_it(kube: Kube) -> None:
    """Eight threads at once do what one would do."""
    together = threading.Barrier(8)

    def work(index: int) -> list[Any]:
        together.wait(10)
        name = f"of-{index}"
        return [
            kube.apply(config_map(name, key=str(index)))["data"]["key"],
            kube.get(CONFIG_MAP, "default", name) is not None,
            kube.remove(CONFIG_MAP, "default", name),
        ]

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(work, range(8)))

    assert results == [[str(index), True, {}] for index in range(8)]
