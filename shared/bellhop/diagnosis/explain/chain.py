"""A chain of links, each with what it says, and the one next thing to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

State = Literal["yes", "no", "waits", "failed"]
MOST = 20
"""Links of a step that are told one by one; the others are counted."""


class Link(Struct, frozen=True):
    """One link: which thing of which step, how it is, why, and what would fix it."""

    step: str
    name: str
    state: State
    said: str
    cure: str = ""


class Explanation(Struct, frozen=True):
    """A chain for people and programs; `rest` says of a step what is not told one by one."""

    about: str
    links: tuple[Link, ...]
    rest: Mapping[str, str]
    next: str


@dataclass
class Chain:
    """Gathers links; `steps` says in which order they follow from each other."""

    about: str
    steps: tuple[str, ...]
    links: list[Link] = field(default_factory=list)
    rest: dict[str, list[str]] = field(default_factory=dict)

    def add(self, step: str, name: str, state: State, said: str, cure: str = "") -> None:
        """Add a link."""
        self.links.append(Link(step, name, state, said, cure))

    def add_all(self, links: Iterable[Link], others: str) -> None:
        """Add links of one step, those first that matter most; too many of them are counted."""
        found = sorted(links, key=_weight)
        self.links += found[:MOST]
        if len(found) > MOST:
            self.note(found[0].step, f"{len(found) - MOST} more {others}")

    def note(self, step: str, said: str) -> None:
        """Say of a step what is not told one by one."""
        self.rest.setdefault(step, []).append(said)

    def drop_cures(self, but: str) -> None:
        """Remove the cures of all links added so far, except those of one step."""
        kept = (each if each.step == but else replace(each, cure="") for each in self.links)
        self.links = list(kept)

    def end(self, done: str) -> Explanation:
        """Close the chain; `done` is said where nothing is left to do."""
        links = tuple(sorted(self.links, key=lambda link: self.steps.index(link.step)))
        rest = {step: "; ".join(said) for step, said in self.rest.items()}
        return Explanation(self.about, links, rest, self._next(links, done))

    def _next(self, links: Iterable[Link], done: str) -> str:
        """Choose what to do: what failed, what waits, and only where nothing goes on, what said no.

        Of the latter the one that came furthest is the nearest to what was meant.
        """
        curable = [link for link in links if link.cure]
        for state in ("failed", "waits"):
            found = [link for link in curable if link.state == state]
            if found:
                return found[0].cure
        arrived = any(link.step == self.steps[-1] and link.state == "yes" for link in links)
        refused = [link for link in curable if link.state == "no"]
        if arrived or not refused:
            return done
        return max(refused, key=lambda link: self.steps.index(link.step)).cure


def _weight(link: Link) -> int:
    return ("failed", "waits", "yes", "no").index(link.state)
