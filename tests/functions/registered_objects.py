"""SveltosClusters with kubeconfigs, as users write them, and what comes of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from bellhop.configuration.definitions import make_definitions
from bellhop.configuration.withdrawal import SETTLE
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.state.messages import ReadBack
from tests.fakes.kept import require_value
from tests.functions.roles import SOUTH, Post
from tests.waiting import eventually

CLUSTER = GVK("lib.projectsveltos.io", "v1beta1", "SveltosCluster")
_DEFINITION = "sveltosclusters.lib.projectsveltos.io"
SILENT = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {"token": "of-nobody"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "current-context": "a",
}
"""The kubeconfig of a cluster that does not answer."""


def make_cluster(name: str, kubeconfig: Mapping[str, Any], **labels: str) -> list[dict[str, Any]]:
    """Return a SveltosCluster of the namespace `default`, and its Secret, which comes first."""
    data = base64.b64encode(json.dumps(kubeconfig).encode()).decode()
    secret = {"namespace": "default", "name": f"{name}-sveltos-kubeconfig"}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": {"kubeconfig": data}},
        {
            "apiVersion": f"{CLUSTER.group}/{CLUSTER.version}",
            "kind": CLUSTER.kind,
            "metadata": {"namespace": "default", "name": name, "labels": labels},
            "spec": {},
        },
    ]


def registers_by_an_object(post: Post, *, by_hand: bool = False) -> None:
    """Its kubeconfig is stored, and deleted with the object.

    Where somebody has deleted one of this name before, it still has its name for some days.
    """
    name, someone = post.site.name(), post.site.someone
    key, place = ObjectKey(CLUSTER, "default", name), f"default/{name}"
    if by_hand:
        post.here.secrets.put(f"kubeconfig/{place}", b"x")
        post.site.account.services.client("secretsmanager").delete_secret(
            SecretId=f"{post.site.account.name}/kubeconfig/{place}", RecoveryWindowInDays=7
        )
    with _configuration(post):
        for manifest in make_cluster(name, SILENT):
            stored = someone.apply(manifest)
        uid = stored["metadata"]["uid"]
        post.work(ReadBack(SOUTH, str(key), uid, 0, event_at=datetime.now(UTC).isoformat()))
        registered = post.here.records.clusters.get(place)
        someone.delete(key)
        _notice_deletion(post, name)
        post.work(ReadBack(SOUTH, str(key), uid, 0, event_at=datetime.now(UTC).isoformat()))

    assert registered
    assert post.here.records.clusters.get(place) is None
    assert list(post.here.secrets.names(f"kubeconfig/{place}")) == []


def _notice_deletion(post: Post, name: str) -> None:
    """Have the deletion of an object noticed so long ago that no other belongs to it."""
    table = post.here.records.configured
    kept = require_value(table.get(CLUSTER.kind, "default", name))
    table.put(CLUSTER.kind, "default", name, replace(kept, state="Leaving", at=kept.at - SETTLE))


@contextmanager
def _configuration(post: Post) -> Iterator[None]:
    """Have a cluster hold the configuration for a while."""
    [definition] = (
        each for each in make_definitions(rules=False) if each["metadata"]["name"] == _DEFINITION
    )
    post.site.someone.apply(definition)
    eventually("the kind is served", lambda: _is_served(post))
    post.here.records.circuits.delete(SOUTH)
    post.here.declare.configure(SOUTH, "on")
    try:
        yield
    finally:
        post.here.declare.configure(SOUTH, "")


def _is_served(post: Post) -> bool:
    try:
        post.site.someone.list(CLUSTER, "default")
    except LookupError:
        return False
    return True
