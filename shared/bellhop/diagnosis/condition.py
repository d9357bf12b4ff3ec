"""A condition of an installation: a failure, a check's result, or a link of an explanation."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime
from typing import Literal, TypeVar

from msgspec import Struct

_SHOWN = 5

Status = Literal["yes", "no", "waits", "failed", "unknown"]
"""`yes` holds; `no` does not, and need not; `waits` will; `failed` should and does not."""

T = TypeVar("T")


class Condition(Struct, frozen=True):
    """A fact about one thing, for people: the `message` is a sentence, `cure` the next action.

    `type` is the sort of thing, the check or the step; `about` is the thing's name. If `count`
    things have the condition, `about` is the first.
    """

    type: str
    about: str
    status: Status
    message: str
    cure: str = ""
    since: datetime | None = None
    count: int = 1


def group(found: Iterable[tuple[Hashable, T]]) -> Sequence[list[T]]:
    """Return lists of what has the same cause, in the order in which the causes were found."""
    causes: dict[Hashable, list[T]] = {}
    for cause, each in found:
        causes.setdefault(cause, []).append(each)
    return list(causes.values())


def count_alike(count: int, noun: str) -> str:
    """Return a clause that counts the things of a cause; empty for one."""
    return f"; so it is with {count} {noun}, of which this is the first" if count > 1 else ""


def name_clusters(clusters: Sequence[str]) -> str:
    """Return a clause that counts and names the clusters of a cause; empty for one."""
    if len(clusters) == 1:
        return ""
    named = ", ".join(clusters[:_SHOWN])
    more = f" and {len(clusters) - _SHOWN} more" if len(clusters) > _SHOWN else ""
    return f"; it fails in {len(clusters)} clusters: {named}{more}"


def failure(
    type_: str, about: str, message: str, since: datetime | None = None, count: int = 1
) -> Condition:
    """Return a condition of `bellhop show failures`; its message ends with the cure."""
    return Condition(type_, about, "failed", message, since=since, count=count)


def passed(check: str, message: str) -> Condition:
    return Condition(check, "", "yes", message)


def failed(check: str, message: str, cure: str) -> Condition:
    return Condition(check, "", "failed", message, cure)


def unknown(check: str, message: str, cure: str = "") -> Condition:
    """Return the result of a check that could not be made."""
    return Condition(check, "", "unknown", message, cure)
