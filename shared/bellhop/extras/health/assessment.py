"""What a HealthCheck's script makes of all that it asks for: which resources are not well, and why.

Of those that are well nothing is kept: there may be thousands, and they say nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bellhop import luabox
from bellhop.api.kinds import EventSource
from bellhop.core.digest import digest
from bellhop.core.gvk import ObjectKey
from bellhop.events.aggregation import HEALTH, Resource, for_many, refuse_nameless, run, unfit
from bellhop.extras.health.state import MESSAGE, STATE
from bellhop.rendering import secrecy

MOST = 100
"""Resources that are not well, of which it is kept; the first by their names.

Those that were kept before come first: how long they are not well is to be known.
"""

_LONGEST = 300
"""Characters that are kept of what a script says of one."""

_WITHHELD = "what its script says is withheld, for it may quote a Secret"


class Assessment(NamedTuple):
    """The resources that are not well, of how many, and whether the script wants to look again."""

    resources: tuple[Resource, ...]
    message: str
    again: bool


def assess(
    source: EventSource,
    parts: Iterable[Sequence[Mapping[str, Any]]],
    limits: luabox.Limits,
    *,
    known: Container[str] = (),
) -> Assessment:
    """Run a health check's script over objects, part by part; a part may be empty.

    Keys that were `known` to be not well are kept before others.

    Where a Secret is among the objects no word of the script is told, and it names none but what
    it was given: a name could be made of a value.

    Raises:
        ScriptError: the script fails, breaks out of its limits, or returns what is no resource.
        TemporaryError: internal error where a Secret was in reach.
    """
    found: dict[ObjectKey, Resource] = {}
    asked, again = 0, False
    for part in parts:
        asked += len(part)
        secret = any(map(secrecy.holds_values, part))
        with secrecy.unforeseen(f"cannot evaluate '{source.name}'", secret=secret):
            told = run(
                luabox.assess, source, HEALTH, part, for_many(limits, len(part)), secret=secret
            )
            given = set(map(ObjectKey.of, part)) if secret else None
            for number, each in enumerate(told, start=1):
                refuse_nameless(source.name, HEALTH, number, each.resource)
                again = again or each.again
                one = _resource(source, number, each, given)
                if each.state != luabox.HEALTHY:
                    found.setdefault(one.key, one)
    return Assessment(_first(found, known), _summary(asked, len(found)), again)


def _resource(
    source: EventSource, number: int, told: luabox.Assessed, given: set[ObjectKey] | None
) -> Resource:
    """Return how one resource is, which is one of those `given` where that is said.

    Raises:
        ScriptError: it is not.
    """
    key = ObjectKey.of(told.resource)
    message = told.message
    if given is not None:
        if key not in given:
            said = (
                "is not one of those that were given, and its name may quote a Secret; leave it out"
            )
            raise unfit(source.name, HEALTH, number, said)
        message = _WITHHELD if message else ""
    kept = {STATE: told.state, MESSAGE: message[:_LONGEST]}
    return Resource(key, digest(kept), kept)


def _first(found: Mapping[ObjectKey, Resource], known: Container[str]) -> tuple[Resource, ...]:
    keys = sorted(found, key=str)
    kept = sorted(keys, key=lambda key: str(key) not in known)[:MOST]
    return tuple(found[key] for key in sorted(kept, key=str))


def _summary(asked: int, unwell: int) -> str:
    if unwell:
        return f"{unwell} not healthy of {asked} resources"
    return f"{asked} resources are healthy"
