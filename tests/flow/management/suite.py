"""What suites of Sveltos share: clients of both clusters, waits, and what they look for.

A scenario plays the calls of one test of Sveltos, and asserts what that asserts. It talks to the
API servers only, and leaves nothing behind that the next run of it could meet.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from bellhop.core.gvk import GVK, ObjectKey
from infra.demo.user import User, make_path
from tests.flow.management.manifests import (
    CONFIG,
    LIB,
    Manifest,
    config_map,
    draw,
    find_gvk,
    number,
    refer,
)
from tests.waiting import eventually

OURS = "projectsveltos"
TRIGGER_LABEL = "eventtrigger.lib.projectsveltos.io/eventtriggername"
CLUSTER_LABELS = "projectsveltos.io/cluster-name", "projectsveltos.io/cluster-type"
PROFILE_LABELS = {
    "ClusterProfile": "projectsveltos.io/cluster-profile-name",
    "Profile": "projectsveltos.io/profile-name",
}
INSTANTIATE = {"projectsveltos.io/instantiate": "ok"}
TEMPLATE = {"projectsveltos.io/template": "ok"}
PATIENCE = 120.0
"""Seconds that suites wait."""

_AT_ONCE = 5
_CONFLICT = "409"


class Client(User):
    """A client of one cluster, as client libraries have it."""

    def make(self, kind: str, name: str, namespace: str = "", **more: Any) -> Manifest:
        """Create an object; `more` are its fields beside the metadata, or `labels` and so on."""
        metadata: Manifest = {"name": name, **({"namespace": namespace} if namespace else {})}
        for field in ("labels", "annotations"):
            if field in more:
                metadata[field] = more.pop(field)
        manifest = {"apiVersion": find_gvk(kind).api_version, "kind": kind, "metadata": metadata}
        return self.create({**manifest, **more})

    def read(self, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """Read an object; None if it is not there."""
        return self.get(ObjectKey(find_gvk(kind), namespace, name))

    def need(self, kind: str, name: str, namespace: str = "") -> Manifest:
        """Read an object that must be there."""
        found = self.read(kind, name, namespace)
        assert found, f"there is no {kind} '{namespace}/{name}'"
        return found

    def edit(
        self, kind: str, name: str, change: Callable[[Manifest], None], namespace: str = ""
    ) -> Manifest:
        """Change an object as it is, again if another writer was quicker."""
        while True:
            found = self.need(kind, name, namespace)
            change(found)
            try:
                return self.replace(found)
            except RuntimeError as error:
                if f": {_CONFLICT} " not in str(error):
                    raise

    def replace(self, manifest: Manifest, sub: str = "") -> Manifest:
        """Replace an object, or its status, in the version that was read."""
        key = ObjectKey.of(manifest)
        path = make_path(key.gvk, key.namespace, key.name) + (f"/{sub}" if sub else "")
        return self._ask("PUT", path, manifest)

    def drop(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object that must be there."""
        self.delete(ObjectKey(find_gvk(kind), namespace, name))

    def find_custom(self, group: str, kind: str, name: str) -> Manifest | None:
        """Read an object of another group; None if it is not there."""
        return self.get(ObjectKey(GVK(group, "v1", kind), "", name))

    def drop_custom(self, group: str, kind: str, name: str) -> None:
        """Delete an object of another group."""
        self.delete(ObjectKey(GVK(group, "v1", kind), "", name))

    def select(self, kind: str, labels: Mapping[str, str], namespace: str = "") -> list[Manifest]:
        """List the objects of a kind with labels."""
        query = quote(",".join(f"{name}={value}" for name, value in labels.items()))
        path = make_path(find_gvk(kind), namespace, "")
        found: list[Manifest] = self._ask("GET", f"{path}?labelSelector={query}")["items"]
        return found

    def await_deleted(self, kind: str, name: str, namespace: str = "") -> None:
        """Wait until an object is not there, or is being deleted."""
        where = f"{kind} '{namespace}/{name}'"
        await_so(f"{where} is deleted", lambda: _is_deleted(self.read(kind, name, namespace)))

    def await_there(self, kind: str, name: str, namespace: str = "") -> Manifest:
        """Wait for an object."""
        where = f"{kind} '{namespace}/{name}'"
        found: Manifest = await_so(f"{where} is there", lambda: self.read(kind, name, namespace))
        return found


def _is_deleted(found: Manifest | None) -> bool:
    return found is None or "deletionTimestamp" in found["metadata"]


def await_so(what: str, done: Callable[[], Any]) -> Any:
    """Wait as long as suites do, asking less often than they may."""
    return eventually(what, done, patience=PATIENCE, pause=0.25)


class Suite:
    """Both clusters, and the assertions that suites share."""

    def __init__(self, hub: Client, workload: Client) -> None:
        self.hub, self.workload = hub, workload
        [found] = hub.select("SveltosCluster", {"cluster-name": "clusterapi-workload"})
        self.namespace, self.name = found["metadata"]["namespace"], found["metadata"]["name"]

    def prepare(self) -> None:
        """Label and resume the cluster, as suites begin."""
        self.label("fv")

    def label(self, value: str) -> None:
        """Set the label by which suites select the cluster, and resume it."""

        def change(cluster: Manifest) -> None:
            cluster["metadata"]["labels"]["env"] = value
            cluster["spec"]["paused"] = False

        self.hub.edit("SveltosCluster", self.name, change, self.namespace)

    # Profiles -----------------------------------------------------------------------------------

    def make_profile(self, prefix: str, kind: str = "ClusterProfile", /, **spec: Any) -> Profile:
        """Create a profile for the cluster, and wait until it matches and has a summary."""
        selector = {"clusterSelector": {"matchLabels": {"env": "fv"}}}
        namespace = self.namespace if kind == "Profile" else ""
        name = prefix + draw()
        whole = {"syncMode": "Continuous", **selector, **spec}
        self.hub.make(kind, name, namespace, spec=whole)
        profile = Profile(self, kind, name, namespace)
        if spec.get("clusterRefs") is None:
            profile.await_match()
        return profile

    def find_profile(self, name: str) -> Profile:
        """Return a ClusterProfile by its name."""
        return Profile(self, "ClusterProfile", name)

    def store(self, *texts: str, namespace: str = "", **metadata: Any) -> tuple[str, str]:
        """Create a ConfigMap with texts, in a namespace of its own; return where it is."""
        namespace = namespace or self.make_namespace()
        name = draw()
        self.hub.make("ConfigMap", name, namespace, data=number(texts), **metadata)
        return namespace, name

    def make_namespace(self, **metadata: Any) -> str:
        """Create a namespace in the configuration cluster."""
        name = draw()
        self.hub.make("Namespace", name, **metadata)
        return name

    def await_turn(self) -> None:
        """Wait until what was written until now has had its effect.

        A profile that was written later is deployed.
        """
        name = draw()
        place = self.store(config_map(name), namespace="default")
        fence = self.make_profile("fence-", policyRefs=[refer(place)])
        self.workload.await_there("ConfigMap", name, "default")
        fence.delete()
        self.hub.drop("ConfigMap", place[1], place[0])

    def list_content(self, profile: Profile, feature: str = "Resources") -> list[tuple[str, ...]]:
        """Return what the ClusterConfiguration says that a profile has deployed."""
        found = self.hub.read("ClusterConfiguration", f"sveltos--{self.name}", self.namespace) or {}
        field, name = "clusterProfileResources", "clusterProfileName"
        if profile.kind == "Profile":
            field, name = "profileResources", "profileName"
        return sorted(
            (each["kind"], each.get("namespace", ""), each["name"])
            for entry in (found.get("status") or {}).get(field) or ()
            if entry[name] == profile.name
            for one in entry.get("Features") or ()
            if one["featureID"] == feature
            for each in one.get("resources") or ()
        )

    # Events -------------------------------------------------------------------------------------

    def make_source(self, *selectors: Manifest, collect: bool = True, **spec: Any) -> str:
        """Create an EventSource."""
        name = draw()
        selected = {"resourceSelectors": list(selectors)} if selectors else {}
        self.hub.make("EventSource", name, spec={**selected, "collectResources": collect, **spec})
        return name

    def make_trigger(self, prefix: str, source: str, **spec: Any) -> str:
        """Create an EventTrigger for the cluster."""
        name = prefix + draw()
        selector = {"sourceClusterSelector": {"matchLabels": {"env": "fv"}}}
        self.hub.make("EventTrigger", name, spec={"eventSourceName": source, **selector, **spec})
        return name

    def name_report(self, source: str) -> str:
        """Return the name of an EventReport."""
        return f"sveltos--{source}--{self.name}"

    def read_report(self, source: str) -> Manifest | None:
        """Read an EventReport."""
        return self.hub.read("EventReport", self.name_report(source), self.namespace)

    def await_report(self, source: str, field: str = "") -> Manifest:
        """Wait for an EventReport, and until a field of its spec is not empty."""

        def is_there() -> Manifest | None:
            found = self.read_report(source)
            return found if found and (not field or found["spec"].get(field)) else None

        found: Manifest = await_so(f"the report of '{source}' has {field or 'a spec'}", is_there)
        return found

    def list_generated(self, trigger: str, kind: str = "ClusterProfile") -> list[Manifest]:
        """List what a trigger has generated."""
        namespace = "" if kind == "ClusterProfile" else OURS
        return self.hub.select(kind, {TRIGGER_LABEL: trigger}, namespace)

    def await_generated(self, trigger: str) -> Profile:
        """Wait for the only ClusterProfile of a trigger."""
        what = f"'{trigger}' has one ClusterProfile"
        await_so(what, lambda: len(self.list_generated(trigger)) == 1)
        [found] = self.list_generated(trigger)
        return Profile(self, "ClusterProfile", found["metadata"]["name"])

    def await_none_generated(self, trigger: str) -> None:
        """Wait until all ClusterProfiles of a trigger are deleted, or about to be."""
        what = f"'{trigger}' has no ClusterProfile"
        await_so(what, lambda: all(map(_is_deleted, self.list_generated(trigger))))

    def end(self, trigger: str, source: str) -> None:
        """Delete a trigger and its source, and wait until all that came of them is deleted."""
        self.hub.drop("EventTrigger", trigger)
        self.await_none_generated(trigger)
        await_so(f"'{trigger}' is deleted", lambda: self.hub.read("EventTrigger", trigger) is None)
        self.hub.drop("EventSource", source)
        what = f"the report of '{source}' is deleted"
        await_so(what, lambda: self.read_report(source) is None)


class Profile:
    """A profile, and what suites look for beside it."""

    def __init__(self, suite: Suite, kind: str, name: str, namespace: str = "") -> None:
        self._suite, self._hub = suite, suite.hub
        self.kind, self.name, self.namespace = kind, name, namespace
        self.cluster = suite.namespace, suite.name

    @property
    def spec(self) -> Manifest:
        found: Manifest = self._hub.need(self.kind, self.name, self.namespace)["spec"]
        return found

    def find_summary(self) -> Manifest | None:
        """Find its ClusterSummary by the labels; there is at most one."""
        labels = dict(zip(CLUSTER_LABELS, (self.cluster[1], "Sveltos"), strict=True))
        labels[PROFILE_LABELS[self.kind]] = self.name
        found = self._hub.select("ClusterSummary", labels, self.cluster[0])
        assert len(found) <= 1
        return found[0] if found else None

    def await_match(self) -> None:
        """Wait until it matches the cluster, and has a summary."""
        what = f"{self.kind} '{self.name}' matches"
        await_so(what, lambda: self._suite_cluster() in self.list_matches())
        self.await_summary()

    def list_matches(self) -> list[tuple[str, ...]]:
        """Return version, namespace and name of the clusters that its status says it matches."""
        found = self._hub.need(self.kind, self.name, self.namespace).get("status") or {}
        return [
            (each["apiVersion"], each["namespace"], each["name"])
            for each in found.get("matchingClusters") or ()
        ]

    def _suite_cluster(self) -> tuple[str, ...]:
        return (LIB, self._suite.namespace, self._suite.name)

    def await_summary(self) -> Manifest:
        """Wait for its summary, which it owns and whose specification is its own."""
        summary: Manifest = await_so(f"'{self.name}' has a summary", self.find_summary)
        owners = [
            (each["apiVersion"], each["kind"], each["name"])
            for each in summary["metadata"]["ownerReferences"]
        ]
        assert (CONFIG, self.kind, self.name) in owners

        def is_equal() -> bool:
            spec, found = self.spec, self.find_summary()
            own = found["spec"]["clusterProfileSpec"] if found else {}
            fields = ("policyRefs", "helmCharts", "kustomizationRefs")
            return bool(found) and all((own.get(x) or []) == (spec.get(x) or []) for x in fields)

        await_so(f"the summary of '{self.name}' has its specification", is_equal)
        return summary

    def read_feature(self, feature: str = "Resources") -> Manifest:
        """Return the state of a feature; empty if there is none."""
        found = self.find_summary() or {}
        every = (found.get("status") or {}).get("featureSummaries") or ()
        return next((each for each in every if each["featureID"] == feature), {})

    def await_feature(self, done: Callable[[Manifest], bool], feature: str = "Resources") -> None:
        """Wait until the state of a feature is so."""
        eventually(
            lambda: f"'{self.name}' is as expected, and not {self.read_feature(feature)}",
            lambda: done(self.read_feature(feature)),
            patience=PATIENCE,
            pause=0.25,
        )

    def await_provisioned(self, feature: str = "Resources") -> None:
        """Wait until a feature is provisioned, and has no failure."""
        self.await_feature(
            lambda it: it.get("status") == "Provisioned" and "failureMessage" not in it, feature
        )

    def edit(self, **spec: Any) -> None:
        """Change fields of its specification; None removes one."""

        def change(manifest: Manifest) -> None:
            for field, value in spec.items():
                manifest["spec"].pop(field, None)
                if value is not None:
                    manifest["spec"][field] = value

        self._hub.edit(self.kind, self.name, change, self.namespace)

    def delete(self) -> None:
        """Delete it, and wait until its summary and itself are deleted."""
        self._hub.drop(self.kind, self.name, self.namespace)
        await_so(f"the summary of '{self.name}' is deleted", lambda: self.find_summary() is None)
        what = f"'{self.name}' is deleted"
        await_so(what, lambda: self._hub.read(self.kind, self.name, self.namespace) is None)


# Runs ---------------------------------------------------------------------------------------------

Scenario = Callable[[Suite], None]


def run_all(suite: Suite, scenarios: Iterable[Scenario]) -> None:
    """Run scenarios, five at a time, and fail with the reasons of all that failed."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        runs = {each.__name__: pool.submit(each, suite) for each in scenarios}
    failed = {name: run.exception() for name, run in runs.items() if run.exception()}
    said = [
        f"{name}: {''.join(traceback.format_exception(error))}" for name, error in failed.items()
    ]
    assert not failed, "\n".join([json.dumps(sorted(failed)), *said])
