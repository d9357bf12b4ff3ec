"""Bellhop's definitions of custom resources on a real API server, the oldest and the newest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import inspect

from bellhop.adapters.kube.client import KubeClient
from bellhop.api.manifest import without_server_fields
from bellhop.clusters.kubeconfig import sanitise
from bellhop.configuration.definitions import DEFINITIONS, KindDefinition, make_definitions
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.errors import InvalidError
from infra.lab.cluster import Cluster
from tests.kube_fixtures import as_after_boot
from tests.waiting import eventually

pytest_plugins = ["tests.kube_fixtures"]
pytestmark = pytest.mark.oldest

ROOT = Path(__file__).parents[2]
CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
STATED = [each for each in DEFINITIONS if each.status]
KINDS = {each.kind: each for each in DEFINITIONS}
TRIGGER = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: %s}
spec:
  sourceClusterSelector: {matchLabels: {env: prod}}
  eventSourceName: services
  oneForEvent: %s
"""


def _gvk(kind: KindDefinition) -> GVK:
    return GVK(kind.group, "v1beta1", kind.kind)


def _has_cel(kube: KubeClient) -> bool:
    return int(kube.version().split(".")[1]) >= 25


@pytest.fixture(scope="module")
def kube(two_clusters: tuple[Cluster, Cluster]) -> Iterator[KubeClient]:
    """A client of a cluster that serves the definitions; each test has objects of its own names."""
    cluster = as_after_boot(two_clusters[0])
    kubeconfig = sanitise(cluster.kubeconfig(), reach=LOCAL)
    client = KubeClient("mgmt/mgmt", kubeconfig, reach=LOCAL)
    for each in make_definitions(rules=_has_cel(client)):
        client.apply(each)
    for each in DEFINITIONS:
        eventually(f"{each.kind} is served", lambda kind=each: client.resource(_gvk(kind)))
    yield client
    client.close()


def _examples() -> Iterator[Any]:
    for path in sorted((ROOT / "docs/examples").rglob("*.yaml")):
        if path.parent.name == "shown":
            continue  # It is read, and has fields that Bellhop shows beside those of Sveltos.
        documents = [each for each in yaml.safe_load_all(path.read_text()) if each]
        found = [each for each in documents if each.get("kind") in KINDS]
        if found:
            yield pytest.param(found, id=str(path.relative_to(ROOT / "docs/examples")))


def test_every_definition_is_structural_and_served(kube: KubeClient) -> None:
    """An API server takes a definition with a mistake, and says so in its conditions."""
    for each in DEFINITIONS:
        found = kube.get(CRD, "", each.name)
        assert found
        conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}

        assert conditions.pop("Established") == "True"
        assert conditions.pop("NamesAccepted") == "True"
        assert conditions == {}


def test_applied_again_they_are_as_they_were(kube: KubeClient) -> None:
    """Nothing is in them that the API server adds or normalises."""
    for each in make_definitions(rules=_has_cel(kube)):
        name = each["metadata"]["name"]
        before = kube.get(CRD, "", name)
        assert before

        again = kube.apply(each)

        assert again["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


@pytest.mark.parametrize("manifests", list(_examples()))
def test_an_example_is_stored_as_it_is_written(
    kube: KubeClient, manifests: list[dict[str, Any]]
) -> None:
    """No field is pruned, and none gets a default."""
    for each in manifests:
        namespaced = KINDS[each["kind"]].scope == "Namespaced"
        place = {"namespace": "default"} if namespaced else {}
        written = {**each, "metadata": {**each["metadata"], **place}}
        if written["apiVersion"].endswith("/v1alpha1"):
            continue
        stored = kube.apply(written)

        assert without_server_fields(stored).get("spec") == written.get("spec")


@pytest.mark.parametrize(
    "kind", [each for each in DEFINITIONS if each.status], ids=lambda k: k.kind
)
def test_what_is_written_is_stored_whole(kube: KubeClient, kind: KindDefinition) -> None:
    """Each field of a status, and of the spec of what Bellhop writes, is in the definition."""
    place = {"namespace": "default"} if kind.scope == "Namespaced" else {}
    manifest: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "whole", **place},
        **({"spec": _spec_of(kind)} if kind.spec else {}),
    }
    stored = kube.apply(manifest)
    assert stored.get("spec") == manifest.get("spec")
    assert kind.status
    status = _builtins(kind.status)

    kube.merge_status({**manifest, "status": status}, uid=stored["metadata"]["uid"])

    found = kube.get(_gvk(kind), place.get("namespace", ""), "whole")
    assert found
    assert found["status"] == status


def test_a_field_may_be_null(kube: KubeClient) -> None:
    """Files may have a key without a value, unless its values are enumerated."""
    text = f"{TRIGGER % ('empty', 'null')}  policyRefs: null\n"

    stored = kube.apply(yaml.safe_load(text))

    assert stored["spec"]["eventSourceName"] == "services"


def test_a_value_of_a_wrong_type_is_refused(kube: KubeClient) -> None:
    """The API server says it at once, with the path."""
    with pytest.raises(InvalidError, match=r"spec\.oneForEvent.*boolean"):
        kube.apply(yaml.safe_load(TRIGGER % ("wrong", "[]")))


def test_one_for_event_is_immutable_where_the_server_knows_rules(kube: KubeClient) -> None:
    """Before 1.25 Bellhop refuses it as it reads the object."""
    kube.apply(yaml.safe_load(TRIGGER % ("one", "true")))
    change = yaml.safe_load(TRIGGER % ("one", "false"))

    if _has_cel(kube):
        with pytest.raises(InvalidError, match="Value is immutable"):
            kube.apply(change)
    else:
        assert kube.apply(change)["spec"]["oneForEvent"] is False


def _spec_of(kind: KindDefinition) -> dict[str, Any]:
    assert kind.spec
    if issubclass(kind.spec, msgspec.Struct):
        return _builtins(kind.spec)
    specs: dict[str, dict[str, Any]] = {
        "EventTrigger": {"eventSourceName": "services"},
        "Classifier": {"classifierLabels": [{"key": "env", "value": "prod"}]},
        "ClusterHealthCheck": {
            "livenessChecks": [{"name": "all", "type": "Addons"}],
            "notifications": [{"name": "chat", "type": "KubernetesEvent"}],
        },
        "ClusterPromotion": {"stages": [{"name": "staging"}]},
        "RoleRequest": {"serviceAccountName": "a", "serviceAccountNamespace": "b"},
    }
    return specs.get(kind.kind, {})


def _builtins(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return a value of a struct in which no field is left out."""
    found: dict[str, Any] = _sample(inspect.type_info(kind))
    return found


def _sample(kind: inspect.Type) -> Any:
    match kind:
        case inspect.StructType():
            return {each.encode_name: _sample(each.type) for each in kind.fields}
        case inspect.Metadata():
            extra = kind.extra_json_schema or {}
            return "YQ==" if extra.get("format") == "byte" else _sample(kind.type)
        case inspect.UnionType():
            return _sample(next(each for each in kind.types if each != inspect.NoneType()))
        case inspect.VarTupleType():
            return [_sample(kind.item_type)]
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.DateTimeType():
            return "2030-01-02T03:04:05Z"
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 1
        case inspect.DictType():
            return {"tier": 50}
    return "a"
