"""Promotions as they are applied: what is refused, and what is warned of."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from bellhop.api.kinds import InvalidDocuments, parse_all, read_documents
from bellhop.diagnosis.warnings import list_warnings
from bellhop.errors import InvalidError
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import profile
from tests.unit.promotions.conftest import auto, manual, promotion

LAST = {"name": "production"}


def warnings(fleet: Fleet, text: str) -> str:
    declared = parse_all(read_documents(text, source="agent.yaml"))
    return "\n".join(list_warnings(fleet.installation(), declared))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (promotion(auto("staging"), auto("staging")), "two stages have the name 'staging'"),
        (promotion({"name": "staging", "trigger": {}}, LAST), "either auto or manual"),
        (
            promotion({"name": "staging", "trigger": {"auto": {}, "manual": {}}}, LAST),
            "either auto or manual",
        ),
        (promotion(auto("staging", delay="soon"), LAST), "'soon' is not a duration"),
        (
            promotion(auto("staging", promotionWindow={"from": "x", "to": "0 1 * * *"}), LAST),
            "it needs five fields",
        ),
        (
            promotion(
                auto("staging", promotionWindow={"from": "0 1 * * *", "to": "0 1 * * *"}), LAST
            ),
            "is never open",
        ),
        (
            promotion(auto("staging", preHealthCheckDeployment={"configMapRefs": []}), LAST),
            "instead of configMapRefs",
        ),
        (
            promotion(
                auto(
                    "staging",
                    postDelayHealthChecks=[
                        {"name": "idle", "featureID": "Resources", "version": "v1", "kind": "Pod"}
                    ],
                ),
                LAST,
            ),
            "asks nothing, and would always pass",
        ),
        (
            promotion(auto("staging"), LAST, profileSpec={"dependsOn": ["agent-staging"]}),
            "which is a stage of this promotion",
        ),
        (
            promotion(auto("staging"), LAST, annotations={"bellhop.dev/max-failures": "some"}),
            "bellhop.dev/max-failures']: this is neither a number",
        ),
        (
            promotion(auto("staging"), LAST, annotations={"bellhop.dev/on-failure": "panic"}),
            "'panic' is neither 'hold' nor 'rollback'",
        ),
        (promotion(), "this list must not be empty"),
        (
            promotion(auto("staging"), LAST, profileSpec={"clusterSelector": {}}),
            "clusterSelector",
        ),
    ],
)
def test_a_mistake_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(InvalidDocuments) as caught:
        parse_all(read_documents(text, source="agent.yaml"))
    assert said in str(caught.value)
    assert "agent.yaml, document 1, line" in str(caught.value)


def test_a_name_that_a_profile_has_is_refused(fleet: Fleet) -> None:
    fleet.apply(profile(name="agent-staging"))
    with pytest.raises(InvalidError, match="a name that ClusterProfile 'agent-staging' has"):
        fleet.apply(promotion(auto("staging"), LAST))


def test_a_profile_under_the_name_of_a_stage_is_refused(fleet: Fleet) -> None:
    fleet.apply(promotion(auto("staging"), LAST))
    with pytest.raises(InvalidError, match="a stage of ClusterPromotion 'agent' has that name"):
        fleet.apply(profile(name="agent-staging"))


def test_two_promotions_of_which_stages_have_one_name_are_refused(fleet: Fleet) -> None:
    fleet.apply(promotion(auto("staging"), LAST))
    other = yaml.safe_load(promotion({"name": "west-staging"}))
    other["metadata"]["name"] = "agent"
    renamed: dict[str, Any] = yaml.safe_load(promotion({"name": "b-c"}))
    renamed["metadata"]["name"] = "a"
    same = yaml.safe_load(promotion({"name": "c"}))
    same["metadata"]["name"] = "a-b"
    fleet.apply(yaml.safe_dump(renamed))
    with pytest.raises(InvalidError, match="a name that ClusterPromotion 'a' has"):
        fleet.apply(yaml.safe_dump(same))


def test_a_trigger_of_the_last_stage_is_warned_of(fleet: Fleet) -> None:
    said = warnings(fleet, promotion(auto("staging"), auto("production")))
    assert "the trigger of stage 'production' of ClusterPromotion 'agent' has no effect" in said


def test_a_cluster_of_two_stages_is_warned_of(fleet: Fleet) -> None:
    fleet.register("both", env="staging", tier="gold")
    gold = {"name": "gold", "clusterSelector": {"matchLabels": {"tier": "gold"}}}
    said = warnings(fleet, promotion(manual("staging"), gold))
    assert "cluster 'fleet/both' is selected by the stages staging and gold" in said


def test_a_check_that_returns_a_status_is_warned_of(fleet: Fleet) -> None:
    check = {
        "name": "old",
        "featureID": "Resources",
        "version": "v1",
        "kind": "Pod",
        "script": 'function evaluate()\n  return {status = "Healthy"}\nend\n',
    }
    said = warnings(fleet, promotion(auto("staging", postDelayHealthChecks=[check]), LAST))
    assert "returns a status, which does not count as healthy" in said


def test_long_names_are_cut() -> None:
    text = promotion({"name": "s" * 60}, {"name": "s" * 59 + "t"})
    [declared] = parse_all(read_documents(text, source="agent.yaml"))
    names = [each.name for each in declared.profiles]  # type: ignore[attr-defined]
    assert len({*names}) == 2
    assert max(map(len, names)) == 63
