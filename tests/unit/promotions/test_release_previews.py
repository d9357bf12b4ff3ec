"""The changes that the next release of a stage would make in its clusters."""

from __future__ import annotations

import pytest

from bellhop.errors import ConflictError, MissingError, PermanentError, UnreachableError
from bellhop.operations import promotions
from bellhop.operations.pause import pause_cluster
from bellhop.operations.previews import PreviewedChange, UnknownChange, preview_now
from bellhop.operations.release_previews import NextRelease, find_next_release, preview_release
from tests.fakes.manifests import holder
from tests.unit.promotions.conftest import Fleet3, auto, manual, promotion, version
from tests.unit.promotions.test_frozen_sources import chart

LAST = {"name": "production"}
THREE = promotion(auto("staging"), manual("canary"), LAST)


def next_of(staged: Fleet3, stage: str) -> NextRelease | None:
    return find_next_release(staged.fleet.installation(), "agent", stage)


def preview(
    staged: Fleet3, stage: str, release: int, cluster: str = ""
) -> list[PreviewedChange | UnknownChange]:
    here = staged.fleet.installation()
    return list(
        preview_release(here, "agent", stage, release, cluster, lambda *_: None, live=False)
    )


def changes(staged: Fleet3, stage: str, release: int) -> list[tuple[str, str, str]]:
    """Return cluster, action and diff of each change."""
    found = preview(staged, stage, release)
    assert not [each for each in found if isinstance(each, UnknownChange)]
    return [
        (each.cluster, each.change.action, each.change.diff)
        for each in found
        if isinstance(each, PreviewedChange)
    ]


@pytest.fixture
def waiting(staged: Fleet3) -> Fleet3:
    """Release 1 is everywhere; release 2 waits at the second stage."""
    staged.apply(version("1"), THREE)
    promotions.approve(staged.fleet.installation(), "agent", by="ann")
    staged.settle()
    staged.apply(version("2"))
    assert staged.phases() == ["Promoted", "AwaitingApproval", "Promoted"]
    return staged


def test_shows_what_the_waiting_release_would_change_and_writes_nothing(waiting: Fleet3) -> None:
    before = waiting.state
    assert next_of(waiting, "production") == (2, "which is AwaitingApproval at stage 'canary'", 2)
    found = changes(waiting, "production", 2)
    assert [each[:2] for each in found] == [
        ("fleet/production1", "Update"),
        ("fleet/production2", "Update"),
    ]
    assert all("-  v: '1'" in diff and "+  v: '2'" in diff for *_, diff in found)
    assert waiting.has("production") == {"1"}
    assert waiting.state == before


def test_the_release_has_its_frozen_contents_whatever_was_edited_since(waiting: Fleet3) -> None:
    waiting.fleet.apply(version("3"))
    [(_, _, diff), _] = changes(waiting, "production", 2)
    assert "+  v: '2'" in diff


def test_what_the_stage_before_has_passed_comes_first(staged: Fleet3) -> None:
    staged.apply(version("1"), promotion(auto("staging"), LAST))
    here = staged.fleet.installation()
    staged.apply(promotion(manual("staging"), LAST))
    for name in ("production1", "production2"):
        pause_cluster(here, f"fleet/{name}", paused=True)
    for number in (2, 3):
        staged.apply(version(str(number)))
        promotions.approve(here, "agent", by="ann")
        staged.settle()
    staged.apply(version("4"))
    assert staged.stage("production").phase == "Deploying"
    assert next_of(staged, "staging") is None
    assert next_of(staged, "production") == (3, "which has passed stage 'staging'", 2)


def test_a_rejected_release_does_not_come(waiting: Fleet3) -> None:
    here = waiting.fleet.installation()
    promotions.reject(here, "agent", by="ann")
    waiting.settle()
    assert next_of(waiting, "production") is None
    waiting.apply(version("3"))
    assert next_of(waiting, "production") == (3, "which is AwaitingApproval at stage 'canary'", 2)


def test_an_earlier_stage_is_asked_if_the_one_before_has_nothing_newer(staged: Fleet3) -> None:
    staged.apply(version("1"), promotion(manual("staging"), manual("canary"), LAST))
    assert next_of(staged, "production") == (1, "which is AwaitingApproval at stage 'staging'", 2)


def test_a_stage_that_was_rolled_back_does_not_get_that_release_again(waiting: Fleet3) -> None:
    here = waiting.fleet.installation()
    promotions.approve(here, "agent", by="ann")
    waiting.settle()
    assert waiting.has("production") == {"2"}
    promotions.roll_back(here, "agent", by="ann", stage="production")
    waiting.settle()
    assert next_of(waiting, "production") is None


def test_a_cluster_that_does_not_answer_is_named_and_the_others_are_compared(
    waiting: Fleet3,
) -> None:
    waiting.kubes["production1"].fail_with(UnreachableError("is down"))
    unknown, known = preview(waiting, "production", 2)
    assert isinstance(unknown, UnknownChange)
    assert unknown.cluster == "fleet/production1"
    assert isinstance(known, PreviewedChange)
    assert known.cluster == "fleet/production2"


def test_what_is_not_there_is_named(staged: Fleet3) -> None:
    with pytest.raises(MissingError, match="there is no promotion 'agent'"):
        next_of(staged, "production")
    staged.fleet.apply(version("1"), THREE)
    with pytest.raises(ConflictError, match="promotion 'agent' has no release yet; start"):
        next_of(staged, "production")
    staged.settle()
    with pytest.raises(MissingError, match="no stage 'prod'; its stages are staging, canary"):
        next_of(staged, "prod")
    with pytest.raises(MissingError, match="would change in 'fleet/canary1': it does not select"):
        preview(staged, "production", 1, "fleet/canary1")


def test_a_release_that_cannot_be_rendered_is_no_empty_diff(staged: Fleet3) -> None:
    broken = holder("agent", "no: [yaml")
    staged.apply(broken, promotion(auto("staging"), LAST))
    with pytest.raises(PermanentError, match="cannot render release 1 of promotion 'agent' for"):
        preview(staged, "production", 1)


def test_a_chart_is_compared_as_the_release_has_it(staged: Fleet3) -> None:
    """Neither the repository is asked for it, nor is a newer chart noted."""
    fleet = staged.fleet
    fleet.repositories.put("web", "1.0.0")
    staged.apply(promotion(manual("staging"), LAST, profileSpec=chart()))
    fleet.repositories.failure = UnreachableError("the repository is down")
    pins = fleet.records.pins.of("agent")

    found = preview(staged, "production", 1)
    assert {each.cluster for each in found if isinstance(each, PreviewedChange)} == {
        "fleet/production1",
        "fleet/production2",
    }

    fleet.repositories.failure = None
    fleet.repositories.put("web", "1.0.0", "2.0.0")
    list(preview_now(fleet.installation(), "agent-staging", live=True))
    assert fleet.records.pins.of("agent") == pins


def test_a_chart_that_no_cluster_has_got_is_not_fetched(staged: Fleet3) -> None:
    fleet = staged.fleet
    fleet.repositories.put("web", "1.0.0")
    stages = {"clusterSelector": {"matchLabels": {"env": "nowhere"}}, **manual("staging")}, LAST
    staged.apply(promotion(*stages, profileSpec=chart()))
    first, _ = preview(staged, "production", 1)
    assert isinstance(first, UnknownChange)
    assert "release 1 of promotion 'agent' does not have it yet" in str(first.error)
    assert not fleet.records.pins.of("agent")
