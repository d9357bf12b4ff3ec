"""Webhooks that send a cluster's events: narrow, harmless, for the kinds that count."""

from __future__ import annotations

import base64

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK, Resource
from bellhop.registration import forwarder_manifests

SERVICE = Resource(
    GVK("", "v1", "Service"), "services", namespaced=True, subresources=("proxy", "status")
)
CONFIG_MAP = Resource(GVK("", "v1", "ConfigMap"), "configmaps", namespaced=True)
DEPLOYMENT = Resource(
    GVK("apps", "v1", "Deployment"),
    "deployments",
    namespaced=True,
    subresources=("scale", "status"),
)
NAMESPACE = Resource(
    GVK("", "v1", "Namespace"), "namespaces", namespaced=False, subresources=("finalize", "status")
)
OUTSIDE = {"url": "https://bellhop.example.com:8443/", "ca": "PEM", "path": "/secret-path"}
INSIDE = {"ca": "PEM", "path": "/secret-path"}


def test_has_rules_for_each_kind_and_what_writes_its_object() -> None:
    """A rule names the kind with its status and finalize, never scale or proxy."""
    [webhook] = forwarder_manifests.webhook_configuration(
        [SERVICE, DEPLOYMENT, NAMESPACE], OUTSIDE
    )["webhooks"]

    operations = ["CREATE", "UPDATE", "DELETE"]
    assert webhook["rules"] == [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["namespaces", "namespaces/finalize", "namespaces/status"],
            "operations": operations,
            "scope": "Cluster",
        },
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["services", "services/status"],
            "operations": operations,
            "scope": "Namespaced",
        },
        {
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "resources": ["deployments", "deployments/status"],
            "operations": operations,
            "scope": "Namespaced",
        },
    ]


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        pytest.param("/ring/7d4c1a9e52", True, id="hexadecimal"),
        pytest.param("/ring/a-b.c", True, id="a name with dots"),
        pytest.param("/ring/Ab", False, id="upper case"),
        pytest.param("/ring/a_b", False, id="URL-safe base64"),
        pytest.param("/ring/a-", False, id="a dash at the end"),
        pytest.param("/ring/", False, id="an empty segment"),
    ],
)
def test_knows_the_paths_at_which_a_service_is_called(path: str, *, taken: bool) -> None:
    """Below a URL any path is taken, of a Service only lower-case RFC 1123 names."""
    assert forwarder_manifests.is_callable({**INSIDE, "path": path}) is taken
    assert forwarder_manifests.is_callable({**OUTSIDE, "path": path})


def test_has_rules_for_leases_where_a_source_names_them_and_for_no_tokens() -> None:
    """Objects that are written all day need a source that names them; tokens are never sent."""
    lease = Resource(GVK("coordination.k8s.io", "v1", "Lease"), "leases", namespaced=True)
    account = Resource(
        GVK("", "v1", "ServiceAccount"), "serviceaccounts", namespaced=True, subresources=("token",)
    )

    [webhook] = forwarder_manifests.webhook_configuration([account], OUTSIDE)["webhooks"]
    assert [rule["resources"] for rule in webhook["rules"]] == [["serviceaccounts"]]
    [webhook] = forwarder_manifests.webhook_configuration([account, lease], OUTSIDE)["webhooks"]
    assert [rule["resources"] for rule in webhook["rules"]] == [["serviceaccounts"], ["leases"]]


def test_has_rules_for_each_version_that_counts() -> None:
    """An API server calls a webhook once for a write, so each version has a webhook."""
    scalers = [
        Resource(
            GVK("autoscaling", version, "HorizontalPodAutoscaler"),
            "horizontalpodautoscalers",
            namespaced=True,
        )
        for version in ("v1", "v2beta2", "v2")
    ]
    webhooks = forwarder_manifests.webhook_configuration([*scalers, SERVICE], OUTSIDE)["webhooks"]

    rules = [
        [(rule["apiVersions"][0], rule["resources"][0]) for rule in webhook["rules"]]
        for webhook in webhooks
    ]
    plural = "horizontalpodautoscalers"
    assert rules == [[("v1", "services"), ("v1", plural)], [("v2", plural)], [("v2beta2", plural)]]
    assert len({webhook["name"] for webhook in webhooks}) == 3
    assert len({str({**webhook, "name": "", "rules": []}) for webhook in webhooks}) == 1


def test_has_rules_for_each_group_of_one_resource() -> None:
    """Where a resource moved to another group, an API server takes both for one."""
    ingresses = [
        Resource(GVK(group, "v1beta1", "Ingress"), "ingresses", namespaced=True)
        for group in ("extensions", "networking.k8s.io")
    ]
    webhooks = forwarder_manifests.webhook_configuration(ingresses, OUTSIDE)["webhooks"]

    assert [webhook["rules"][0]["apiGroups"] for webhook in webhooks] == [
        ["extensions"],
        ["networking.k8s.io"],
    ]


def test_writes_the_same_whatever_the_order() -> None:
    """Resyncs that see the kinds in another order change nothing."""
    kinds = [SERVICE, DEPLOYMENT, NAMESPACE, CONFIG_MAP]

    assert forwarder_manifests.webhook_configuration(
        kinds, OUTSIDE
    ) == forwarder_manifests.webhook_configuration(kinds[::-1], OUTSIDE)
    assert forwarder_manifests.forwarder_role(kinds) == forwarder_manifests.forwarder_role(
        kinds[::-1]
    )


@pytest.mark.parametrize(
    ("forwarder", "expected"),
    [
        pytest.param(
            OUTSIDE,
            {"url": "https://bellhop.example.com:8443/secret-path"},
            id="outside of the cluster",
        ),
        pytest.param(
            INSIDE,
            {
                "service": {
                    "namespace": "bellhop-system",
                    "name": "bellhop-forwarder",
                    "path": "/secret-path",
                    "port": 443,
                }
            },
            id="inside of the cluster",
        ),
    ],
)
def test_calls_the_forwarder_where_it_is(
    forwarder: dict[str, str], expected: dict[str, object]
) -> None:
    """By address where there is one, else by its Service; trusting only its authority."""
    [webhook] = forwarder_manifests.webhook_configuration([SERVICE], forwarder)["webhooks"]

    bundle = base64.b64encode(b"PEM").decode()
    assert webhook["clientConfig"] == {"caBundle": bundle, **expected}


def test_never_fails_or_holds_up_a_write() -> None:
    """Ignored when it fails, short when it hangs, without effects of its own."""
    [webhook] = forwarder_manifests.webhook_configuration([SERVICE], OUTSIDE)["webhooks"]

    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] <= 2
    assert webhook["sideEffects"] == "NoneOnDryRun"
    assert webhook["matchPolicy"] == "Equivalent"


def test_has_no_rule_without_a_kind() -> None:
    """Without a kind that counts there is no webhook, and no right."""
    assert forwarder_manifests.webhook_configuration([], OUTSIDE)["webhooks"] == []
    assert forwarder_manifests.forwarder_role([])["rules"] == []


def test_grants_reading_by_group() -> None:
    """One rule a group, with only `get`."""
    assert forwarder_manifests.forwarder_role([SERVICE, DEPLOYMENT, CONFIG_MAP])["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps", "services"], "verbs": ["get"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
    ]


def test_binds_every_role_to_the_one_account() -> None:
    """The rights that are installed once lead to the account, the role and nothing else."""
    rights = {each["kind"]: each for each in forwarder_manifests.forwarder_rights()}

    account = {
        "kind": "ServiceAccount",
        "name": rights["ServiceAccount"]["metadata"]["name"],
        "namespace": rights["Namespace"]["metadata"]["name"],
    }
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        assert rights[kind]["subjects"] == [account]
    role = forwarder_manifests.forwarder_role([])["metadata"]["name"]
    assert rights["ClusterRoleBinding"]["roleRef"]["name"] == role
    assert rights["RoleBinding"]["roleRef"]["name"] == rights["Role"]["metadata"]["name"]
    [rule] = rights["Role"]["rules"]
    assert rule["resourceNames"] == [forwarder_manifests.forwarder_secret({})["metadata"]["name"]]


def test_encodes_the_entries_of_the_secret() -> None:
    """Entries are base64 of their text, as API servers expect them."""
    secret = forwarder_manifests.forwarder_secret({"token": "abc", "ingest-ca": ""})

    assert secret["data"] == {"token": "YWJj", "ingest-ca": ""}
    assert (secret["type"], secret["metadata"]["namespace"]) == ("Opaque", "bellhop-system")


def test_owned_objects_are_selected_only_by_their_label() -> None:
    """With its status only where there are replicas, and apart from what sources ask for."""
    found = forwarder_manifests.webhook_configuration([CONFIG_MAP], OUTSIDE, [DEPLOYMENT, SERVICE])[
        "webhooks"
    ]

    assert [each["name"] for each in found] == ["ring.bellhop.dev", "drift.bellhop.dev"]
    asked, held = found
    assert "objectSelector" not in asked
    selected = {"key": "projectsveltos.io/reason", "operator": "In"}
    values = ["Kustomize", "Resources"]
    assert held["objectSelector"] == {"matchExpressions": [{**selected, "values": values}]}
    rules = {rule["resources"][0]: rule["resources"] for rule in held["rules"]}
    assert rules == {
        "deployments": ["deployments", "deployments/status"],
        "services": ["services"],
    }
    alike = ("clientConfig", "failurePolicy", "timeoutSeconds", "namespaceSelector", "sideEffects")
    assert [asked[each] for each in alike] == [held[each] for each in alike]


def test_objects_of_releases_are_selected_by_the_label_of_helm() -> None:
    """They lack the label that Bellhop sets, and objects without Helm's send nothing."""
    held = [DEPLOYMENT, SERVICE]
    found = forwarder_manifests.webhook_configuration([], OUTSIDE, held, [SERVICE])["webhooks"]

    assert [each["name"] for each in found] == ["drift.bellhop.dev", "charts.drift.bellhop.dev"]
    by_helm = {"key": "app.kubernetes.io/managed-by", "operator": "In", "values": ["Helm"]}
    assert found[1]["objectSelector"] == {"matchExpressions": [by_helm]}
    assert [each["resources"] for each in found[1]["rules"]] == [["services"]]


@pytest.mark.parametrize(
    ("forwarder", "expected"),
    [
        pytest.param(
            OUTSIDE, {"url": "https://bellhop.example.com:8443/secret-path/names"}, id="by a URL"
        ),
        pytest.param(
            INSIDE,
            {
                "service": {
                    "namespace": forwarder_manifests.NAMESPACE,
                    "name": forwarder_manifests.NAME,
                    "path": "/secret-path/names",
                    "port": 443,
                }
            },
            id="by its Service",
        ),
        pytest.param(
            {**OUTSIDE, "direct": "on"},
            {"url": "https://bellhop.example.com:8443/secret-path"},
            id="ingest itself",
        ),
    ],
)
def test_of_the_configuration_only_names_are_asked_for(
    forwarder: dict[str, str], expected: dict[str, object]
) -> None:
    """Ingest itself has one address; a status is no part of the configuration."""
    hooks = forwarder_manifests.webhook_configuration([SERVICE], forwarder, (), (), [CONFIG_MAP])
    _, configured = hooks["webhooks"]

    client = {name: each for name, each in configured["clientConfig"].items() if name != "caBundle"}
    assert (configured["name"], client) == (forwarder_manifests.CONFIGURATION, expected)
    assert configured["failurePolicy"] == "Ignore"
    assert configured["rules"][0]["resources"] == ["configmaps"]
    nothing = forwarder_manifests.webhook_configuration([], forwarder)
    assert nothing["webhooks"] == []


def test_configmaps_and_secrets_are_asked_for_in_some_namespaces_only() -> None:
    """Other kinds of the configuration in all, and never the forwarder's own."""
    kinds = [CONFIG_MAP, replace(SERVICE, gvk=GVK("lib.projectsveltos.io", "v1beta1", "Set"))]
    hooks = forwarder_manifests.webhook_configuration([], OUTSIDE, (), (), kinds, {"b", "a"})
    every, some = hooks["webhooks"]

    assert [each["name"] for each in (every, some)] == [
        forwarder_manifests.CONFIGURATION,
        forwarder_manifests.HOLDERS,
    ]
    own, named = some["namespaceSelector"]["matchExpressions"]
    assert every["namespaceSelector"]["matchExpressions"] == [own]
    assert (named["operator"], named["values"]) == ("In", ["a", "b"])
    nobody = forwarder_manifests.webhook_configuration([], OUTSIDE, (), (), kinds, ())
    assert [each["name"] for each in nobody["webhooks"]] == [forwarder_manifests.CONFIGURATION]
