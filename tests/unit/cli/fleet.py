"""Records as the stages leave them, for commands that read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from bellhop.api.kinds import parse_all, read_documents
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.installation import Installation
from bellhop.profiles.records import place
from bellhop.state.chart import HeldRelease, release_key
from bellhop.state.cluster import Cluster, Health, Tally
from bellhop.state.content import Content
from bellhop.state.deployment import DeploymentStatus, Held, Inventory
from bellhop.state.event_log import Entry
from bellhop.state.match import Match, Observation
from bellhop.state.profile import Profile, Rendering

SERVICE = ObjectKey(GVK("", "v1", "Service"), "default", "my-service")
POLICY = ObjectKey(
    GVK("networking.k8s.io", "v1", "NetworkPolicy"), "default", "front-my-service"
).identity
RELEASE = release_key("apps", "web")
PART = ObjectKey(GVK("apps", "v1", "Deployment"), "apps", "web").identity
PROFILE = "service-network-policy-0123456789ab"
BEFORE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

MANIFESTS = """
apiVersion: lib.projectsveltos.io/v1alpha1
kind: EventSource
metadata:
  name: sveltos-service
spec:
  collectResources: true
  group: ""
  version: "v1"
  kind: "Service"
  labelFilters:
  - key: sveltos
    operation: Equal
    value: fv
---
apiVersion: lib.projectsveltos.io/v1alpha1
kind: EventBasedAddOn
metadata:
  name: service-network-policy
spec:
  clusterSelector: env=fv
  eventSourceName: sveltos-service
  oneForEvent: true
  policyRefs:
  - name: network-policy
    namespace: default
    kind: ConfigMap
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: network-policy
  namespace: default
  labels:
    team: net
data:
  policy.yaml: "kind: NetworkPolicy"
---
apiVersion: v1
kind: Secret
metadata:
  name: registry
  namespace: infra
stringData:
  password: hunter2-is-secret
"""


def now() -> datetime:
    """Return the time: ages are relative to when a record is made, not to when tests began."""
    return datetime.now(UTC)


def service(**extra: Any) -> dict[str, Any]:
    """The Service of the example, as the API server has it."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "my-service",
            "namespace": "default",
            "labels": {"sveltos": "fv"},
            "resourceVersion": "2252",
            "uid": "3486815b-df95-4a30-b0c2-50ae8a26b8eb",
        },
        "spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 9376}]},
        **extra,
    }


def cluster(namespace: str = "default", name: str = "workload", **labels: str) -> Cluster:
    """A registered cluster, three hours old."""
    return Cluster(
        namespace=namespace,
        name=name,
        labels=labels or {"env": "fv"},
        kubernetes="v1.31.2",
        token_digest="0" * 64,
        registered_at=now() - timedelta(hours=3),
    )


def profile(**changes: Any) -> Profile:
    """The profile that the example's trigger generates for its Service."""
    made = Profile(
        name=PROFILE,
        trigger="service-network-policy",
        cluster="default/workload",
        object=str(SERVICE),
        contents=(
            Content(
                "ConfigMap default/network-policy",
                "policy.yaml",
                (
                    {
                        "apiVersion": "networking.k8s.io/v1",
                        "kind": "NetworkPolicy",
                        "metadata": {"name": "front-my-service", "namespace": "default"},
                    },
                ),
            ),
        ),
        destinations=("default/workload",),
        tier=100,
        leaves_policies=False,
        continue_on_conflict=False,
        told=True,
        digest="d",
    )
    return replace(made, **changes)


def outcome(**changes: Any) -> DeploymentStatus:
    """A deployment status: provisioned, five minutes ago."""
    made = DeploymentStatus(
        cluster="default/workload",
        profile=PROFILE,
        trigger="service-network-policy",
        source="default/workload",
        phase="Provisioned",
        at=now() - timedelta(minutes=5),
    )
    return replace(made, **changes)


def entry(what: str, *, trace: str = "3f9a1c20beef", ago: float = 60, **changes: Any) -> Entry:
    """A line of the event log about the example's Service."""
    made = Entry(
        at=now() - timedelta(seconds=ago),
        trace=trace,
        what=what,
        cluster="default/workload",
        object=str(SERVICE),
    )
    return replace(made, **changes)


def declare(here: Installation, text: str = MANIFESTS) -> None:
    """Apply manifests."""
    here.declare.apply(parse_all(read_documents(text, source="test")))


def populate(here: Installation) -> None:
    """Have the example deployed: one cluster, one Service that matches, one NetworkPolicy."""
    declare(here)
    here.declare.register(cluster())
    health = Health("Healthy", swept_at=now() - timedelta(minutes=2), seen=10, missed=1)
    health = replace(health, tallies=(Tally(now() - timedelta(hours=13), 10, 1),))
    here.records.health.put("default/workload", health)
    observe(here, service())
    match = Match(
        "default/workload",
        "sveltos-service",
        SERVICE,
        matching=True,
        digest="x",
        since=now() - timedelta(minutes=6),
        told=True,
    )
    here.records.matches.put(match)
    here.records.profiles.put(profile())
    here.records.outcomes.put(outcome())
    held = {POLICY: Held("d", "ConfigMap default/network-policy", now() - timedelta(minutes=5))}
    here.records.inventories.put(Inventory("default/workload", PROFILE, held))


def chart(here: Installation) -> None:
    """Have the example's profile hold a release beside its NetworkPolicy, and what that made."""
    at = now() - timedelta(minutes=5)
    ref = "helmCharts[0]"
    known = HeldRelease("web", "1.0.0", "https://ann:hush@charts.example.com/stable", 1)
    held = {
        POLICY: Held("d", "ConfigMap default/network-policy", at),
        RELEASE: Held("r", ref, at, release=known),
        PART: Held("r", ref, at, version="v1", part_of="apps/web"),
    }
    here.records.inventories.put(Inventory("default/workload", PROFILE, held))


def revise(here: Installation) -> None:
    """Have the profile of the example hold its second revision, of which the first is kept."""
    made = profile(number=2, latest=2, recipe={"ConfigMap default/network-policy": "b"})
    here.records.profiles.put(made)
    recipe = {"ConfigMap default/network-policy": "a"}
    held = Rendering(1, "older", BEFORE, BEFORE, recipe, made.contents)
    here.records.renderings.keep(place(made), held, 3)


def observe(here: Installation, manifest: dict[str, Any], where: str = "default/workload") -> None:
    """Have an object of a cluster observed."""
    key = ObjectKey.of(manifest)
    here.records.observations.put(Observation(where, key, "uid", 2252, manifest, seen_at=now()))
