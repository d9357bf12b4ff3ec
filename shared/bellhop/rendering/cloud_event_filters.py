"""Filters of CloudEvents by regular expressions over their attributes.

They are RE2's, as Sveltos' are, and are searched for: none can hang, whatever is written. Ingest
uses them for each event, and loads their engine with the first that is not empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from bellhop.rendering.cloud_events import CHANNEL, SUBSCRIPTION
from bellhop.state.ingest_policy import Criterion, Listener

_MEMORY = 1_000_000
"""Bytes that a compiled expression may take."""


def list_accepting(listeners: Iterable[Listener], event: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the EventSources that take an event."""
    for each in listeners:
        if any(takes(criterion, event) for criterion in each.criteria):
            yield each.source


def takes(criterion: Criterion, event: Mapping[str, Any]) -> bool:
    """Say whether an event has all attributes as they are asked for; one it lacks is empty."""
    return not any(True for _ in _refusing(criterion, event))


def refused(criterion: Criterion, event: Mapping[str, Any]) -> str:
    """Say in words what keeps a criterion from an event that it does not take."""
    for name, pattern in _refusing(criterion, event):
        there = f"is '{event[name]}'" if name in event else "is not there"
        return f"its {name} {there}, and must match '{pattern}'"
    return ""


def problem(pattern: str) -> str:
    """Say what is wrong with a regular expression; nothing when it is right."""
    try:
        _compiled(pattern)
    except ValueError as error:
        return str(error)
    return ""


def _refusing(criterion: Criterion, event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    asked = {
        "type": criterion.type,
        "source": criterion.source,
        "subject": criterion.subject,
        CHANNEL: criterion.channel,
    }
    for name, pattern in asked.items():
        values = [str(event.get(name, ""))]
        if name == CHANNEL and SUBSCRIPTION in event:
            # Sveltos compares with what it subscribed to; its documentation says, with the subject.
            values.append(str(event[SUBSCRIPTION]))
        if pattern and not any(_is_in(pattern, each) for each in values):
            yield name, pattern


def _is_in(pattern: str, text: str) -> bool:
    try:
        return _compiled(pattern).search(text) is not None
    except ValueError:
        # `apply` refuses such a one; who got past it takes nothing.
        return False


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - 4 ms, of use only to sources that ask for attributes

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise ValueError(f"{text} in '{pattern}'") from error
