"""`bellhop pause` and `bellhop resume` as they are typed."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.api.kinds import DeclarationKey
from bellhop.core import sveltos_annotations
from bellhop.installation.installation import Installation
from tests.fakes.manifests import config, holder, join, profile, trigger
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

OWN = DeclarationKey("ClusterProfile", "", "own")
TEAM = DeclarationKey("Profile", "team", "own")


def annotations(here: Installation, key: DeclarationKey) -> dict[str, Any]:
    kept = here.records.manifests.get(*key)
    assert kept
    found: dict[str, Any] = kept.value["metadata"].get("annotations", {})
    return found


@pytest.mark.parametrize(
    ("words", "key", "name"),
    [
        (["own"], OWN, sveltos_annotations.PROFILE_PAUSED),
        (["ClusterProfile/own"], OWN, sveltos_annotations.PROFILE_PAUSED),
        (["team/own"], TEAM, sveltos_annotations.PROFILE_PAUSED),
        (
            ["trigger", "made"],
            DeclarationKey("EventTrigger", "", "made"),
            sveltos_annotations.TRIGGER_PAUSED,
        ),
    ],
)
def test_pauses_and_resumes(
    bellhop: Bellhop, here: Installation, words: list[str], key: DeclarationKey, name: str
) -> None:
    """Each by its own annotation; again changes nothing, and resuming leaves nothing behind."""
    text = join(profile(), profile(namespace="team"), trigger(), holder("own", config("x")))
    fleet.declare(here, text)
    before = here.records.manifests.get(*key)
    assert before

    assert bellhop("pause", *words).stdout == f"{key.kind} '{key.place}' paused.\n"
    assert annotations(here, key) == {name: "true"}
    assert bellhop("pause", *words).stdout == f"{key.kind} '{key.place}' is paused already.\n"

    assert bellhop("resume", *words).stdout == f"{key.kind} '{key.place}' resumed.\n"
    assert bellhop("resume", *words).stdout == f"{key.kind} '{key.place}' is not paused.\n"
    after = here.records.manifests.get(*key)
    assert after
    assert after.value == before.value


def test_a_triggers_name_alone_pauses_it(bellhop: Bellhop, here: Installation) -> None:
    """Where no profile has that name, and it is said that it is a trigger."""
    fleet.declare(here, join(trigger(), holder("own", config("x"))))
    result = bellhop("pause", "made")
    key = DeclarationKey("EventTrigger", "", "made")

    assert result.stdout == "EventTrigger 'made' paused.\n"
    assert "'made' is a trigger" in result.stderr
    assert annotations(here, key) == {sveltos_annotations.TRIGGER_PAUSED: "true"}
    assert bellhop("resume", "made").stdout == "EventTrigger 'made' resumed.\n"
    assert annotations(here, key) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent"], "cannot pause ClusterProfile 'absent': there is none"),
        (["a/absent"], "cannot pause Profile 'a/absent': there is none"),
        (["trigger", "absent"], "cannot pause trigger 'absent': there is none"),
        ([fleet.PROFILE], "`bellhop pause trigger service-network-policy`"),
        (["trigger"], "name one profile, or `trigger` or `cluster` and its name"),
        (["cluster"], "name one profile, or `trigger` or `cluster` and its name"),
        (["a", "b"], "name one profile, or `trigger` or `cluster` and its name"),
        (["cluster", "fleet/absent"], "no cluster 'fleet/absent'"),
        (["a/b/c"], "'a/b/c' is not a profile"),
        ([], "name one profile, or `trigger` or `cluster` and its name"),
    ],
)
def test_says_what_cannot_be_paused(
    bellhop: Bellhop, here: Installation, words: list[str], said: str
) -> None:
    """A profile that a trigger makes is none that can be: its trigger is named."""
    fleet.populate(here)
    result = bellhop("pause", *words)

    assert result.exit_code != 0
    assert said in " ".join(result.stderr.split())
