"""What the fake cluster does for tests beyond the port, which tests/contract/test_kube.py holds."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import GVK, Resource
from bellhop.errors import BellhopError, DeniedError, MissingError, StaleError, UnreachableError
from tests.fakes.kube import CRD, NAMESPACE, Call, FakeKube

CONFIG_MAP = GVK("", "v1", "ConfigMap")
WIDGET = GVK("example.org", "v1", "Widget")


def config_map(name: str, namespace: str = "default") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()


def test_records_what_was_asked(kube: FakeKube) -> None:
    """Calls stand in order with what they were about; what a test itself does is not recorded."""
    kube.put(config_map("a"))
    kube.drop(CONFIG_MAP, "default", "a")
    kube.objects()
    kube.resource(CONFIG_MAP)
    kube.apply(config_map("a"), dry_run=True)
    kube.get(CONFIG_MAP, "default", "a")
    kube.list(CONFIG_MAP, namespace="default")
    kube.page(CONFIG_MAP, limit=1)
    kube.served("", "ConfigMap")
    kube.versions("", "ConfigMap")
    kube.remove(CONFIG_MAP, "default", "a")

    assert kube.calls == [
        Call("resource", CONFIG_MAP),
        Call("apply", CONFIG_MAP, "default", "a", dry_run=True),
        Call("get", CONFIG_MAP, "default", "a"),
        Call("list", CONFIG_MAP, "default"),
        Call("list", CONFIG_MAP),
        Call("served", GVK("", "", "ConfigMap")),
        Call("served", GVK("", "", "ConfigMap")),
        Call("remove", CONFIG_MAP, "default", "a"),
    ]


@pytest.mark.parametrize("error", [UnreachableError("no answer"), DeniedError("no right")])
def test_fails_on_demand_until_the_fault_is_removed(kube: FakeKube, error: BellhopError) -> None:
    """The verbs that are named fail, the others work, and None heals."""
    kube.fail_with(error, "apply")

    with pytest.raises(type(error)):
        kube.apply(config_map("a"))
    assert kube.get(CONFIG_MAP, "default", "a") is None
    kube.fail_with(None)
    assert kube.apply(config_map("a"))["data"] == {"a": "1"}


def test_fails_at_everything(kube: FakeKube) -> None:
    """Without verbs every verb fails."""
    kube.fail_with(UnreachableError("no answer"))

    for ask in (
        lambda: kube.resource(CONFIG_MAP),
        lambda: kube.get(CONFIG_MAP, "default", "a"),
        lambda: kube.list(CONFIG_MAP),
        lambda: kube.page(CONFIG_MAP, limit=1),
        lambda: kube.served("", "ConfigMap"),
        lambda: kube.versions("", "ConfigMap"),
        lambda: kube.apply(config_map("a")),
        lambda: kube.remove(CONFIG_MAP, "default", "a"),
    ):
        with pytest.raises(UnreachableError):
            ask()


def test_what_it_returns_is_a_copy(kube: FakeKube) -> None:
    """Changing what was read, or what was applied, changes nothing in the cluster."""
    manifest = config_map("a")
    applied = kube.apply(manifest)
    for copy in (manifest, applied, kube.get(CONFIG_MAP, "default", "a"), kube.objects()[0]):
        assert copy is not None
        copy.setdefault("data", {})["a"] = "changed"

    there = kube.get(CONFIG_MAP, "default", "a")
    assert there is not None
    assert there["data"] == {"a": "1"}


def test_knows_a_kind_once_it_is_served(kube: FakeKube) -> None:
    """A kind is known after serve, or once its definition is applied; unknown after unserve."""
    widget = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "a"}}
    with pytest.raises(MissingError, match="does not know the kind"):
        kube.apply(widget)
    kube.apply(
        {
            "apiVersion": CRD.api_version,
            "kind": CRD.kind,
            "metadata": {"name": "widgets.example.org"},
            "spec": {
                "group": "example.org",
                "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets"},
                "versions": [{"name": "v1"}],
            },
        }
    )

    assert kube.resource(WIDGET) == Resource(WIDGET, "widgets", namespaced=True)
    kube.apply(widget)
    kube.unserve(WIDGET)
    assert kube.objects(WIDGET) == []
    kube.serve(Resource(WIDGET, "widgets", namespaced=False))
    assert "namespace" not in kube.apply(widget)["metadata"]


def test_a_namespace_takes_its_objects_along(kube: FakeKube) -> None:
    """With a namespace go the objects in it."""
    kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}})
    kube.put(config_map("a", "web"))
    kube.put(config_map("b"))
    kube.drop(NAMESPACE, "", "web")

    assert [each["metadata"]["name"] for each in kube.objects(CONFIG_MAP)] == ["b"]


def test_a_list_that_is_read_too_slowly_expires(kube: FakeKube) -> None:
    """Its next page is asked for in vain, and a new one begins."""
    for name in "abc":
        kube.put(config_map(name))
    first = kube.page(CONFIG_MAP, limit=2)
    kube.expire()

    with pytest.raises(StaleError, match="too old"):
        kube.page(CONFIG_MAP, limit=2, after=first.after)
    assert len(kube.page(CONFIG_MAP, limit=2).items) == 2


def test_versions_share_their_objects(kube: FakeKube) -> None:
    """An object is there once, in the version that is asked for, until the last version goes."""
    old = WIDGET._replace(version="v1beta2")
    for gvk in (old, WIDGET):
        kube.serve(Resource(gvk, "widgets", namespaced=True))
    kube.put({"apiVersion": old.api_version, "kind": "Widget", "metadata": {"name": "a"}})

    (shown,) = kube.objects(WIDGET)
    assert shown["apiVersion"] == WIDGET.api_version
    assert len(kube.objects(old)) == 1
    kube.unserve(old)
    assert len(kube.objects(WIDGET)) == 1
    kube.unserve(WIDGET)
    assert kube.objects(WIDGET) == []


def test_prefers_versions_as_api_servers_do(kube: FakeKube) -> None:
    """Stable before beta before alpha, newer before older, and other names last."""
    for version in ("v1", "v2beta1", "v10", "v2", "v1alpha3", "foo", "v2beta2"):
        gvk = WIDGET._replace(version=version)
        kube.serve(Resource(gvk, "widgets", namespaced=True))

    expected = ("v10", "v2", "v1", "v2beta2", "v2beta1", "v1alpha3", "foo")
    assert kube.versions(WIDGET.group, WIDGET.kind) == expected
