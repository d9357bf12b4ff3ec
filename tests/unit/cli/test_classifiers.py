"""get, describe and apply of Classifiers: who satisfies them, and which labels are another's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from bellhop.installation.installation import Installation
from bellhop.ports.store import ABSENT
from bellhop.state.classification import Classification
from bellhop.state.record import Cluster
from tests.fakes.clock import START

Bellhop = Callable[..., Result]

GPU = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: Classifier
metadata: {name: gpu}
spec:
  kubernetesVersionConstraints: [{comparison: GreaterThan, version: '1.30'}]
  deployedResourceConstraint:
    resourceSelectors: [{group: apps, version: v1, kind: DaemonSet, name: nvidia}]
  classifierLabels: [{key: accelerator, value: nvidia}, {key: tier, value: fast}]
"""


@pytest.fixture
def two(bellhop: Bellhop, here: Installation, tmp_path: Path) -> Installation:
    """Two clusters, of which one satisfies a classifier and lacks one of its labels."""
    for name in ("east", "west"):
        here.declare.register(Cluster("fleet", name, {"tier": "slow"}, "v1.34.2", name, START))
    file = tmp_path / "gpu.yaml"
    file.write_text(GPU)
    assert bellhop("apply", "-f", str(file)).exit_code == 0
    found = Classification(("gpu",), lacks={"gpu tier": "somebody has set it, and it stays"})
    here.records.classified.put("fleet/east", found, expect=ABSENT)
    here.records.classified.put("fleet/west", Classification(open=("gpu",)), expect=ABSENT)
    return here


def test_get_shows_who_satisfies_it(bellhop: Bellhop, two: Installation) -> None:
    """As a table, and as the status that Sveltos writes."""
    assert two.catalogs.current().classifiers
    assert bellhop("get", "classifiers", "-o", "wide").stdout.splitlines() == [
        "NAME   LABELS                         MATCHING   LACKING   CLUSTERS",
        "gpu    accelerator=nvidia,tier=fast   1          1         fleet/east",
    ]

    shown = yaml.safe_load(bellhop("get", "cf", "gpu", "-o", "yaml").stdout)
    [status] = shown["status"]["machingClusterStatuses"]
    assert status["clusterRef"]["name"] == "east"
    assert status["managedLabels"] == ["accelerator"]
    assert [each["key"] for each in status["unManagedLabels"]] == ["tier"]


def test_describe_tells_where_and_why_not(bellhop: Bellhop, two: Installation) -> None:
    """Of each cluster that it is asked of how it stands there."""
    assert two.catalogs.current().classifiers
    said = bellhop("describe", "classifier", "gpu").stdout

    assert "GreaterThan 1.30" in said
    assert "apps/v1/DaemonSet" in said
    assert "satisfies it" in said
    assert "waits for a resync" in said
    assert "somebody has set it, and it stays" in said


def test_failures_tell_of_labels_that_cannot_be_given(bellhop: Bellhop, two: Installation) -> None:
    """In a sentence that names the first cluster."""
    assert two.catalogs.current().classifiers
    said = bellhop("show", "failures", "-o", "json").stdout

    assert "it cannot give cluster 'fleet/east' the label 'tier': somebody has set it" in said


def test_describe_cluster_names_the_classifier(bellhop: Bellhop, two: Installation) -> None:
    """Its sources are in force there without a trigger, and are no EventReports."""
    assert two.catalogs.current().classifiers

    assert "by Classifier gpu" in bellhop("describe", "cluster", "fleet/east").stdout
    assert "gpu" not in bellhop("get", "eventreports").stdout


def test_a_script_that_is_none_is_refused_with_its_place(bellhop: Bellhop, tmp_path: Path) -> None:
    """In a selector, or for all resources; the line is that of the script."""
    file = tmp_path / "broken.yaml"
    text = GPU.replace(
        "name: nvidia}]", "evaluate: 'function ('}]\n    aggregatedClassification: end"
    )
    file.write_text(text)
    found = bellhop("apply", "-f", str(file))

    assert found.exit_code == 2
    assert "spec.deployedResourceConstraint.resourceSelectors[0].evaluate" in found.stderr
    assert "spec.deployedResourceConstraint.aggregatedClassification" in found.stderr
