"""What only a real API server can answer: rights, outages, ownership, sizes, and its defects."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import reduce
from typing import Any

import pytest

from bellhop.adapters.egress import client as egress
from bellhop.adapters.kube import client as kube_client
from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.adapters.kube.discovery import BUILT_IN, group_path, resources
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request, Transport
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.deploy.features.resources.planning import Desired, decorate, undecorate
from bellhop.errors import (
    DeniedError,
    InvalidError,
    MissingError,
    StaleError,
    TooLargeError,
    UnreachableError,
)
from bellhop.ports.kube import Manifest
from bellhop.resync import owned_kinds
from infra.lab.cluster import Cluster
from tests.contract.test_kube import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    NAMESPACE,
    SERVICE,
    WIDGET,
    config_map,
    names,
    namespace,
    wait_for,
    widgets,
)
from tests.contract.versions import another_version
from tests.waiting import await_rights, eventually

pytestmark = pytest.mark.oldest

SECRET = GVK("", "v1", "Secret")
LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
NESTED = {
    "type": "object",
    "properties": {
        "labels": TEXTS,
        "deep": {
            "type": "object",
            "properties": {"m": TEXTS, "i": {"type": "integer"}},
        },
    },
}


@pytest.fixture
def kubeconfig(source_cluster: Cluster) -> Kubeconfig:
    """The administrator's."""
    return sanitise(source_cluster.kubeconfig(), reach=LOCAL)


@pytest.fixture
def kube(kubeconfig: Kubeconfig) -> Iterator[KubeClient]:
    """The administrator of one cluster, as after its start."""
    client = KubeClient("prod/eu-1", kubeconfig, reach=LOCAL)
    yield client
    client.close()


@pytest.fixture
def limited(kube: KubeClient, kubeconfig: Kubeconfig) -> Iterator[KubeClient]:
    """A user who may read ConfigMaps and nothing else."""
    kube.apply(
        {
            "apiVersion": CLUSTER_ROLE.api_version,
            "kind": "ClusterRole",
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
        }
    )
    kube.apply(
        {
            "apiVersion": CLUSTER_ROLE.api_version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "reader"},
            "roleRef": {
                "apiGroup": CLUSTER_ROLE.group,
                "kind": "ClusterRole",
                "name": "reader",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "carol", "namespace": "web"}],
        }
    )
    client = KubeClient("prod/eu-1", kubeconfig, reach=LOCAL)
    await_rights(client, "web/carol", [Right(verb, "", "configmaps") for verb in ("get", "list")])
    yield client.acting_as("web/carol")
    client.close()


def widget(spec: Any) -> Manifest:
    """Make an object of the custom kind."""
    return {
        "apiVersion": "lab.example/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": spec,
    }


def secret(**data: Any) -> Manifest:
    """Make a Secret."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"},
        "data": data,
    }


def define(kube: KubeClient, schema: Manifest) -> None:
    """Define the custom kind with a schema of its spec, and wait until it can be written."""
    definition = copy.deepcopy(widgets())
    version = definition["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = schema
    kube.apply(definition)
    wait_for(kube, WIDGET)


# Each reaches the API server, whatever is there.
CALLS: list[Any] = [
    pytest.param(lambda kube: kube.get(CONFIG_MAP, "default", "a"), id="get"),
    pytest.param(lambda kube: list(kube.list(CONFIG_MAP)), id="list"),
    pytest.param(lambda kube: kube.apply(config_map()), id="apply"),
    pytest.param(lambda kube: kube.remove(CONFIG_MAP, "default", "a"), id="remove"),
    pytest.param(lambda kube: kube.resource(GVK("apps", "v1", "Unknown")), id="resource"),
    pytest.param(lambda kube: kube.version(), id="version"),
    pytest.param(lambda kube: kube.rights([Right("get", "", "pods")]), id="rights"),
]


def test_knows_the_version(kube: KubeClient) -> None:
    """As kubectl shows it."""
    assert kube.version().startswith("v1.")


def test_a_service_that_is_not_there_serves_nothing(kube: KubeClient) -> None:
    """The API server says so itself: there is no issuer that it could ask."""
    with pytest.raises(MissingError) as caught:
        kube.proxied("default", "http:files:80", "a/b.tar.gz")
    assert str(caught.value) == (
        "cannot download 'a/b.tar.gz' from Service 'default/http:files:80' on cluster 'prod/eu-1':"
        " it is not there"
    )


def test_applies_as_bellhop(kube: KubeClient) -> None:
    """The owner of the fields is who the docs say."""
    applied = kube.apply(config_map(key="1"))

    assert [
        (each["manager"], each["operation"]) for each in applied["metadata"]["managedFields"]
    ] == [("bellhop", "Apply")]


def test_takes_fields_over_and_leaves_the_rest(
    kube: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another manager set is ours once we set it too; what we never set stays."""
    with monkeypatch.context() as other:
        other.setattr("bellhop.adapters.kube.applying.MANAGER", "somebody")
        kube.apply(config_map(ours="theirs", theirs="theirs"))

    applied = kube.apply(config_map(ours="ours"))

    assert applied["data"] == {"ours": "ours", "theirs": "theirs"}


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        pytest.param(
            {**config_map(), "bogus": 1}, ".bogus: field not declared", id="unknown field"
        ),
        pytest.param({**config_map(), "data": {"a": [1]}}, ".data.a: expected string", id="type"),
        pytest.param(config_map("Not_A_Name"), 'Invalid value: "Not_A_Name"', id="name"),
        pytest.param(config_map("../secrets/a"), "nor contain '/'", id="path in the name"),
        pytest.param(config_map(".."), "may not be '.' or '..'", id="dots for a name"),
        pytest.param(config_map("a", "../kube-system"), "nor contain '/'", id="path in namespace"),
        pytest.param({**config_map(), "metadata": "x"}, "`metadata`", id="metadata is a text"),
        pytest.param({**config_map(), "metadata": {"name": 7}}, "are texts", id="name is a number"),
        pytest.param({**config_map(), "data": {"a": {1}}}, "what JSON cannot", id="not JSON"),
    ],
)
def test_a_refusal_is_in_the_api_servers_words(
    kube: KubeClient, manifest: Manifest, words: str
) -> None:
    """The person who wrote the manifest finds the place."""
    with pytest.raises(InvalidError) as caught:
        kube.apply(manifest)

    assert words in str(caught.value)
    assert "prod/eu-1" in str(caught.value)


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(secret(password="hunter2 is not base64!"), id="not base64"),
        pytest.param(secret(password={"nested": "hunter2"}), id="wrong type"),
        pytest.param({**secret(), "hunter2": 1}, id="unknown field"),
        pytest.param(
            {**secret(password="aHVudGVyMg=="), "type": "kubernetes.io/tls"}, id="wrong keys"
        ),
    ],
)
def test_a_refused_secret_is_not_quoted(kube: KubeClient, manifest: Manifest) -> None:
    """Not in the message, nor in anything chained to it."""
    with pytest.raises(InvalidError) as caught:
        kube.apply(manifest)

    said = [str(caught.value), str(caught.value.__cause__), str(caught.value.__context__)]
    assert not [text for text in said if "hunter2" in text or "aHVu" in text]
    assert "Secret 'default/s'" in said[0]


@pytest.mark.parametrize(
    ("call", "right"),
    [
        pytest.param(
            lambda kube: kube.get(SERVICE, "default", "a"),
            'cannot get resource "services"',
            id="get",
        ),
        pytest.param(
            lambda kube: list(kube.list(SECRET)),
            'cannot list resource "secrets" in API group "" at the cluster scope',
            id="list",
        ),
        pytest.param(
            lambda kube: kube.apply(config_map()), 'cannot patch resource "configmaps"', id="apply"
        ),
        pytest.param(
            lambda kube: kube.apply(secret()),
            ':carol" cannot patch resource "secrets" in API group "" in the namespace "default"',
            id="apply a secret",
        ),
        pytest.param(
            lambda kube: kube.remove(CONFIG_MAP, "default", "a"),
            'cannot delete resource "configmaps"',
            id="remove",
        ),
        pytest.param(
            lambda kube: kube.token_request("default", "sa"),
            'cannot create resource "serviceaccounts/token"',
            id="token",
        ),
    ],
)
def test_a_missing_right_is_named(
    limited: KubeClient, call: Callable[[KubeClient], object], right: str
) -> None:
    """The administrator sees what to grant."""
    with pytest.raises(DeniedError) as caught:
        call(limited)

    assert right in str(caught.value)
    assert "prod/eu-1" in str(caught.value)


def test_a_limited_user_can_do_what_is_granted(kube: KubeClient, limited: KubeClient) -> None:
    """Discovery needs no rights of its own."""
    kube.apply(config_map(key="1"))

    assert names(limited.list(CONFIG_MAP, namespace="default")) == ["a"]


def test_lists_the_rights_that_are_missing(kube: KubeClient, limited: KubeClient) -> None:
    """Registration shows them before anything fails."""
    checks = [
        ("get", "", "configmaps", "", ""),
        ("get", "", "configmaps", "", "default"),
        ("patch", "", "configmaps", "", "default"),
        ("create", "", "serviceaccounts", "token", ""),
        ("*", "*", "*", "", ""),
    ]

    assert limited.rights(checks) == [Right(*check) for check in checks[2:]]
    assert kube.rights(checks) == []


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_token_is_denied(
    kubeconfig: Kubeconfig, call: Callable[[KubeClient], object]
) -> None:
    """Whatever is asked."""
    unauthenticated = KubeClient(
        "prod/eu-1", Kubeconfig(kubeconfig.server, kubeconfig.ca_data, "wrong"), reach=LOCAL
    )

    with pytest.raises(DeniedError, match="'prod/eu-1': the credentials are not accepted"):
        call(unauthenticated)


def test_another_authority_is_unreachable(
    kubeconfig: Kubeconfig, destination_cluster: Cluster
) -> None:
    """While an authority is replaced it may pass; the message says what to check."""
    authority = base64.b64encode(destination_cluster.ca_pem.encode()).decode()
    client = KubeClient(
        "prod/eu-1", Kubeconfig(kubeconfig.server, authority, kubeconfig.token), reach=LOCAL
    )

    with pytest.raises(UnreachableError, match="certificate authority of the stored kubeconfig"):
        client.version()


def test_another_host_name_is_unreachable(kubeconfig: Kubeconfig) -> None:
    """A certificate for 127.0.0.1 is none for api.example.com."""
    client = KubeClient(
        "prod/eu-1",
        Kubeconfig(
            kubeconfig.server,
            kubeconfig.ca_data,
            kubeconfig.token,
            tls_server_name="api.example.com",
        ),
        reach=LOCAL,
    )

    with pytest.raises(UnreachableError, match="or is for another host"):
        client.version()


@pytest.mark.rest
def test_a_stopped_server_is_unreachable_and_comes_back(
    kube: KubeClient, source_cluster: Cluster
) -> None:
    """The same client, its connections dead, works again as soon as the server does."""
    kube.apply(config_map(key="1"))
    source_cluster.stop()

    for call in (parameters.values[0] for parameters in CALLS):
        with pytest.raises(UnreachableError, match="prod/eu-1"):
            call(kube)
    source_cluster.start()

    manifest = kube.get(CONFIG_MAP, "default", "a")
    assert manifest is not None
    assert manifest["data"] == {"key": "1"}


@pytest.mark.rest
def test_a_starting_server_never_says_that_a_kind_is_missing(
    kube: KubeClient, kubeconfig: Kubeconfig, source_cluster: Cluster
) -> None:
    """Until it has read the definitions it knows no custom kind; that deletes no objects."""
    define(kube, LOOSE)
    kube.apply(widget({"a": 1}))
    source_cluster.stop()
    asker = KubeClient("prod/eu-1", kubeconfig, reach=LOCAL)

    def ask() -> tuple[dict[str, Any] | None] | None:
        try:
            return (asker.get(WIDGET, "default", "w"),)
        except UnreachableError:
            return None

    with ThreadPoolExecutor(1) as threads:
        # A busy machine takes minutes to start an API server.
        asking = threads.submit(eventually, "it answers", ask, patience=240, pause=0.002)
        source_cluster.start()
        answer = asking.result()

    assert answer
    assert answer[0]
    assert answer[0]["spec"] == {"a": 1}


def test_a_deleted_kind_is_missing(kube: KubeClient) -> None:
    """What was known of it is forgotten as soon as the API server refuses it."""
    define(kube, LOOSE)
    kube.apply(widget({"a": 1}))
    crd = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    kube.remove(crd, "", "widgets.lab.example")
    eventually(
        "the definition is deleted", lambda: kube.get(crd, "", "widgets.lab.example") is None
    )
    # An API server serves a kind for a moment longer than its definition is there.
    eventually(
        "the kind is not served",
        lambda: kube.remove(WIDGET, "default", "w") is None and kube.resource(WIDGET) is None,
    )

    with pytest.raises(MissingError):
        list(kube.list(WIDGET))
    with pytest.raises(MissingError):
        kube.get(WIDGET, "default", "w")


def test_finds_a_kind_again_that_moved(kube: KubeClient) -> None:
    """Defined again without namespaces, it has another path; the first failure learns it."""
    define(kube, LOOSE)
    kube.apply(widget({"a": 1}))
    crd = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    kube.remove(crd, "", "widgets.lab.example")
    eventually(
        "the definition is deleted", lambda: kube.get(crd, "", "widgets.lab.example") is None
    )
    kube.apply(widgets(scope="Cluster"))

    def apply() -> bool:
        with suppress(MissingError):
            # An API server serves the old path for a moment longer than its definition is there.
            return "namespace" not in kube.apply(widget({"a": 2}))["metadata"]
        return False

    eventually("the kind is served again, without namespaces", apply)


def test_a_namespace_that_is_being_deleted_is_temporary(kube: KubeClient) -> None:
    """It may be made again in a moment."""
    kube.apply(namespace("dying"))
    kube.apply(config_map("a", "dying"))
    kube.remove(NAMESPACE, "", "dying")

    with pytest.raises(StaleError, match="namespace 'dying' is being deleted"):
        kube.apply(config_map("b", "dying"))


def test_carries_a_large_object(kube: KubeClient) -> None:
    """A mebibyte, as large as a ConfigMap may be, goes in and out whole."""
    text = "x" * (1 << 20)

    kube.apply(config_map("large", text=text[1:-4]))

    manifest = kube.get(CONFIG_MAP, "default", "large")
    assert manifest is not None
    assert manifest["data"] == {"text": text[1:-4]}
    assert names(kube.list(CONFIG_MAP, namespace="default")) == ["large"]


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(2_900_000, id="larger than a record"),
        pytest.param(3_500_000, id="larger than a request"),
    ],
)
def test_an_object_that_is_too_large_stays_so(kube: KubeClient, size: int) -> None:
    """Trying again would not make it smaller, though the API server says 500 to some."""
    define(kube, LOOSE)

    with pytest.raises(TooLargeError):
        kube.apply(widget({"text": "x" * size}))


def test_a_page_that_is_too_large_comes_in_parts(
    kube: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind of large objects is listed as whole as any, packed or not."""
    monkeypatch.setattr(egress, "LARGEST", 1 << 20)
    for index in range(6):
        kube.apply(config_map(f"of-{index}", text=f"{index}" * 300_000))

    found = names(kube.list(CONFIG_MAP, namespace="default"))

    assert found == [f"of-{index}" for index in range(6)]


def test_objects_that_cannot_be_read_are_named_beside_the_others(
    kube: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server returns only the metadata of one that is too large, where its list goes on."""
    for index in range(7):
        kube.apply(config_map(f"of-{index}", text="<" * (300_000 if index == 3 else 3)))
    define(kube, LOOSE)
    deep = reduce(lambda inner, _: {"a": inner}, range(400), {})
    kube.apply(widget(deep))
    kube.apply({**widget({"a": 1}), "metadata": {"name": "x", "namespace": "default"}})

    monkeypatch.setattr(egress, "LARGEST", 1 << 20)
    found, unread, after = [], [], ""
    while page := kube.page(CONFIG_MAP, limit=5, after=after, namespace="default"):
        found += names(page.items)
        unread += [each.key.name for each in page.unread]
        if not (after := page.after):
            break
    shallow = kube.page(WIDGET, limit=5)

    assert (found, unread) == ([f"of-{index}" for index in (0, 1, 2, 4, 5, 6)], ["of-3"])
    assert (names(shallow.items), [each.key.name for each in shallow.unread]) == (["x"], ["w"])
    with pytest.raises(TooLargeError, match="nested deeper than 200 levels"):
        kube.get(WIDGET, "default", "w")


def test_reads_long_lists_in_pages(kube: KubeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every object comes once, whatever the size of a page."""
    monkeypatch.setattr(kube_client, "PAGE", 3)
    for index in range(10):
        kube.apply(config_map(f"of-{index}"))

    found = names(kube.list(CONFIG_MAP, namespace="default"))

    assert found == [f"of-{index}" for index in range(10)]


def test_makes_tokens_for_service_accounts(kube: KubeClient, kubeconfig: Kubeconfig) -> None:
    """The token is the service account's, which may do nothing yet."""
    kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bellhop"}})

    token = kube.token_request("default", "bellhop", "https://bellhop.example", 600)
    own = kube.token_request("default", "bellhop", seconds=600)

    assert token.count(".") == 2
    account = KubeClient(
        "prod/eu-1", Kubeconfig(kubeconfig.server, kubeconfig.ca_data, own), reach=LOCAL
    )
    with pytest.raises(DeniedError, match="system:serviceaccount:default:bellhop"):
        account.get(CONFIG_MAP, "default", "a")


def test_a_token_of_a_missing_service_account_is_missing(kube: KubeClient) -> None:
    """The message names it."""
    with pytest.raises(MissingError, match="service account 'default/nobody'"):
        kube.token_request("default", "nobody")


INGRESS = GVK("networking.k8s.io", "v1", "Ingress")
SCALER = GVK("autoscaling", "v1", "HorizontalPodAutoscaler")
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
WRITTEN = [
    pytest.param(
        INGRESS,
        {"backend": {"serviceName": "web", "servicePort": 80}},
        {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
        id="Ingress",
    ),
    pytest.param(
        SCALER,
        {"maxReplicas": 3, "scaleTargetRef": DEPLOYMENT},
        {"maxReplicas": 4, "scaleTargetRef": DEPLOYMENT},
        id="HorizontalPodAutoscaler",
    ),
]


@pytest.mark.parametrize(("gvk", "old", "new"), WRITTEN)
def test_a_raised_version_is_the_same_object(
    kube: KubeClient, gvk: GVK, old: Manifest, new: Manifest
) -> None:
    """Who raises an apiVersion has changed an object, and neither made nor lost one."""
    former = another_version(kube, gvk)
    if former is None:
        # The release serves one version only; the oldest one serves two of each kind.
        assert kube.versions(gvk.group, gvk.kind) == (gvk.version,)
        return
    kinds, uids = [], []
    for kind, spec in ((former, old), (gvk, new)):
        kinds.append(kind)
        metadata = {"name": "web", "namespace": "default"}
        manifest = {"apiVersion": kinds[-1].api_version, "kind": gvk.kind, "metadata": metadata}
        uids.append(kube.apply({**manifest, "spec": spec})["metadata"]["uid"])

    there = kube.get(kinds[0], "default", "web")

    assert uids[0] == uids[1]
    assert there is not None
    assert (there["apiVersion"], there["metadata"]["uid"]) == (kinds[0].api_version, uids[0])
    assert {each.version for each in kinds} <= set(kube.versions(gvk.group, gvk.kind))
    assert kube.remove(gvk._replace(version="v1alpha7"), "default", "web", uid=uids[0]) == {}
    assert kube.get(kinds[1], "default", "web") is None


@pytest.mark.parametrize("schema", [NESTED, LOOSE], ids=["typed", "untyped"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"labels": {"a": "1", "b": "2"}}, {"labels": {"a": "1"}}, id="one key of two"),
        pytest.param({"labels": {"a": "1"}, "deep": {"i": 1}}, {"deep": {"i": 1}}, id="a map"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {}}, id="the last key"),
        pytest.param({"labels": {"a": "1"}}, {}, id="everything"),
        pytest.param({"deep": {"m": {"a": "1"}, "i": 1}}, {"deep": {"i": 1}}, id="a map in a map"),
        pytest.param(
            {"deep": {"m": {"a.b/c": "1"}, "i": 1}}, {"deep": {"m": {}, "i": 1}}, id="dots in a key"
        ),
        pytest.param(
            {"labels": {"a": "1"}, "deep": {"i": 1}}, {"labels": {"b": "1"}}, id="another"
        ),
        pytest.param(
            {"labels": {"a": "1"}, "deep": {"i": 1, "m": {"a": "1"}}}, {"deep": {}}, id="two maps"
        ),
    ],
)
def test_drops_the_last_key_of_a_map_of_a_custom_resource(
    kube: KubeClient, schema: Manifest, before: Manifest, after: Manifest
) -> None:
    """What API servers up to 1.20 refuse as `null` is done all the same, and shown by a dry run."""
    define(kube, schema)
    kube.apply(widget(before))

    shown = kube.apply(widget(after), dry_run=True)
    unchanged = kube.get(WIDGET, "default", "w")
    applied = kube.apply(widget(after))

    assert unchanged is not None
    assert (shown["spec"], unchanged["spec"], applied["spec"]) == (after, before, after)
    assert kube.apply(widget(before))["spec"] == before


def test_a_restored_object_does_not_say_that_we_applied_it(
    kube: KubeClient, kubeconfig: Kubeconfig
) -> None:
    """It is re-created later than the entries that its managers may remember of us."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kept", "namespace": "default"},
        "data": {"v": "1"},
    }
    kube.apply(manifest)
    there = kube.get(CONFIG_MAP, "default", "kept")
    assert there is not None
    assert owned_kinds._was_applied(there)

    kube.remove(CONFIG_MAP, "default", "kept")
    metadata = {k: v for k, v in there["metadata"].items() if k not in {"uid", "resourceVersion"}}
    managers = [{**each, "time": "2020-01-01T00:00:00Z"} for each in metadata.pop("managedFields")]
    body = {**there, "metadata": {**metadata, "managedFields": managers}}
    call = Call("prod/eu-1", "create ConfigMap 'default/kept'")
    path = "/api/v1/namespaces/default/configmaps"
    request = Request("POST", path, {"fieldManager": "a-backup"}, body)
    Transport("prod/eu-1", kubeconfig, reach=LOCAL).send(request, call)

    again = kube.get(CONFIG_MAP, "default", "kept")
    assert again is not None
    assert again["metadata"]["uid"] != there["metadata"]["uid"]
    assert not owned_kinds._was_applied(again)


@pytest.mark.parametrize("version", sorted({gvk[:2] for gvk in BUILT_IN}), ids="/".join)
def test_built_in_kinds_are_what_discovery_says(
    version: tuple[str, str], source_cluster: Cluster
) -> None:
    """Plural, scope and subresources of each are those that nobody is asked for."""
    transport = Transport(
        "prod/eu-1", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL
    )
    expected = {gvk: resource for gvk, resource in BUILT_IN.items() if gvk[:2] == version}
    path = group_path(next(iter(expected)))
    found = resources(
        next(iter(expected)), transport.send(Request("GET", path), Call("prod/eu-1", "look"))
    )
    transport.close()

    assert {gvk: found[gvk] for gvk in expected} == expected


def test_what_is_left_bears_no_mark_of_ours(kube: KubeClient) -> None:
    """Labels, annotations and fields are its own, and others apply it without a conflict."""
    key = ObjectKey(CONFIG_MAP, "default", "left")
    own = {**config_map("left"), "data": {"v": "1"}}
    own["metadata"] = {**own["metadata"], "labels": {"own": "yes"}}
    stored = kube.apply(decorate(Desired(key, own, "d", "ConfigMap default/a"), "p", 100))
    # Sveltos itself may have had it before.
    kube.merge(*key, {"metadata": {"annotations": {"projectsveltos.io/clustersummary": "s"}}})
    there = kube.get(*key)
    assert there
    kube.merge(*key, undecorate(there))

    left = kube.get(*key)
    assert left
    metadata = left["metadata"]
    assert "projectsveltos.io" not in str(left)
    assert metadata["labels"] == {"own": "yes"}
    assert (metadata["uid"], left["data"]) == (stored["metadata"]["uid"], {"v": "1"})
    assert "bellhop" not in [each.get("manager") for each in metadata.get("managedFields", [])]
