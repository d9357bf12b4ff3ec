"""An object that a stage deploys is explained by its promotion, stage and release."""

from __future__ import annotations

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.diagnosis.releases import find_deployer
from tests.fakes.manifests import config, holder, profile
from tests.unit.promotions.conftest import Fleet3, auto, promotion, staged, version

__all__ = ["staged"]

AGENT = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "agent").identity
LAST = {"name": "production"}


def test_names_the_release_and_the_stage(staged: Fleet3) -> None:
    """A user sees why production has another version than staging."""
    staged.apply(version("1"), promotion(auto("staging", delay="1h"), LAST))
    staged.apply(version("2"))
    _, said = find_deployer(staged.fleet.installation(), "fleet/staging1", AGENT)
    assert said == (
        "ClusterProfile/agent-staging deploys it, as release 2 of stage 'staging' of"
        " ClusterPromotion 'agent'"
    )


def test_another_profile_has_no_stage(staged: Fleet3) -> None:
    staged.apply(
        holder("own", config("agent")), profile("clusterSelector: {matchLabels: {env: staging}}")
    )
    _, said = find_deployer(staged.fleet.installation(), "fleet/staging1", AGENT)
    assert said == "ClusterProfile/own deploys it"
