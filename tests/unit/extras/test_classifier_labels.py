"""Labels that classifiers give, and the owner of each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from bellhop.api.classifier import Classifier
from bellhop.api.kinds import of
from bellhop.extras.classifiers.labels import MOST_GIVEN, carry, give
from bellhop.state.cluster import MOST_LABELS, Cluster
from tests.fakes.clock import START


def classifier(name: str, **labels: str) -> Classifier:
    found = of(
        {
            "apiVersion": "lib.projectsveltos.io/v1beta1",
            "kind": "Classifier",
            "metadata": {"name": name},
            "spec": {
                "classifierLabels": [{"key": key, "value": labels[key]} for key in labels],
            },
        }
    )
    assert isinstance(found, Classifier)
    return found


def cluster(labels: Mapping[str, str], given: Mapping[str, str]) -> Cluster:
    return Cluster("fleet", "east", labels, "v1.34.2", "", START, given=given)


BOTH = {"a": classifier("a", tier="one"), "b": classifier("b", tier="two", zone="z")}


@pytest.mark.parametrize(
    ("labels", "given", "matching", "staying", "after", "whose"),
    [
        pytest.param({}, {}, "a", "", {"tier": "one"}, {"tier": "a"}, id="one gives its label"),
        pytest.param(
            {}, {}, "ba", "", {"tier": "one", "zone": "z"}, {"tier": "a", "zone": "b"}, id="by name"
        ),
        pytest.param(
            {"tier": "two"},
            {"tier": "b"},
            "ab",
            "",
            {"tier": "two", "zone": "z"},
            {"tier": "b", "zone": "b"},
            id="who has it keeps it",
        ),
        pytest.param({"tier": "x"}, {}, "a", "", {"tier": "x"}, {}, id="what somebody set stays"),
        pytest.param({"tier": "one"}, {}, "a", "", {"tier": "one"}, {}, id="be it the same"),
        pytest.param({"tier": "one", "x": "y"}, {"tier": "a"}, "", "", {"x": "y"}, {}, id="taken"),
        pytest.param(
            {"tier": "one"}, {"tier": "a"}, "", "a", {"tier": "one"}, {"tier": "a"}, id="stays"
        ),
        pytest.param({}, {}, "", "a", {}, {}, id="who stays gives nothing new"),
        pytest.param(
            {"old": "1"}, {"old": "a"}, "a", "", {"tier": "one"}, {"tier": "a"}, id="renamed"
        ),
        pytest.param({"old": "1"}, {"old": "gone"}, "", "", {}, {}, id="of one that is no more"),
        pytest.param(
            {"tier": "two"},
            {"tier": "b"},
            "a",
            "",
            {"tier": "one"},
            {"tier": "a"},
            id="handed over",
        ),
    ],
)
def test_gives(
    labels: Mapping[str, str],
    given: Mapping[str, str],
    matching: str,
    staying: str,
    after: Mapping[str, str],
    whose: Mapping[str, str],
) -> None:
    """And gives the same again when nothing has changed."""
    found = give(cluster(labels, given), BOTH, matching, staying).cluster

    assert (found.labels, found.given) == (after, whose)
    assert give(found, BOTH, matching, staying).cluster == found


def test_says_what_it_does_not_give() -> None:
    """Each label with why: another's, somebody's, or one too many."""
    many = {f"l{number}": "x" for number in range(MOST_LABELS)}
    others = {f"g{number}": f"c{number}" for number in range(MOST_GIVEN)}
    there = {name: classifier(name, **{key: "x"}) for key, name in others.items()} | BOTH

    def lacks(labels: Mapping[str, str], given: Mapping[str, str], *names: str) -> Sequence[str]:
        return list(give(cluster(labels, given), there, names).lacks.values())

    assert lacks({}, {}, "a", "b") == ["classifier 'a' gives it"]
    assert lacks({"tier": "x"}, {}, "a") == ["somebody has set it, and it stays"]
    assert lacks(many, {}, "a") == ["the cluster has 256 labels, and may have no more"]
    assert lacks(dict.fromkeys(others, "x"), others, "a", *others.values()) == [
        "classifiers give the cluster 64 labels, and may give no more"
    ]


def test_registering_again_keeps_what_classifiers_gave() -> None:
    """Unless it is asked for: that is somebody's own from then on."""
    old = cluster({"env": "test", "tier": "one", "zone": "z"}, {"tier": "a", "zone": "b"})

    assert carry(old, {"env": "prod"}) == (
        {"tier": "one", "zone": "z", "env": "prod"},
        {"tier": "a", "zone": "b"},
    )
    assert carry(old, {"tier": "mine"}) == ({"zone": "z", "tier": "mine"}, {"zone": "b"})
    assert carry(old, None) == (old.labels, old.given)
    assert carry(None, {"env": "prod"}) == ({"env": "prod"}, {})
    assert carry(None, None) == ({}, {})
