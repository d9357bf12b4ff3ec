"""Profiles that wait for others, and warnings of dependencies that select fewer clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.api.kinds import EventTrigger, parse, parse_all, read_documents
from bellhop.diagnosis import profile_manifests
from bellhop.diagnosis.explain.trigger import explain_trigger
from bellhop.diagnosis.failures import list_failures
from bellhop.diagnosis.profile_status import read_statuses
from bellhop.diagnosis.warnings import warn_of_dependencies
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
def waiting(tmp_path: Path) -> Iterator[Fleet]:
    """An installation where the profile of an event waits for a missing one."""
    one = Fleet(tmp_path)
    one.register("east", env="production")
    one.apply(BEHIND)
    one.pump()
    one.write("east", service("web"))
    one.pump()
    yield one
    one.close()


def test_failures_name_what_a_profile_waits_for(waiting: Fleet) -> None:
    """As long as it does; that is no failed deployment."""
    here = waiting.installation()
    [failures] = list_failures(here)
    assert failures.type == "waiting"
    assert MISSING in failures.message
    assert "failed" not in failures.message
    [status] = read_statuses(here, "made")
    assert status.state == "Provisioning"

    waiting.write("east", service("shop"))
    waiting.pump()
    [failures] = list_failures(here)
    assert failures.count == 2

    waiting.apply(profile(name="base"), holder("base", config("base")))
    waiting.pump()
    assert list(list_failures(here)) == []


def test_explain_names_what_a_profile_waits_for(waiting: Fleet) -> None:
    """It waits, and the cure names what it comes after."""
    explanation = explain_trigger(waiting.installation(), "made", lambda: True)
    [link] = [each for each in explanation.links if each.type == "destination"]

    assert link.status == "waits"
    assert "waits for its turn" in link.message
    assert MISSING in link.cure


def test_a_generated_profile_is_shown_with_its_order(waiting: Fleet) -> None:
    """As the ClusterProfile that Sveltos' users know, which can be read back."""
    [status] = read_statuses(waiting.installation(), "made")
    shown = profile_manifests.manifest(status.profile, "watched")

    assert shown["spec"]["dependsOn"] == ["base"]
    again = parse(Document(shown, "test"))
    assert not isinstance(again, EventTrigger)
    assert again.spec.depends_on == ("base",)  # type: ignore[attr-defined]


# Warnings -----------------------------------------------------------------------------------------


PROD = "clusterSelector: {matchLabels: {env: production}}"
FEW = "clusterSelector: {matchLabels: {canary: 'yes'}}"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """An installation with five clusters, one of which is a canary."""
    one = Fleet(tmp_path)
    for number in range(4):
        one.register(f"c{number}", env="production")
    one.register("c4", env="production", canary="yes")
    yield one
    one.close()


def warnings(fleet: Fleet, *texts: str) -> list[str]:
    """Return what a dry run says of documents, and see that applying them says the same."""
    declared = parse_all([x for text in texts for x in read_documents(text, source="test")])
    before = list(warn_of_dependencies(fleet.declare.preview_catalog(declared), declared))
    fleet.apply(*texts)
    assert list(warn_of_dependencies(fleet.catalogs.known(), declared)) == before
    return before


def test_names_the_clusters_that_a_dependency_does_not_select(fleet: Fleet) -> None:
    """With their number, whichever of both is applied last."""
    sentence = (
        "ClusterProfile 'app' depends on 'base', which selects 1 of its 5 clusters: dependsOn"
        " deploys 'base' to the other 4, too (fleet/c0, fleet/c1, fleet/c2, …)"
    )
    base, app = profile(FEW, name="base"), profile(PROD, name="app", more="dependsOn: [base]")

    assert warnings(fleet, base) == []
    assert warnings(fleet, app) == [sentence]
    assert warnings(fleet, base) == [sentence]


def test_says_nothing_of_dependencies_that_select_as_much(fleet: Fleet) -> None:
    """Nor of one without a selector, which is deployed with its dependents."""
    wide = profile(PROD, name="wide")
    bare = profile("clusterRefs: []", name="bare")
    app = profile(FEW, name="app", more="dependsOn: [wide, bare, absent]")

    assert warnings(fleet, wide, bare, app) == []


def test_follows_dependencies_of_dependencies(fleet: Fleet) -> None:
    first = profile(FEW, name="first")
    second = profile(FEW, name="second", more="dependsOn: [first]")
    third = profile(PROD, name="third", more="dependsOn: [second]")

    found = warnings(fleet, join(first, second, third))

    assert [each.partition(",")[0] for each in found] == [
        "ClusterProfile 'third' depends on 'first'",
        "ClusterProfile 'third' depends on 'second'",
    ]


def test_says_no_more_than_a_few_sentences(fleet: Fleet) -> None:
    """The others are counted."""
    base = profile(FEW, name="base")
    apps = [profile(PROD, name=f"a{n:02}", more="dependsOn: [base]") for n in range(12)]

    found = warnings(fleet, base, *apps)

    assert len(found) == 11
    assert found[-1] == "2 more dependencies are deployed to clusters that they do not select"
