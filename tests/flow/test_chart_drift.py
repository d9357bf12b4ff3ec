"""What others change of a Helm release is corrected once its objects send events."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.adapters.programs.layer import download
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.registration.forwarder_manifests import CHARTS
from tests.fakes.chart import CONFIG_MAP, packed, repository
from tests.flow.conftest import Flow
from tests.waiting import eventually

CONFIG = ObjectKey(GVK("", "v1", "ConfigMap"), "apps", "web-config")
ACCOUNT = ObjectKey(GVK("", "v1", "ServiceAccount"), "apps", "web-account")
WEBHOOKS = ObjectKey(
    GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    "",
    "bellhop-forwarder",
)
CHART = {
    "templates/config.yaml": CONFIG_MAP,
    "templates/account.yaml": """apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}-account}
""",
}
PROFILE = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: web}}
spec:
  syncMode: ContinuousWithDriftDetection
  clusterSelector: {{matchLabels: {{env: production}}}}
  helmCharts:
  - repositoryURL: {repository}
    repositoryName: charts
    chartName: charts/web
    chartVersion: 1.0.0
    releaseName: web
    releaseNamespace: apps
    values: |
      greeting: {greeting}
"""


class Deployed:
    """A release in the source cluster, and the people who run kubectl and Helm there."""

    def __init__(self, flow: Flow, folder: Path, address: str) -> None:
        self.flow = flow
        self._folder = folder
        self._address = address
        flow.source_cluster.kubeconfig(folder / "kubeconfig")

    def apply(self, greeting: str) -> None:
        """Apply the profile, and wait until its release has its values."""
        file = self._folder / "web.yaml"
        file.write_text(PROFILE.format(repository=self._address, greeting=greeting))
        self.flow.stand.do("apply", "-f", str(file))
        eventually(f"the release says {greeting}", lambda: self.greeting() == greeting)

    def greeting(self) -> str:
        found = self.flow.source.get(CONFIG) or {"data": {}}
        return str(found["data"].get("greeting"))

    def sends_events(self) -> bool:
        found = self.flow.source.get(WEBHOOKS) or {"webhooks": []}
        return any(each["name"] == CHARTS for each in found["webhooks"])

    def helm(self, *arguments: str) -> bool:
        """Run Helm as a user does, and say whether it succeeded: not while another Helm runs."""
        environment = {"HOME": str(self._folder), "KUBECONFIG": str(self._folder / "kubeconfig")}
        command = [download() / "helm", *arguments, "--namespace=apps"]
        ended = subprocess.run(command, env=environment, check=False, capture_output=True)
        print(ended.stderr.decode())
        return ended.returncode == 0


@pytest.fixture
def web(flow: Flow, tmp_path: Path) -> Iterator[Deployed]:
    """Deploy a release in two revisions, and wait until its objects send events."""
    with repository(packed(tmp_path, "web", files=CHART)) as site:
        one = Deployed(flow, tmp_path, site.address)
        one.apply("one")
        one.apply("two")
        eventually("the webhook for charts is there", one.sends_events)
        eventually("a change is corrected", lambda: corrected(one), patience=90)
        yield one


def corrected(web: Deployed) -> bool:
    """Change an object of the release, and say whether it soon is as the chart has it."""
    # The same value again would change nothing, and send no event.
    web.flow.source.patch(CONFIG, {"data": {"greeting": f"theirs {time.monotonic()}"}})
    try:
        eventually("the greeting is the chart's", lambda: web.greeting() == "two", patience=10)
    except AssertionError:
        return False
    return True


def test_what_others_change_of_a_release_is_corrected_by_events(web: Deployed) -> None:
    """Objects that are deleted, a release that is rolled back, and one that is uninstalled.

    No resync is due for minutes.
    """
    web.flow.source.delete(CONFIG)
    eventually("a deleted ConfigMap is there again", lambda: web.greeting() == "two")
    web.flow.source.delete(ACCOUNT)
    eventually("a deleted ServiceAccount is there again", lambda: web.flow.source.get(ACCOUNT))

    web.apply("three")
    eventually("it is rolled back", lambda: web.helm("rollback", "web"))
    eventually("a release that was rolled back is deployed", lambda: web.greeting() == "three")

    eventually("it is uninstalled", lambda: web.helm("uninstall", "web"))
    eventually("a release that was uninstalled is installed", lambda: web.greeting() == "three")


def test_a_change_of_values_waits_for_no_event_of_helm(web: Deployed) -> None:
    """Each upgrade sends events of its own while it holds the lease of the profile."""
    for greeting in ("three", "four", "five"):
        web.apply(greeting)
