"""Assessment of resources by a HealthCheck's script: the unhealthy ones, with reasons.

Healthy resources are not stored: there may be thousands.
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
"""Unhealthy resources that are stored; the first by name.

Those that are stored already come first, to keep the time since when they are unhealthy.
"""

_LONGEST = 300
"""Characters that are kept of what a script says of one."""

_WITHHELD = "what its script says is withheld, for it may quote a Secret"


class Assessment(NamedTuple):
    """The unhealthy resources, the number of all, and whether the script requests another run."""

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

    `known` keys of unhealthy resources are kept before others.

    If a Secret is among the objects, no message of the script is shown, and the script may name
    only objects that it got: a name could contain a value.

    Raises:
        ScriptError: the script fails, exceeds its limits, or returns something else than resources.
        TemporaryError: internal error while a Secret was readable.
    """
    found: dict[ObjectKey, Resource] = {}
    asked, again = 0, False
    for part in parts:
        asked += len(part)
        secret = any(map(secrecy.holds_values, part))
        with secrecy.withhold_unforeseen(f"cannot evaluate '{source.name}'", secret=secret):
            results = run(
                luabox.assess, source, HEALTH, part, for_many(limits, len(part)), secret=secret
            )
            given = set(map(ObjectKey.of, part)) if secret else None
            for number, each in enumerate(results, start=1):
                refuse_nameless(source.name, HEALTH, number, each.resource)
                again = again or each.again
                one = _resource(source, number, each, given)
                if each.state != luabox.HEALTHY:
                    found.setdefault(one.key, one)
    return Assessment(_first(found, known), _summary(asked, len(found)), again)


def _resource(
    source: EventSource, number: int, result: luabox.Assessed, given: set[ObjectKey] | None
) -> Resource:
    """Return how one resource is, which is one of those `given` where that is said.

    Raises:
        ScriptError: it is not.
    """
    key = ObjectKey.of(result.resource)
    message = result.message
    if given is not None:
        if key not in given:
            said = (
                "is not one of those that were given, and its name may quote a Secret; leave it out"
            )
            raise unfit(source.name, HEALTH, number, said)
        message = _WITHHELD if message else ""
    kept = {STATE: result.state, MESSAGE: message[:_LONGEST]}
    return Resource(key, digest(kept), kept)


def _first(found: Mapping[ObjectKey, Resource], known: Container[str]) -> tuple[Resource, ...]:
    keys = sorted(found, key=str)
    kept = sorted(keys, key=lambda key: str(key) not in known)[:MOST]
    return tuple(found[key] for key in sorted(kept, key=str))


def _summary(asked: int, unwell: int) -> str:
    if unwell:
        return f"{unwell} not healthy of {asked} resources"
    return f"{asked} resources are healthy"
