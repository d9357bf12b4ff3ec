"""What Terraform asks the schedule function before it destroys an installation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bellhop.errors import PermanentError
from bellhop.ports.store import Item
from bellhop.runtime.cloud.tick import Due, Ticker
from tests.functions.lab import Account, Context, User, event


def asked(action: str, *, allowed: bool = False) -> dict[str, Any]:
    """Return what the provider sends, by `lifecycle_scope = "CRUD"`."""
    return {
        "destroy_with_clusters": allowed,
        "terraform": {"action": action, "prev_input": None},
    }


@pytest.fixture
def tick(account: Account) -> Ticker:
    return Ticker(Due, account.open)


def test_lets_an_installation_without_clusters_be_destroyed(tick: Ticker) -> None:
    """Nobody is left in it."""
    assert tick(asked("delete"), Context()) == {}


def test_keeps_an_installation_in_which_clusters_are_registered(
    account: Account, tick: Ticker
) -> None:
    """One sentence names one of them, and what to do; nothing is published."""
    user = User(account)
    for name in ("west", "east"):
        user.register(name, {})

    with pytest.raises(
        PermanentError, match=r"clusters are registered, such as 'fleet/east'; deregister"
    ):
        tick(asked("delete"), Context())


@pytest.mark.parametrize("action", ["create", "update", "delete"])
def test_opens_nothing_where_it_was_allowed(action: str) -> None:
    """Also one without a key can be destroyed: it is asked no more."""

    def broken() -> Any:
        raise AssertionError

    assert Ticker(Due, broken)(asked(action, allowed=True), Context()) == {}


@pytest.mark.parametrize("action", ["create", "update"])
def test_does_nothing_when_it_is_applied(account: Account, tick: Ticker, action: str) -> None:
    """An apply asks the same function, and is not to hang on what clusters are there."""
    User(account).register("east", {})

    assert tick(asked(action), Context()) == {}


def test_finishes_what_somebody_began_to_declare_and_abandoned(
    account: Account, tick: Ticker
) -> None:
    """A change of a minute ago is published to deploy, and no longer pending; a new one waits."""
    here = account.open()
    begun = datetime.now(UTC) - timedelta(minutes=1)
    change = {"keys": [["EventTrigger", "", "made"]]}
    here.records.pending.put("old", change)
    old = here.records.store.get("pending", "old")
    assert old
    here.records.store.put(Item("pending", "old", {**old.value, "at": begun.isoformat()}))
    here.records.pending.put("new", change)

    tick(event("scheduler"), Context())

    assert [name for name, _, _ in here.records.pending.all()] == ["new"]
