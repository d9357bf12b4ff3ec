"""Dependencies of profiles, and where profiles go because of them."""

from __future__ import annotations

import pytest

from bellhop.api.kinds import ClusterProfile, EventTrigger, parse_all
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.dependencies import line, reached, refuse_cycle, turned
from bellhop.declarations.diff import compare_catalogs
from bellhop.documents.document import read_documents
from bellhop.errors import InvalidError
from bellhop.state.cluster import Cluster
from tests.fakes.clock import START
from tests.fakes.manifests import join, profile, trigger

CHAIN = {"a": ["b", "c"], "b": ["c"], "c": ["d"]}
NOWHERE = "clusterSelector: {}"


def catalog(*texts: str, env: str = "production") -> Catalog:
    found = parse_all(read_documents(join(*texts), source="test.yaml"))
    east = Cluster("fleet", "east", {"env": env}, "v1.20", "", START)
    profiles = [each for each in found if isinstance(each, ClusterProfile)]
    triggers = [each for each in found if isinstance(each, EventTrigger)]
    return Catalog(1, [east], [], triggers, profiles)


def after(name: str, *others: str, selected: str = NOWHERE, namespace: str = "") -> str:
    more = f"dependsOn: [{', '.join(others)}]"
    return profile(selected, name=name, namespace=namespace, more=more)


def test_what_comes_first_is_reached_however_far() -> None:
    """Each is named once, and what is not there, too."""
    assert reached(["b"], CHAIN) == {"c", "d"}
    assert reached(["d"], CHAIN) == set()
    assert reached(["d"], turned(CHAIN)) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("place", "expected"), [("a", ["d", "c", "b", "a"]), ("d", ["d"]), ("x", ["x"])]
)
def test_a_profile_stands_in_line_behind_what_comes_first(place: str, expected: list[str]) -> None:
    """Each stands behind all that it comes after."""
    assert line(place, CHAIN) == expected


def test_a_line_of_a_circle_ends() -> None:
    """Each of its profiles stands in it once."""
    assert sorted(line("a", {"a": ["b"], "b": ["c", "a"], "c": ["a"]})) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("circle", "said"),
    [
        ({"a": ["a"]}, "'a' after 'a'"),
        ({"a": ["x", "b"], "b": ["c", "a"], "c": ["a"]}, "'a' after 'b' after 'a'"),
    ],
)
def test_the_shortest_way_round_is_named(circle: dict[str, list[str]], said: str) -> None:
    """The sentence says which profiles it leads through, and what to do."""
    with pytest.raises(InvalidError, match=f"by dependsOn {said}; take one of them out"):
        refuse_cycle("a", circle)
    refuse_cycle("x", circle)


def test_who_comes_before_a_circle_is_in_none() -> None:
    """Only those that come after themselves are refused."""
    refuse_cycle("a", {"a": ["b"], "b": ["c"], "c": ["b"]})


def test_a_profile_goes_where_others_go_that_come_after_it() -> None:
    """However far, and to no cluster of which those behind it know nothing."""
    selected = "clusterSelector: {matchLabels: {env: production}}"
    texts = (after("a", "b", selected=selected), after("b", "c"), profile(NOWHERE, name="c"))
    for env, expected in (("production", ("fleet/east",)), ("test", ())):
        known = catalog(*texts, profile(NOWHERE, name="d"), env=env)
        for name in "abc":
            assert known.profile_destinations(known.profiles[name]) == expected
        assert known.profile_destinations(known.profiles["d"]) == ()


def test_it_is_known_who_is_awaited() -> None:
    """By profiles, by place, and by triggers."""
    waiting = trigger(more="dependsOn: [x, z]")
    known = catalog(after("a", "b", "b"), after("c", "d", namespace="team"), waiting)

    assert known.awaited == {"b", "team/d", "x", "z"}
    assert known.after == {"a": ("b",), "team/c": ("team/d",)}


def test_what_comes_first_is_resolved_with_what_changed() -> None:
    """Where it goes, and that it is awaited, may be otherwise now, or not be so any more."""
    with_order = catalog(after("a", "b"), after("b", "c"), profile(NOWHERE, name="c"))
    without = catalog(profile(NOWHERE, name="a"), after("b", "c"), profile(NOWHERE, name="c"))
    key = ("ClusterProfile", "", "a")

    assert compare_catalogs(without, with_order, [key]).resolved == {"a", "b", "c"}
    assert compare_catalogs(with_order, without, [key]).resolved == {"a", "b", "c"}
    assert compare_catalogs(without, without, [key]).resolved == {"a"}
    rule = ("EventTrigger", "", "made")
    waiting = catalog(trigger(more="dependsOn: [b]"), after("b", "c"))
    assert compare_catalogs(catalog(after("b", "c")), waiting, [rule]).resolved == {"b", "c"}


def test_who_waits_is_asked_when_what_comes_first_comes_or_goes() -> None:
    """A change of it asks nobody: it notifies them itself."""
    waiting = (after("a", "b"), trigger(more="dependsOn: [b]"))
    there, deleted = catalog(*waiting, profile(name="b")), catalog(*waiting)
    key = ("ClusterProfile", "", "b")

    assert compare_catalogs(deleted, there, [key]).reread == ({"made"}, {"a"})
    assert compare_catalogs(there, deleted, [key]).reread == ({"made"}, {"a"})
    assert compare_catalogs(there, there, [key]).reread == (set(), set())
