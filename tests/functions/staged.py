"""A promotion through three stages, in two clusters of which one is registered twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.state.delays import promotion_timer
from bellhop.state.promotion import StageState
from infra.demo.user import User
from infra.lab.cluster import Cluster
from tests.functions.owner import Owner

NAME = "agent"
STAGES = ("staging", "canary", "production")
DELAY = "3s"

# Two stages are in one API server: the object has the name of its stage's cluster.
PROMOTION = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterPromotion
metadata: {{name: agent}}
spec:
  profileSpec:
    policyRefs: [{{kind: ConfigMap, namespace: default, name: agent}}]
  stages:
  - name: staging
    clusterSelector: {{matchLabels: {{stage: staging}}}}
    trigger: {{auto: {{delay: {delay}}}}}
  - name: canary
    clusterSelector: {{matchLabels: {{stage: canary}}}}
    trigger: {{manual: {{}}}}
  - name: production
    clusterSelector: {{matchLabels: {{stage: production}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: agent, namespace: default, annotations: {{projectsveltos.io/template: ok}}}}
data:
  objects.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: "agent-{{{{ .Cluster.metadata.name }}}}", namespace: default}}
    data: {{version: "{version}"}}
"""


class StagedFleet:
    """Three clusters, a stage each, and a command line."""

    def __init__(
        self,
        owner: Owner,
        clusters: tuple[Cluster, Cluster],
        run: Callable[..., Result],
        folder: Path,
    ) -> None:
        self.records = owner.here.records
        self._run = run
        self._file = folder / "agent.yaml"
        self._users = [User(each.kubeconfig()) for each in clusters]
        kubeconfigs = [each.kubeconfig() for each in (*clusters, clusters[0])]
        for stage, kubeconfig in zip(STAGES, kubeconfigs, strict=True):
            owner.register(stage, kubeconfig, stage=stage)

    def do(self, *words: str, **environment: str) -> str:
        """Run a command, and return what it prints."""
        done = self._run(*words, **environment)
        assert done.exit_code == 0, done.output
        return done.output

    def apply(self, version: str) -> None:
        """Apply the promotion with a version of what it deploys."""
        self._file.write_text(PROMOTION.format(delay=DELAY, version=version))
        self.do("apply", "-f", str(self._file))

    def read(self, stage: str) -> tuple[str, str]:
        """Return the version that a stage's cluster has, and the last write of the object."""
        user = self._users[STAGES.index(stage) % len(self._users)]
        key = ObjectKey(GVK("", "v1", "ConfigMap"), "default", f"agent-{stage}")
        found = user.get(key)
        if found is None:
            return "", ""
        return found["data"]["version"], found["metadata"]["resourceVersion"]

    def has(self, stage: str, version: str) -> bool:
        """Return whether a stage's cluster has a version."""
        return self.read(stage)[0] == version

    def stage(self, name: str) -> StageState:
        """Return the state of a stage."""
        kept = self.records.promotions.get(NAME)
        return kept.value.stage(name) if kept else StageState(name)

    def is_in(self, stage: str, phase: str, release: int) -> bool:
        """Return whether a stage has a phase, with a release."""
        found = self.stage(stage)
        return (found.phase, found.release) == (phase, release)

    def is_due(self) -> bool:
        """Return whether the delay of a stage is over."""
        kept = self.records.timers.get(promotion_timer(NAME))
        return kept is not None and kept.value.at <= self.records.clock.now()

    def close(self) -> None:
        """Close the connections."""
        for each in self._users:
            each.close()
