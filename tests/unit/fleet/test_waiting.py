"""What people are told of profiles that wait for others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.api.kinds import EventTrigger, parse
from bellhop.diagnosis import profile_manifests
from bellhop.diagnosis.explain.trigger import explain_trigger
from bellhop.diagnosis.failures import failures
from bellhop.diagnosis.overview import statuses
from bellhop.documents.document import Document
from tests.fakes.fleet import Fleet, service
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)

BEHIND = join(
    source(),
    trigger(more="dependsOn: [base]"),
    holder("made", config(FOR_EACH), annotations=INSTANTIATE),
)
MISSING = "it comes after ClusterProfile 'base', which is not there: apply it, or correct the name"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """An installation in which what an event brings waits for a profile that is missing."""
    one = Fleet(tmp_path)
    one.register("east", env="production")
    one.apply(BEHIND)
    one.pump()
    one.write("east", service("web"))
    one.pump()
    yield one
    one.close()


def test_failures_say_for_whom_a_profile_waits(fleet: Fleet) -> None:
    """As long as it does; that is no failed deployment."""
    here = fleet.installation()
    [told] = failures(here)
    assert told.what == "waiting"
    assert MISSING in told.sentence
    assert "failed" not in told.sentence
    [status] = statuses(here, "made")
    assert status.state == "Provisioning"

    fleet.write("east", service("shop"))
    fleet.pump()
    [told] = failures(here)
    assert told.several == 2

    fleet.apply(profile(name="base"), holder("base", config("base")))
    fleet.pump()
    assert list(failures(here)) == []


def test_explain_says_for_whom_a_profile_waits(fleet: Fleet) -> None:
    """It waits, and the cure names what it comes after."""
    told = explain_trigger(fleet.installation(), "made", lambda: True)
    [link] = [each for each in told.links if each.step == "destination"]

    assert link.state == "waits"
    assert "waits for its turn" in link.said
    assert MISSING in link.cure


def test_a_generated_profile_is_shown_with_its_order(fleet: Fleet) -> None:
    """As the ClusterProfile that Sveltos' users know, which can be read back."""
    [status] = statuses(fleet.installation(), "made")
    shown = profile_manifests.manifest(status.profile, "watched")

    assert shown["spec"]["dependsOn"] == ["base"]
    again = parse(Document(shown, "test"))
    assert not isinstance(again, EventTrigger)
    assert again.spec.depends_on == ("base",)  # type: ignore[attr-defined]
