"""Charts on Google Cloud: the function as functions-framework starts it, with Helm beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.messages import CHARTS
from bellhop.model.gvk import GVK, ObjectKey
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from infra.lab.google_storage import Storage
from infra.package.programs import PLACE
from tests.fakes.chart import packed, repository
from tests.functions.conftest import SETTINGS
from tests.functions.gcp_lab import Project, Stand

CONFIG = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "web-config")
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
"""


@pytest.fixture
def project(pubsub_place: str, storage: Storage) -> Iterator[Project]:
    one = Project(pubsub_place, storage, charts=True, **SETTINGS)
    yield one
    one.close()


def test_a_chart_comes_and_goes_with_its_profile(
    stand: Stand, google_sources: Path, source_cluster: Cluster, tmp_path: Path
) -> None:
    """Unpacking the sources may lose the mode of Helm: the function restores it.

    It takes seconds: each function starts as a process of its own.
    """
    (google_sources / CHARTS / PLACE).chmod(0o644)
    owner, someone = stand.project.owner(), Someone(source_cluster.kubeconfig())
    owner.register("east", source_cluster.kubeconfig(), env="production")
    with repository(packed(tmp_path)) as site:
        charted = CHARTED.format(address=site.address)
        owner.apply(charted)
        stand.wait(lambda: someone.get(CONFIG))
        owner.withdraw(charted)
        stand.wait(lambda: someone.get(CONFIG) is None)

    assert os.access(google_sources / CHARTS / PLACE, os.X_OK)
    assert stand.lines(severity="ERROR") == []
    someone.close()
