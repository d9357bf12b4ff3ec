"""Changes of records whose messages a death must not lose: written, published, marked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.errors import StaleError
from bellhop.state.deployment import Watch
from bellhop.state.match import AccessReview, Match, Selected, Selection
from tests.fakes.clock import START
from tests.unit.state.rig import EAST, SERVICE, WEB, Rig, profile

OUTBOXES = [
    pytest.param(
        "matches", Match(EAST, "s", WEB, matching=True, digest="d", since=START), id="match"
    ),
    pytest.param(
        "selections", Selection(EAST, "s", START, (Selected(WEB, "d", START),)), id="selection"
    ),
    pytest.param("profiles", profile(), id="profile"),
    pytest.param("watches", Watch(EAST, "p", "t", EAST, (SERVICE,)), id="watch"),
    pytest.param(
        "permits",
        AccessReview(EAST, "team/web", SERVICE, "", allowed=True, at=START, told=False),
        id="review",
    ),
]


@pytest.mark.parametrize(("table", "record"), OUTBOXES)
def test_a_change_is_marked_once_its_messages_are_published(
    rig: Rig, table: str, record: Any
) -> None:
    """Nothing else of the record changes, nor is lost."""
    records = getattr(rig.records, table)
    record = replace(record, told=False)
    token = records.put(record)
    assert records.get(*records.key(record)).value == record

    marked = records.mark_published(record, expect=token)

    found = records.get(*records.key(record))
    assert (found.value, found.token) == (replace(record, told=True), marked)


@pytest.mark.parametrize(("table", "record"), OUTBOXES)
def test_a_change_of_another_worker_is_not_marked(rig: Rig, table: str, record: Any) -> None:
    """It may have messages of its own, which that worker publishes."""
    records = getattr(rig.records, table)
    record = replace(record, told=False)
    token = records.put(record)
    other = records.put(record)

    with pytest.raises(StaleError):
        records.mark_published(record, expect=token)

    found = records.get(*records.key(record))
    assert (found.value.told, found.token) == (False, other)
