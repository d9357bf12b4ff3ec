"""Who is chosen stays, and who cannot is replaced."""

from __future__ import annotations

import pytest

from bellhop.declarations.cluster_selection import choose
from bellhop.state.cluster import SetSelection

POOL = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("most", "old", "down", "clusters", "failing"),
    [
        pytest.param(2, (), "", "ab", "", id="at first those of the first names"),
        pytest.param(2, "dc", "", "dc", "", id="who was chosen stays, in order"),
        pytest.param(3, "dc", "", "dca", "", id="more are added"),
        pytest.param(1, "dc", "", "d", "", id="the last chosen go first"),
        pytest.param(1, "dc", "d", "c", "", id="who is down goes before"),
        pytest.param(0, "dc", "", "", "", id="none"),
        pytest.param(9, "", "", "abcd", "", id="no more than there are"),
        pytest.param(2, "xd", "", "da", "", id="who left is replaced"),
        pytest.param(2, "ad", "a", "db", "", id="who is down is replaced"),
        pytest.param(2, "ad", "abc", "da", "a", id="by nobody who is down"),
        pytest.param(2, "", "abc", "d", "", id="who is down is not chosen"),
        pytest.param(2, "ad", "abcd", "ad", "ad", id="who is down stays if all are"),
        pytest.param(3, "adx", "abc", "da", "a", id="who left does not come back"),
    ],
)
def test_chooses(most: int, old: str, down: str, clusters: str, failing: str) -> None:
    """And chooses the same again when nothing has changed."""
    found = choose(most, POOL, SetSelection(tuple(old)), down.__contains__)

    assert found == SetSelection(tuple(clusters), tuple(failing))
    assert choose(most, POOL, found, down.__contains__) == found
