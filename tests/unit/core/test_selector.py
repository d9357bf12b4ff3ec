"""Selectors of both eras are one thing, and an empty one selects nothing."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bellhop.core.selector import Requirement, Selector

KEYS = st.from_regex(
    r"([a-z]{1,4}\.[a-z]{1,3}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?", fullmatch=True
)
VALUES = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?)?", fullmatch=True)
LISTS = st.lists(VALUES, min_size=1, max_size=3).map(lambda values: tuple(sorted(set(values))))
REQUIREMENTS = st.one_of(
    st.builds(Requirement, KEYS, st.sampled_from(["In", "NotIn"]), LISTS),
    st.builds(Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"]), st.just(())),
)


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("  ", [], id="blank"),
        pytest.param("env=fv", [("env", "In", ("fv",))], id="equal"),
        pytest.param("env==fv", [("env", "In", ("fv",))], id="doubly equal"),
        pytest.param(" env = fv ", [("env", "In", ("fv",))], id="spaces"),
        pytest.param("env=", [("env", "In", ("",))], id="equal to nothing"),
        pytest.param("env!=fv", [("env", "NotIn", ("fv",))], id="different"),
        pytest.param("env", [("env", "Exists", ())], id="exists"),
        pytest.param("!env", [("env", "DoesNotExist", ())], id="does not exist"),
        pytest.param("! env", [("env", "DoesNotExist", ())], id="does not exist, with a space"),
        pytest.param("env in (b,a)", [("env", "In", ("a", "b"))], id="in"),
        pytest.param("env in(a)", [("env", "In", ("a",))], id="in without a space"),
        pytest.param("env notin ( a , b )", [("env", "NotIn", ("a", "b"))], id="notin"),
        pytest.param("env in ()", [("env", "In", ("",))], id="in nothing"),
        pytest.param("env in (,a)", [("env", "In", ("", "a"))], id="in nothing or a"),
        pytest.param("in in (in)", [("in", "In", ("in",))], id="words as keys"),
        pytest.param(
            "a.b/c=d,!e,f notin (g),h",
            [
                ("a.b/c", "In", ("d",)),
                ("e", "DoesNotExist", ()),
                ("f", "NotIn", ("g",)),
                ("h", "Exists", ()),
            ],
            id="several",
        ),
    ],
)
def test_reads_selector_strings(text: str, requirements: list[Any]) -> None:
    """Kubernetes' selector syntax means what it means to kubectl."""
    assert list(Selector.parse(text).requirements) == requirements


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("env in (", "has the end where a label's value should be", id="open list"),
        pytest.param("env in a", "has 'a' where '(' should be", id="no list"),
        pytest.param("env in (a b)", "has 'b' where ',' or ')' should be", id="no comma in list"),
        pytest.param("env=a b", "has 'b' where a comma or the end should be", id="no comma"),
        pytest.param("a,", "has the end where a label's key should be", id="comma at the end"),
        pytest.param(",a", "has ',' where a label's key should be", id="comma at the start"),
        pytest.param("=a", "has '=' where a label's key should be", id="no key"),
        pytest.param("!", "has the end where a label's key should be", id="nothing to miss"),
        pytest.param("!a=b", "has '=' where a comma or the end should be", id="not and equal"),
        pytest.param("a ~ b", "has '~' where one of = == != in notin should be", id="operator"),
        pytest.param("a=(b)", "has '(' where a label's value should be", id="list after ="),
        pytest.param("a>1", "compares by size, which labels cannot", id="greater"),
        pytest.param("a lt 1", "compares by size, which labels cannot", id="lt"),
        pytest.param("-a=b", "'-a' is not a key", id="bad key"),
        pytest.param("x/y/z", "what stands before '/' must be a DNS name", id="bad prefix"),
        pytest.param("a=b/c", "'b/c' is not a label's value", id="bad value"),
        pytest.param(f"a={'b' * 64}", "at most 63 characters, this one has 64", id="long value"),
        pytest.param(f"{'b' * 64}=a", "at most 63 characters, this one has 64", id="long key"),
    ],
)
def test_refuses_selector_strings(text: str, sentence: str) -> None:
    """What is wrong with a selector is said with the selector's own words."""
    with pytest.raises(ValidationError) as raised:
        Selector.parse(text)

    assert sentence in str(raised.value)


@settings(deadline=None)
@given(st.lists(REQUIREMENTS, min_size=1, max_size=4))
def test_strings_round_trip(requirements: list[Requirement]) -> None:
    """A selector written as a string reads back as the same selector."""
    text = ",".join(map(str, requirements))
    selector = Selector.parse(text)

    assert set(selector.requirements) == set(requirements)
    assert Selector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        pytest.param("env=fv", {"env": "fv", "x": "y"}, True, id="equal"),
        pytest.param("env=fv", {"env": "qa"}, False, id="another value"),
        pytest.param("env=fv", {}, False, id="missing"),
        pytest.param("env=", {}, False, id="missing is not empty"),
        pytest.param("env!=fv", {}, True, id="missing is different"),
        pytest.param("env notin (a,b)", {"env": "b"}, False, id="notin"),
        pytest.param("env notin (a,b)", {}, True, id="notin, missing"),
        pytest.param("env", {"env": ""}, True, id="exists"),
        pytest.param("!env", {"env": ""}, False, id="exists, and should not"),
        pytest.param("a=1,b=2", {"a": "1"}, False, id="every requirement counts"),
        pytest.param("", {"env": "fv"}, False, id="empty selects nothing"),
        pytest.param({}, {"env": "fv"}, False, id="empty object selects nothing"),
        pytest.param({"matchLabels": {}}, {}, False, id="empty matchLabels select nothing"),
        pytest.param({"matchLabels": {"env": "fv"}}, {"env": "fv"}, True, id="matchLabels"),
        pytest.param(
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [{"key": "b", "operator": "In", "values": ["x", "y"]}],
            },
            {"a": "1", "b": "y"},
            True,
            id="both parts",
        ),
    ],
)
def test_matches(selector: Any, labels: dict[str, str], matches: bool) -> None:  # noqa: FBT001 - a table's column
    """Labels match when every requirement is met and there is one."""
    assert Selector.model_validate(selector).matches(labels) is matches


def test_an_empty_selector_is_distinguished() -> None:
    """Empty matches no cluster, but refuses no object that something else selected."""
    empty = Selector()

    assert (empty.empty, empty.matches({"a": "b"}), empty.admits({"a": "b"})) == (True, False, True)
    assert not Selector.parse("a").empty


def test_both_eras_write_the_same_selector() -> None:
    """A selector does not depend on how it was written, nor in which order."""
    written = [
        Selector.parse("tier in (b,a),env=fv"),
        Selector.parse("env==fv,tier in (a,b,a)"),
        Selector.model_validate(
            {
                "matchLabels": {"env": "fv"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}],
            }
        ),
    ]

    assert len(set(written)) == 1
    assert str(written[2]) == "env=fv,tier in (a,b)"
    assert written[0] != "env=fv,tier in (a,b)"
