"""Repositories and Helm in memory: a release is a ConfigMap with its values, and Helm's record."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.documents.tarball import Folder
from bellhop.errors import BellhopError, MissingError, StaleError
from bellhop.ports.charts import DEPLOYED, OUR_LABEL, Archive, DesiredRelease, Release
from bellhop.rendering.allow_limits import refuse_charted
from bellhop.state.chart import AS_USUAL, Place, Removal
from tests.fakes.kube import FakeKube

_CONFIG = GVK("", "v1", "ConfigMap")
_SECRET = GVK("", "v1", "Secret")


class FakeRepositories:
    """Charts that a test has put there; the newest version is the last one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.charts: dict[str, list[str]] = {}
        self.found: list[Place] = []
        self.packed: list[tuple[str, str]] = []
        self.failure: BellhopError | None = None
        self.meanwhile: list[Callable[[], object]] = []

    def put(self, chart: str, *versions: str) -> None:
        """Have versions of a chart in every repository."""
        self.charts[chart] = list(versions)

    def find(self, place: Place) -> Archive:
        self.found.append(place)
        if self.meanwhile:
            self.meanwhile.pop()()
        if self.failure:
            raise self.failure
        versions = self.charts.get(place.chart, [])
        if not versions or (place.version and place.version not in versions):
            raise MissingError(f"cannot find chart '{place.chart}' in '{place.repository}'")
        version = place.version or versions[-1]
        path = self._folder / f"{place.chart}-{version}.tgz"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(f"{place.chart} {version}")
        return Archive(path, place.chart, version, f"{place.chart} {version}")

    def open(self, content: bytes, digest: str) -> Archive:
        chart, _, version = content.decode().partition(" ")
        return Archive(self._folder / f"{chart}-{version}.tgz", chart, version, digest)

    def pack(self, files: Folder, path: str, revision: str) -> Archive:
        self.packed.append((revision, path))
        name = path.rpartition("/")[2]
        version = files[f"{path}/Chart.yaml"].decode().rpartition(" ")[2]
        return Archive(self._folder / f"{name}-{version}.tgz", name, version, "")

    def versions(self, place: Place) -> Sequence[str]:
        return self.charts.get(place.chart, [])[::-1]


class _Releases(dict[tuple[str, str, str], Release]):
    """Releases by cluster, namespace and name, each with Helm's record of it in its cluster."""

    def __init__(self, clusters: Mapping[str, FakeKube]) -> None:
        super().__init__()
        self._clusters = clusters

    def __setitem__(self, key: tuple[str, str, str], release: Release) -> None:
        self._drop_record(key)
        super().__setitem__(key, release)
        kube = self._clusters[key[0]]
        kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key[1]}})
        kube.put(_record(release))

    def __delitem__(self, key: tuple[str, str, str]) -> None:
        self._drop_record(key)
        super().__delitem__(key)

    def _drop_record(self, key: tuple[str, str, str]) -> None:
        if old := self.get(key):
            self._clusters[key[0]].drop(_SECRET, old.namespace, _record_name(old))


class FakeCharts:
    """Releases in the clusters of a fleet, deployed one after the other."""

    def __init__(self, clusters: Mapping[str, FakeKube]) -> None:
        self._clusters = clusters
        self.releases: dict[tuple[str, str, str], Release] = _Releases(clusters)
        self.deployed: list[DesiredRelease] = []
        self.accounts: list[str] = []
        self.failures: dict[str, BellhopError] = {}
        self.irremovable: dict[str, BellhopError] = {}
        self.refused_renders: dict[str, BellhopError] = {}
        self.refused_rehearsals: dict[str, BellhopError] = {}
        self.rendered: list[DesiredRelease] = []
        self.read: list[str] = []
        self.meanwhile: list[Callable[[], object]] = []
        self.removals: list[Removal] = []
        self.cancelled: list[str] = []
        self.hooks: list[dict[str, Any]] = []
        self.workloads: dict[str, dict[str, Any]] = {}
        self.crds = ""
        self._manifests: dict[tuple[str, str, str], str] = {}

    def release(self, kubeconfig: bytes, namespace: str, name: str) -> Release | None:
        self.read.append(name)
        return self.releases.get((_cluster(kubeconfig), namespace, name))

    def deploy(
        self,
        kubeconfig: bytes,
        desired: DesiredRelease,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Release:
        self.deployed.append(desired)
        self.accounts.append(json.loads(kubeconfig)["account"])
        key = (_cluster(kubeconfig), desired.namespace, desired.name)
        old = self.releases.get(key)
        chart, _, version = desired.archive.stem.rpartition("-")
        revision = old.revision + 1 if old else 1
        made = Release(
            desired.name, desired.namespace, revision, "failed", chart, version, ours=True
        )
        failures = old.failures + 1 if old else 1
        installs = old is None or old.failures > 0
        made = replace(made, failures=failures if installs else 0)
        self.releases[key] = made
        if self.meanwhile:
            self.meanwhile.pop()()
        if cancelled():
            self.cancelled.append(desired.name)
            raise StaleError("it is no longer wanted")
        if failure := self.failures.get(desired.name):
            raise failure
        if desired.allow:
            refuse_charted(desired.allow, [_object(desired), *self.hooks])
        kube = self._clusters[key[0]]
        made_of = [_object(desired), *self._workload(desired)]
        for each in made_of:
            kube.put(each)
        self.releases[key] = replace(made, status=DEPLOYED, failures=0)
        self._manifests[key] = yaml.safe_dump_all(made_of)
        manifest = self.manifest(kubeconfig, desired.namespace, desired.name)
        return replace(self.releases[key], manifest=manifest)

    def dry_run(self, kubeconfig: bytes, desired: DesiredRelease) -> str:
        del kubeconfig
        if refusal := self.refused_rehearsals.get(desired.name):
            raise refusal
        return yaml.safe_dump(_object(desired))

    def remove(self, kubeconfig: bytes, namespace: str, name: str, how: Removal = AS_USUAL) -> bool:
        key = (_cluster(kubeconfig), namespace, name)
        self.removals.append(how)
        if failure := self.irremovable.get(name):
            raise failure
        if key not in self.releases:
            return False
        del self.releases[key]
        kube = self._clusters[key[0]]
        kube.drop(_CONFIG, namespace, f"{name}-config")
        if workload := self.workloads.get(name):
            kube.drop(ObjectKey.of(workload).gvk, namespace, workload["metadata"]["name"])
        return True

    def manifest(self, kubeconfig: bytes, namespace: str, name: str) -> str:
        return self._manifests.get((_cluster(kubeconfig), namespace, name), "")

    def definitions(self, desired: DesiredRelease) -> str:
        del desired
        return self.crds

    def render(self, desired: DesiredRelease, *, kubernetes: str = "") -> str:
        del kubernetes
        self.rendered.append(desired)
        if refusal := self.refused_renders.get(desired.name):
            raise refusal
        return yaml.safe_dump_all([_object(desired), *self.hooks])

    def _workload(self, desired: DesiredRelease) -> list[dict[str, Any]]:
        """Return what a release has beside its ConfigMap, as Helm writes it."""
        given = self.workloads.get(desired.name)
        if given is None:
            return []
        marks = {"namespace": desired.namespace, "annotations": _marks(desired)}
        return [{**given, "metadata": {**given["metadata"], **marks}}]


def _record_name(release: Release) -> str:
    return f"sh.helm.release.v1.{release.name}.v{release.revision}"


def _record(release: Release) -> dict[str, Any]:
    """Return the Secret that Helm keeps for a revision, without its contents."""
    labels = {
        "name": release.name,
        "owner": "helm",
        "status": release.status,
        "version": str(release.revision),
        **(OUR_LABEL if release.ours else {}),
    }
    place = {"name": _record_name(release), "namespace": release.namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {**place, "labels": labels}}


def _cluster(kubeconfig: bytes) -> str:
    return str(json.loads(kubeconfig)["cluster"])


def _object(desired: DesiredRelease) -> dict[str, Any]:
    """Return what a chart consists of: its version, and its values, of which the last ones win."""
    values: dict[str, str] = {}
    for text in desired.values:
        values |= {key: str(value) for key, value in yaml.safe_load(text).items()}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{desired.name}-config",
            "namespace": desired.namespace,
            "annotations": _marks(desired),
        },
        "data": {"chart": desired.archive.stem, **values},
    }


def _marks(desired: DesiredRelease) -> dict[str, str]:
    return {
        "meta.helm.sh/release-name": desired.name,
        "meta.helm.sh/release-namespace": desired.namespace,
    }
