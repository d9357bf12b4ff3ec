"""The official client reads and checks the writes and reads of our client.

Other contract tests look at a cluster through the client that they test: what it sent and read
wrongly in the same way, they would not see.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kubernetes.client import ApiClient
from kubernetes.config import new_client_from_config_dict
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.errors import InvalidError, StaleError
from bellhop.ports.kube import Manifest
from infra.lab.cluster import Cluster

CONFIG_MAP = GVK("", "v1", "ConfigMap")
SERVICE = GVK("", "v1", "Service")
NAMESPACE = GVK("", "v1", "Namespace")
DEPLOYMENT = GVK("apps", "v1", "Deployment")
CLUSTER_ROLE = GVK("rbac.authorization.k8s.io", "v1", "ClusterRole")
KINDS = [CONFIG_MAP, SERVICE, NAMESPACE, DEPLOYMENT, CLUSTER_ROLE]


class Official:
    """Objects of a cluster by the official client."""

    def __init__(self, api: ApiClient, folder: Path) -> None:
        # Of its own: by itself it shares a file with any caller that asked the same address before.
        self._dynamic: Any = DynamicClient(api, cache_file=str(folder / "discovery.json"))

    def resource(self, gvk: GVK) -> Any:
        return self._dynamic.resources.get(api_version=gvk.api_version, kind=gvk.kind)

    def get(self, gvk: GVK, name: str, namespace: str = "") -> Manifest | None:
        try:
            found: Manifest = self.resource(gvk).get(name=name, namespace=namespace or None)
        except NotFoundError:
            return None
        return found.to_dict()  # type: ignore[no-any-return, attr-defined]

    def list(self, gvk: GVK, labels: str = "", namespace: str = "") -> list[Manifest]:
        answer = self.resource(gvk).get(label_selector=labels, namespace=namespace or None)
        return answer.to_dict()["items"]  # type: ignore[no-any-return]

    def create(self, manifest: Manifest) -> Manifest:
        return self._write("create", manifest)

    def apply(self, manifest: Manifest, manager: str) -> Manifest:
        return self._write(
            "server_side_apply",
            manifest,
            name=manifest["metadata"]["name"],
            field_manager=manager,
        )

    def patch(self, gvk: GVK, name: str, namespace: str, patch: Manifest) -> Manifest:
        done = self.resource(gvk).patch(
            body=patch,
            name=name,
            namespace=namespace,
            content_type="application/merge-patch+json",
        )
        return done.to_dict()  # type: ignore[no-any-return]

    def _write(self, verb: str, manifest: Manifest, **how: Any) -> Manifest:
        resource = self._dynamic.resources.get(
            api_version=manifest["apiVersion"], kind=manifest["kind"]
        )
        space = manifest["metadata"].get("namespace")
        done = getattr(resource, verb)(body=manifest, namespace=space, **how)
        return done.to_dict()  # type: ignore[no-any-return]


class Both(NamedTuple):
    """Two clients of one cluster."""

    ours: KubeClient
    official: Official


@pytest.fixture
def both(source_cluster: Cluster, tmp_path: Path) -> Iterator[Both]:
    config = source_cluster.kubeconfig()
    ours = KubeClient("prod/eu-1", sanitise(config, reach=LOCAL), reach=LOCAL)
    with new_client_from_config_dict(config) as api:
        yield Both(ours, Official(api, tmp_path))
    ours.close()


def config_map(name: str = "a", labels: dict[str, str] | None = None, **data: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "data": data,
    }


def managers(found: Manifest) -> dict[str, str]:
    return {each["manager"]: each["operation"] for each in found["metadata"]["managedFields"]}


def test_the_kinds_are_those_that_the_official_client_finds(both: Both) -> None:
    for gvk in KINDS:
        ours, official = both.ours.resource(gvk), both.official.resource(gvk)

        assert ours
        assert (ours.plural, ours.namespaced) == (official.name, official.namespaced)


@pytest.mark.parametrize("name", ["a", "a.b-c", "system:a:b"])
def test_what_is_applied_is_there_under_its_name(both: Both, name: str) -> None:
    """A name with colons exists only in RBAC; in a path it stays as it is."""
    role = {
        "apiVersion": CLUSTER_ROLE.api_version,
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    stored = both.ours.apply(role)

    assert both.official.get(CLUSTER_ROLE, name) == stored
    assert stored["rules"] == role["rules"]


def test_what_is_applied_is_owned_by_bellhop(both: Both) -> None:
    both.ours.apply(config_map(a="1"))
    found = both.official.get(CONFIG_MAP, "a", "default")

    assert found
    assert managers(found) == {"bellhop": "Apply"}


def test_every_character_arrives(both: Both) -> None:
    """An apply is read as YAML, which reads some characters in another way than JSON."""
    texts = {
        "empty": "",
        "controls": "".join(map(chr, range(0x20))),
        "latin": "".join(map(chr, range(0x20, 0x100))),
        "breaks": "a\u0085b\u2028c\u2029d\r\ne",
        "marks": "\ufeff\ufffe\uffff\ufffd",
        "beyond": "🛎 𝄞 \U0001f469\u200d\U0001f4bb \U0010ffff",
        "escapes": '\\ud83d\\udece \\\\ " \\/ %7e &amp; {{ }} ~ null',
    }
    both.ours.apply(config_map("a", None, **texts))
    found = both.official.get(CONFIG_MAP, "a", "default")

    assert found
    assert found["data"] == texts


def test_half_a_character_is_refused(both: Both) -> None:
    with pytest.raises(InvalidError, match="cannot apply ConfigMap 'default/a'"):
        both.ours.apply(config_map(half="\ud83d"))


def test_an_object_reads_as_the_official_client_reads_it(both: Both) -> None:
    both.official.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "default", "annotations": {"a/b": "1"}},
            "spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"app": "web"}},
        }
    )

    read = both.ours.get(SERVICE, "default", "web")
    assert read
    assert read == both.official.get(SERVICE, "web", "default")


def test_what_is_not_there_is_so_for_both(both: Both) -> None:
    assert both.ours.get(CONFIG_MAP, "default", "none") is None
    assert both.official.get(CONFIG_MAP, "none", "default") is None


@pytest.mark.parametrize("labels", ["", "env=production", "env!=production", "env in (test),tier"])
def test_lists_have_what_the_official_client_lists(both: Both, labels: str) -> None:
    for number, env in enumerate(["production", "test", "test", "production", "test"]):
        tier = {"tier": "front"} if number % 2 else {}
        both.official.create(config_map(f"c{number}", {"env": env, **tier}))

    expected = both.official.list(CONFIG_MAP, labels)
    assert expected
    listed = list(both.ours.list(CONFIG_MAP, labels=labels))
    paged: list[Manifest] = []
    after = ""
    while page := both.ours.page(CONFIG_MAP, limit=2, after=after, labels=labels):
        paged += page.items
        after = page.after
        if not after:
            break

    def uids(objects: list[Manifest]) -> list[str]:
        return [each["metadata"]["uid"] for each in objects]

    assert uids(listed) == uids(paged) == uids(expected)
    for one in (*listed, *paged):
        assert one == both.official.get(
            CONFIG_MAP, one["metadata"]["name"], one["metadata"]["namespace"]
        )


def test_taking_over_leaves_the_others_fields(both: Both) -> None:
    """Only fields that both say change owners; the other's own fields stay the other's."""
    both.official.apply(config_map(shared="theirs", other="theirs"), "kubectl")
    both.ours.apply(config_map(shared="ours"))
    found = both.official.get(CONFIG_MAP, "a", "default")

    assert found
    assert found["data"] == {"shared": "ours", "other": "theirs"}
    with pytest.raises(ConflictError, match="bellhop"):
        both.official.apply(config_map(shared="theirs", other="theirs"), "kubectl")


def test_a_field_that_is_not_applied_any_more_goes(both: Both) -> None:
    both.ours.apply(config_map(a="1", b="2"))
    both.ours.apply(config_map(b="2"))

    found = both.official.get(CONFIG_MAP, "a", "default")
    assert found
    assert found["data"] == {"b": "2"}


def test_a_dry_run_is_refused_like_the_write_and_leaves_nothing(both: Both) -> None:
    both.ours.apply(config_map(), dry_run=True)
    assert both.official.get(CONFIG_MAP, "a", "default") is None

    wrong = config_map("Not_A_Name")
    for dry_run in (True, False):
        with pytest.raises(InvalidError, match="Not_A_Name"):
            both.ours.apply(wrong, dry_run=dry_run)


def test_another_life_is_not_written_to(both: Both) -> None:
    made = both.official.create(config_map(a="1"))
    with pytest.raises(StaleError):
        both.ours.apply(config_map(a="2"), uid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(StaleError):
        both.ours.apply(config_map(a="2"), uid="")

    assert both.official.get(CONFIG_MAP, "a", "default") == made


def test_a_version_that_the_official_client_has_passed_is_not_written_to(both: Both) -> None:
    made = both.official.create(config_map(a="1"))["metadata"]
    changed = both.official.patch(CONFIG_MAP, "a", "default", {"data": {"a": "2"}})
    with pytest.raises(StaleError):
        both.ours.apply(config_map(a="3"), uid=made["uid"], version=made["resourceVersion"])
    assert both.official.get(CONFIG_MAP, "a", "default") == changed

    both.ours.apply(
        config_map(a="3"), uid=made["uid"], version=changed["metadata"]["resourceVersion"]
    )
    found = both.official.get(CONFIG_MAP, "a", "default")
    assert found
    assert found["data"] == {"a": "3"}


def test_a_merge_is_that_of_the_official_client(both: Both) -> None:
    patch: Manifest = {"data": {"a": None, "b": "3", "c": "4"}}
    for name in ("a", "b"):
        both.official.create(config_map(name, a="1", b="2"))
    both.official.patch(CONFIG_MAP, "b", "default", patch)

    assert both.ours.merge(CONFIG_MAP, "default", "a", patch)
    found = [both.official.get(CONFIG_MAP, each, "default") for each in ("a", "b")]
    assert [each and each["data"] for each in found] == [{"b": "3", "c": "4"}] * 2


def test_only_the_life_that_is_meant_is_removed(both: Both) -> None:
    uid = both.official.create(config_map())["metadata"]["uid"]

    assert both.ours.remove(CONFIG_MAP, "default", "a", uid="another") is None
    assert both.official.get(CONFIG_MAP, "a", "default")
    assert both.ours.remove(CONFIG_MAP, "default", "a", uid=uid) == {}
    assert both.official.get(CONFIG_MAP, "a", "default") is None
    assert both.ours.remove(CONFIG_MAP, "default", "a", uid=uid) is None


def test_a_status_is_written_apart(both: Both) -> None:
    """The official client reads the whole; the spec that the same manifest says is unchanged."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dry"}}
    uid = both.ours.apply(space)["metadata"]["uid"]
    written: Manifest = {
        **space,
        "metadata": {"name": "dry", "labels": {"not": "written"}},
        "status": {"conditions": [{"type": "Told", "status": "True"}]},
    }
    both.ours.merge_status(written, uid=uid)
    found = both.official.get(NAMESPACE, "dry")

    assert found
    assert [each["type"] for each in found["status"]["conditions"]] == ["Told"]
    assert "not" not in found["metadata"].get("labels", {})
