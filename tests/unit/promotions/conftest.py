"""A promotion through three stages, for the tests that take it along."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
import yaml

from bellhop.state.promotion import PromotionState, StageState
from tests.fakes.fleet import Fleet, OpenFleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder

MOMENT = timedelta(seconds=1)
STAGES = ("staging", "canary", "production")


def promotion(
    *stages: dict[str, Any],
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> str:
    """Return a promotion of the ConfigMap `agent`; a stage without more selects `env: NAME`."""
    refs = [{"kind": "ConfigMap", "name": "agent", "namespace": "default"}]
    document = {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": "ClusterPromotion",
        "metadata": {"name": "agent", "annotations": annotations or {}},
        "spec": {
            "profileSpec": {"policyRefs": refs, **spec.pop("profileSpec", {})},
            "stages": [
                {"clusterSelector": {"matchLabels": {"env": each["name"]}}, **each}
                for each in stages
            ],
            **spec,
        },
    }
    return yaml.safe_dump(document, sort_keys=False)


def auto(name: str, **trigger: Any) -> dict[str, Any]:
    return {"name": name, "trigger": {"auto": trigger}}


def manual(name: str, **trigger: Any) -> dict[str, Any]:
    return {"name": name, "trigger": {"manual": trigger}}


def version(v: str) -> str:
    """Return the ConfigMap that a promotion deploys, in a version."""
    return holder("agent", config("agent", f"v: '{v}'"))


class Fleet3:
    """A fleet of two clusters for each of three stages."""

    def __init__(self, fleet: Fleet, clusters: Iterable[str] = ("1", "2")) -> None:
        self.fleet = fleet
        self.kubes: dict[str, FakeKube] = {}
        for stage in STAGES:
            for number in clusters:
                name = f"{stage}{number}"
                self.kubes[name] = fleet.register(name, env=stage)

    def apply(self, *texts: str) -> None:
        """Apply manifests, and work until nothing is due for a moment."""
        self.fleet.deploy(*texts)
        self.settle()

    def settle(self, rounds: int = 12) -> None:
        """Let moments pass in which statuses are counted."""
        self.fleet.wait(MOMENT, times=rounds)

    def has(self, stage: str) -> set[str]:
        """Return the versions that the clusters of a stage have."""
        kubes = (kube for name, kube in self.kubes.items() if name.startswith(stage))
        return {
            (each.get("data") or {}).get("v", "")
            for kube in kubes
            for each in kube.objects(CONFIG) or [{}]
        }

    @property
    def state(self) -> PromotionState:
        kept = self.fleet.records.promotions.get("agent")
        assert kept
        return kept.value

    def stage(self, name: str) -> StageState:
        return self.state.stage(name)

    def phases(self) -> list[str]:
        return [each.phase for each in self.state.stages]


@pytest.fixture
def staged(fleet: Fleet) -> Fleet3:
    return Fleet3(fleet)


__all__ = ["Fleet3", "OpenFleet", "auto", "manual", "promotion", "version"]
