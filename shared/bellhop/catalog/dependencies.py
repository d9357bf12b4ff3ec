"""Dependencies between profiles, and the cycles that no cluster can satisfy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bellhop.errors import InvalidError

After = Mapping[str, Sequence[str]]
"""The profiles that each comes after, by places."""


def reached(begun: Iterable[str], after: After) -> set[str]:
    """Return what some profiles come after, and what these do, however far."""
    found: set[str] = set()
    ahead = [*begun]
    while ahead:
        new = set(after.get(ahead.pop(), ())) - found
        found |= new
        ahead += new
    return found


def line(place: str, after: After) -> list[str]:
    """Return a profile behind all that it comes after, each behind those that it comes after."""
    found: dict[str, None] = {}
    begun: set[str] = set()
    ahead = [place]
    while ahead:
        each = ahead[-1]
        first = [] if each in begun else [one for one in after.get(each, ()) if one not in begun]
        begun.add(each)
        ahead += first
        if not first:
            found[ahead.pop()] = None
    return list(found)


def turned(after: After) -> dict[str, list[str]]:
    """Return the profiles that come after each, instead of before."""
    found: dict[str, list[str]] = {}
    for place, others in after.items():
        for each in others:
            found.setdefault(each, []).append(place)
    return found


def refuse_cycle(place: str, after: After) -> None:
    """See that a profile does not come after itself.

    Raises:
        InvalidError: it does, by way of those that are named.
    """
    cycle = _cycle(place, after)
    if cycle:
        said = " after ".join(f"'{each}'" for each in cycle)
        raise InvalidError(
            f"cannot deploy '{place}' in order: by dependsOn {said}; take one of them out"
        )


def refuse_exchange(place: str, replaces: Iterable[str], after: After) -> None:
    """See that a profile replaces none that it comes after: each would wait for the other.

    Raises:
        InvalidError: it does.
    """
    both = sorted(reached([place], after).intersection(replaces))
    if both:
        raise InvalidError(
            f"cannot deploy '{place}' in order: by dependsOn it comes after '{both[0]}', and by"
            " transitionFrom it replaces that; take one of them out"
        )


def _cycle(place: str, after: After) -> list[str]:
    """Return the shortest way from a profile back to itself, both ends included."""
    ways: list[list[str]] = [[place]]
    seen: set[str] = set()
    for way in ways:
        for each in after.get(way[-1], ()):
            if each == place:
                return [*way, place]
            if each not in seen:
                seen.add(each)
                ways.append([*way, each])
    return []
