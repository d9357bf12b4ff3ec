"""What a Classifier makes of a real cluster, and what becomes of one whose script fails."""

from __future__ import annotations

from datetime import timedelta

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from bellhop.diagnosis.failures import failures
from bellhop.extras.classifiers.classifier import GRACE
from bellhop.state.messages import Resync
from tests.contract.test_preview_api_server import EAST, fleet, kube  # noqa: F401 - fixtures
from tests.fakes.fleet import Fleet

# ruff: noqa: F811 - fixtures

pytest_plugins = ["tests.kube_fixtures"]

CONFIG = GVK("", "v1", "ConfigMap")

CLASSIFIER = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: Classifier
metadata: {name: gpu}
spec:
  classifierLabels: [{key: accelerator, value: nvidia}]
  deployedResourceConstraint:
    resourceSelectors:
    - {group: "", version: v1, kind: ConfigMap, labelFilters: [
        {key: device, operation: Equal, value: gpu}]}
    aggregatedClassification: |
      function evaluate()
        if #resources > 1 then error('two devices') end
        return {matching = #resources == 1}
      end
"""


def device(kube: KubeClient, name: str) -> None:
    """Have somebody write what the Classifier looks for."""
    metadata = {"name": name, "namespace": "default", "labels": {"device": "gpu"}}
    kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def label(fleet: Fleet) -> str | None:
    """Have the cluster swept, let the grace pass, and return the label that it has."""
    for wait in (timedelta(minutes=5), GRACE + timedelta(seconds=1)):
        fleet.clock.advance(wait)
        fleet.publisher.publish([Resync(EAST)])
        fleet.pump()
    kept = fleet.records.clusters.get(EAST)
    assert kept
    return kept.value.labels.get("accelerator")


def test_a_script_that_fails_leaves_the_label_and_says_why(fleet: Fleet, kube: KubeClient) -> None:
    """An error is no answer: only a script that answers gives and takes."""
    fleet.apply(CLASSIFIER)
    assert label(fleet) is None

    device(kube, "first")
    assert label(fleet) == "nvidia"

    device(kube, "second")
    assert label(fleet) == "nvidia"
    told = [each.sentence for each in failures(fleet.installation())]
    assert any("two devices" in each for each in told), told

    for name in ("first", "second"):
        kube.remove(CONFIG, "default", name)
    assert label(fleet) is None
