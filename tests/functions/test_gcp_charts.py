"""Charts and kustomizations on Google Cloud, by the function as functions-framework starts it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.state.messages import CHARTS
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from infra.package.programs import PLACES
from tests.fakes.chart import packed, repository
from tests.fakes.manifests import config, join
from tests.fakes.tarballs import packed as packed_folder
from tests.functions.conftest import SETTINGS
from tests.functions.gcp_lab import Project, Stand
from tests.lab.google_storage import Storage

CONFIG = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "web-config")
BUILT = ObjectKey(CONFIG.gvk, "default", "built-web")
CHARTED = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: charted}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  helmCharts:
  - repositoryURL: {address}
    repositoryName: lab
    chartName: lab/demo
    chartVersion: 1.x
    releaseName: web
    releaseNamespace: default
  kustomizationRefs: [{{kind: ConfigMap, namespace: default, name: folder}}]
"""
FOLDER = {
    "kustomization.yaml": "resources: [config.yaml]\nnamePrefix: built-\n",
    "config.yaml": config("web", "v: '1'"),
}


@pytest.fixture
def project(pubsub_place: str, storage: Storage) -> Iterator[Project]:
    one = Project(pubsub_place, storage, charts=True, **SETTINGS)
    yield one
    one.close()


def test_a_chart_and_a_kustomization_come_and_go_with_their_profile(
    stand: Stand, google_sources: Path, source_cluster: Cluster, tmp_path: Path
) -> None:
    """Unpacking the sources may lose the modes of programs: the function restores them."""
    programs = [google_sources / CHARTS / place for place in PLACES.values()]
    for program in programs:
        program.chmod(0o644)
    owner, someone = stand.project.owner(), Someone(source_cluster.kubeconfig())
    owner.register("east", source_cluster.kubeconfig(), env="production")
    with repository(packed(tmp_path)) as site:
        charted = CHARTED.format(address=site.address)
        owner.apply(join(packed_folder("folder", FOLDER), charted))
        stand.wait(lambda: someone.get(CONFIG) and someone.get(BUILT))
        owner.withdraw(charted)
        stand.wait(lambda: not (someone.get(CONFIG) or someone.get(BUILT)))

    assert all(os.access(program, os.X_OK) for program in programs)
    assert stand.lines(severity="ERROR") == []
    someone.close()
