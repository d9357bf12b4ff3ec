"""Add-ons from a Flux source and from a URL, on a real API server and by real downloads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bellhop.adapters.helm.charts import HelmCharts
from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.programs.layer import download
from bellhop.adapters.sources.charts.repositories import ChartRepositories
from bellhop.adapters.sources.files import FileDownloads
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.state.cluster import MANAGEMENT
from tests.contract.test_kube import wait_for
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config
from tests.fakes.read import ring
from tests.fakes.site import Site
from tests.fakes.tarballs import tarball
from tests.unit.adapters.kustomize.conftest import kubectl  # noqa: F401 - a fixture
from tests.unit.deploy.test_files import REPOSITORY, own

CONFIG = GVK("", "v1", "ConfigMap")
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gitrepositories.source.toolkit.fluxcd.io}
spec:
  group: source.toolkit.fluxcd.io
  scope: Namespaced
  names: {kind: GitRepository, plural: gitrepositories}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
"""Flux' own, without the schema and without the subresource of its status."""


@pytest.fixture
def site(fleet: Fleet) -> Iterator[Site]:
    """Serve files, which an installation downloads for good."""
    fleet.files = FileDownloads(LOCAL, fleet.clock)  # type: ignore[assignment]
    fleet.reread()
    with Site() as site:
        yield site


@pytest.fixture
def flux(fleet: Fleet, kube: KubeClient) -> None:
    """Let the one cluster be `mgmt/mgmt` as well."""
    fleet.access.clusters[MANAGEMENT] = kube  # type: ignore[assignment]
    found = fleet.records.clusters.get("fleet/east")
    assert found
    management = {"namespace": "mgmt", "name": "mgmt", "labels": {}}
    token = hashlib.sha256(b"mgmt").hexdigest()
    fleet.declare.register(replace(found.value, **management, token_digest=token))
    kube.apply(yaml.safe_load(CRD))
    wait_for(kube, GVK("source.toolkit.fluxcd.io", "v1", "GitRepository"))
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}})
    fleet.pump()


def there(kube: KubeClient) -> dict[str, Any]:
    found = kube.list(CONFIG, labels="projectsveltos.io/reason")
    return {each["metadata"]["name"]: each.get("data") for each in found}


def fetch(fleet: Fleet, kube: KubeClient, site: Site, files: Mapping[str, str]) -> None:
    """Let Flux fetch a revision, and the forwarder report that."""
    content = tarball(files)
    digest = hashlib.sha256(content).hexdigest()
    path = f"/git/{digest}.tar.gz"
    site.files[path] = content
    artifact = {"url": f"{site.address}{path}", "digest": f"sha256:{digest}"}
    stored = kube.apply(
        {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"name": "web", "namespace": "flux-system"},
            "status": {"artifact": artifact},
        }
    )
    ring(fleet, {"object": stored})
    fleet.pump()


@pytest.mark.usefixtures("flux")
def test_each_revision_of_a_source_is_deployed(fleet: Fleet, kube: KubeClient, site: Site) -> None:
    """What a revision lacks is removed, and what is no manifest does not count."""
    fleet.apply(own(f"{{{REPOSITORY}, path: apps}}"))
    fetch(fleet, kube, site, {"apps/a.yaml": config("a"), "apps/b.yml": config("b"), "x.md": "#"})
    assert sorted(there(kube)) == ["a", "b"]
    fetch(fleet, kube, site, {"apps/a.yaml": config("a", "v: '2'"), "apps/README": "hello"})
    assert there(kube) == {"a": {"v": "2"}}


@pytest.mark.usefixtures("flux")
def test_a_chart_of_a_source_is_deployed_by_helm(
    fleet: Fleet, kube: KubeClient, site: Site, tmp_path: Path
) -> None:
    """Each revision upgrades its release, which goes with its profile."""
    fleet.charts = HelmCharts(download() / "helm")  # type: ignore[assignment]
    fleet.repositories = ChartRepositories(LOCAL, tmp_path / "charts", fleet.clock)  # type: ignore[assignment]
    fleet.reread()
    chart = "repositoryURL: gitrepository://flux-system/web/web, releaseName: web"
    fleet.apply(own("", more=f"helmCharts: [{{{chart}, releaseNamespace: default}}]"))
    about = "apiVersion: v2\nname: web\nversion: 1.0."
    template = {"web/templates/a.yaml": config("{{ .Release.Name }}", "v: '{{ .Chart.Version }}'")}
    for number in range(2):
        fetch(fleet, kube, site, {**template, "web/Chart.yaml": f"{about}{number}\n"})
        found = kube.get(CONFIG, "default", "web")
        assert found
        assert found["data"] == {"v": f"1.0.{number}"}
    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.release()
    fleet.pump()
    assert kube.get(CONFIG, "default", "web") is None
