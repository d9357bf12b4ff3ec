"""A dependency that is deployed to more clusters than it selects is told, with their number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.api.kinds import parse_all, read_documents
from bellhop.diagnosis.dependencies import warn_of_dependencies
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import join, profile

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
    before = list(warn_of_dependencies(fleet.declare.rehearse_catalog(declared), declared))
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
    """Nor of one that has no selector: it is there for its dependents alone."""
    wide = profile(PROD, name="wide")
    bare = profile("clusterRefs: []", name="bare")
    app = profile(FEW, name="app", more="dependsOn: [wide, bare, absent]")

    assert warnings(fleet, wide, bare, app) == []


def test_follows_dependencies_of_dependencies(fleet: Fleet) -> None:
    """What the first depends on by another comes along, too."""
    first = profile(FEW, name="first")
    second = profile(FEW, name="second", more="dependsOn: [first]")
    third = profile(PROD, name="third", more="dependsOn: [second]")

    found = warnings(fleet, join(first, second, third))

    assert [each.partition(",")[0] for each in found] == [
        "ClusterProfile 'third' depends on 'first'",
        "ClusterProfile 'third' depends on 'second'",
    ]


def test_says_no_more_than_a_few_sentences(fleet: Fleet) -> None:
    """Of very many the number is told."""
    base = profile(FEW, name="base")
    apps = [profile(PROD, name=f"a{n:02}", more="dependsOn: [base]") for n in range(12)]

    found = warnings(fleet, base, *apps)

    assert len(found) == 11
    assert found[-1] == "2 more dependencies are deployed to clusters that they do not select"
