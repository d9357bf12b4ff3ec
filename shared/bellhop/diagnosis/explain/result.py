"""The end of a chain: profiles of a trigger, and their status in clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.api.kinds import EventTrigger
from bellhop.catalog.catalog import Catalog
from bellhop.diagnosis import cluster_status, profile_status
from bellhop.diagnosis.calls import list_dead_letters
from bellhop.diagnosis.condition import Condition, Status
from bellhop.diagnosis.selection_gaps import find_destination_gap
from bellhop.errors import (
    AwayError,
    MissingError,
    PausedError,
    QueuedError,
    UnmetError,
    WaitingError,
)
from bellhop.installation import Installation
from bellhop.profiles import loops
from bellhop.state.delays import loop_timer
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.profile import Profile

MAX_LINKS = 20
"""Conditions of a step that are listed; the others are counted."""


class Explanation(Struct, frozen=True):
    """A chain of conditions; `rest` summarizes by step those that are not listed."""

    about: str
    links: tuple[Condition, ...]
    rest: Mapping[str, str]
    next: str


@dataclass
class Chain:
    """The conditions of an explanation, by `steps` in the order in which they follow each other."""

    about: str
    steps: tuple[str, ...]
    links: list[Condition] = field(default_factory=list)
    rest: dict[str, list[str]] = field(default_factory=dict)

    def add(self, step: str, about: str, status: Status, message: str, cure: str = "") -> None:
        self.links.append(Condition(step, about, status, message, cure))

    def add_all(self, links: Iterable[Condition], others: str) -> None:
        """Add the conditions of one step, the most important first, and count those in excess."""
        found = sorted(links, key=_weight)
        self.links += found[:MAX_LINKS]
        if len(found) > MAX_LINKS:
            self.note(found[0].type, f"{len(found) - MAX_LINKS} more {others}")

    def note(self, step: str, said: str) -> None:
        """Add a summary of a step."""
        self.rest.setdefault(step, []).append(said)

    def drop_cures(self, but: str) -> None:
        """Remove the cures of all steps but one."""
        kept = (each if each.type == but else replace(each, cure="") for each in self.links)
        self.links = list(kept)

    def end(self, done: str) -> Explanation:
        """Return the explanation; `done` is its next action where nothing is left to do."""
        links = tuple(sorted(self.links, key=lambda link: self.steps.index(link.type)))
        rest = {step: "; ".join(said) for step, said in self.rest.items()}
        return Explanation(self.about, links, rest, self._next(links, done))

    def _next(self, links: Iterable[Condition], done: str) -> str:
        """Return the cure of the first failure, else of the first wait, else of the last refusal.

        The refusal in the latest step is nearest to the intention.
        """
        curable = [link for link in links if link.cure]
        for state in ("failed", "waits"):
            found = [link for link in curable if link.status == state]
            if found:
                return found[0].cure
        arrived = any(link.type == self.steps[-1] and link.status == "yes" for link in links)
        refused = [link for link in curable if link.status == "no"]
        if arrived or not refused:
            return done
        return max(refused, key=lambda link: self.steps.index(link.type)).cure


def _weight(link: Condition) -> int:
    return ("failed", "waits", "yes", "no").index(link.status)


_MOST_LETTERS = 1000

Serves = Callable[[], bool]
"""Says whether who does the work answers."""


class Results:
    """Adds profiles with their destinations to a chain, and the next action of the worker."""

    def __init__(self, here: Installation, catalog: Catalog, chain: Chain, serves: Serves) -> None:
        self._here = here
        self._catalog = catalog
        self._chain = chain
        self._serves = serves
        self._answer: bool | None = None

    def advise_waiting(self, about: str) -> str:
        """Return the cure of something that the worker has not done; `about` is in its message."""
        letter = self._find_letter(about) if about else ""
        if letter:
            return f"`bellhop dead-letters replay {letter}`: a message about it was dead-lettered"
        if self._answer is None:
            self._answer = self._serves()
        if not self._answer:
            start = self._here.worker.start
            return f"{start}: it does not answer, and nothing is done without it"
        busy = self._here.worker.busy
        return f"ask again in a moment: {busy}; `bellhop show events -f` shows it"

    def add(self, trigger: EventTrigger, cluster: str, name: str) -> None:
        """Add one profile, which may not be rendered yet, and its destinations."""
        records = self._here.records
        try:
            found = records.profiles.head(trigger.name, cluster, name)
        except MissingError as error:
            said = f"{error}; what it holds is lost"
            self._chain.add("profile", name, "failed", said, self.advise_waiting(name))
            return
        if found is None:
            slowed = self._describe_loop(trigger, cluster, name)
            if slowed:
                self._chain.links.append(slowed)
                return
            said = f"EventTrigger '{trigger.name}' has not made it yet"
            self._chain.add("profile", name, "waits", said, self.advise_waiting(name))
            return
        profile = records.profiles.with_leaving(found.value)
        known = (records.outcomes.get(key, name) for key in profile.destinations)
        self.add_rendered(trigger, profile, [each.value for each in known if each])

    def add_rendered(
        self, trigger: EventTrigger, profile: Profile, outcomes: Sequence[DeploymentStatus]
    ) -> None:
        self._chain.links.append(self._describe_profile(trigger, profile))
        known = {each.cluster: each for each in outcomes}
        links = [
            self._describe_destination(profile, key, known.get(key)) for key in profile.destinations
        ]
        self._chain.add_all(links, f"clusters of {profile.name}: {_count_phases(known.values())}")
        for key in profile.leaving[:MAX_LINKS]:
            said = f"{profile.name} is being removed from it"
            self._chain.add("destination", key, "waits", said, self.advise_waiting(profile.name))

    def _describe_profile(self, trigger: EventTrigger, profile: Profile) -> Condition:
        made = f"made by {trigger.kind} '{trigger.name}'"
        if profile.error:
            said = f"{made}, and cannot be rendered: {profile.error}"
            return Condition(
                "profile", profile.name, "failed", said, _advise_render(trigger, profile.error)
            )
        slowed = self._describe_loop(trigger, profile.cluster, profile.name)
        if slowed:
            return slowed
        lack = find_destination_gap(trigger, self._catalog)
        if lack:
            said = f"{made}, and goes to no cluster: {lack.message}"
            return Condition("profile", profile.name, "failed", said, lack.cure)
        if not profile.destinations:
            cure = self.advise_waiting(profile.name)
            return Condition(
                "profile", profile.name, "waits", f"{made}, and is being taken back", cure
            )
        number = len(profile.destinations)
        said = f"{made}, for {number} cluster{'s' if number > 1 else ''}"
        return Condition("profile", profile.name, "yes", said)

    def _describe_loop(self, trigger: EventTrigger, cluster: str, name: str) -> Condition | None:
        """Return the condition of a profile that waits because it feeds itself."""
        kept = self._here.records.timers.get(loop_timer(trigger.name, cluster, name))
        if kept is None:
            return None
        said = (
            f"{trigger.kind} '{trigger.name}' feeds itself: what is applied changes what it is made"
            f" from, so that it is made once a minute, next at {kept.value.at:%H:%M:%S}"
        )
        return Condition("profile", name, "waits", said, loops.CURE)

    def _describe_destination(
        self, profile: Profile, cluster: str, outcome: DeploymentStatus | None
    ) -> Condition:
        which = profile.name
        if outcome and outcome.reason == UnmetError.code:
            said = f"{which}: {outcome.message}{profile_status.describe_next_try(outcome)}"
            cure = "it goes on by itself once that is so"
            return Condition("destination", cluster, "waits", said, cure)
        if outcome and outcome.reason in {WaitingError.code, QueuedError.code}:
            cure = f"see to what comes first, and it goes on by itself: {outcome.message}"
            return Condition("destination", cluster, "waits", f"{which} waits for its turn", cure)
        if outcome and outcome.reason == PausedError.code:
            cure = cluster_status.describe_resumption(cluster)
            return Condition(
                "destination", cluster, "waits", f"{which} waits: {outcome.message}", cure
            )
        if outcome is None or outcome.phase == "Provisioning":
            said = f"{which} is still to be applied"
            return Condition("destination", cluster, "waits", said, self.advise_waiting(which))
        if profile.error and outcome.message == profile.error:
            return Condition("destination", cluster, "no", f"it keeps what it had of {which}")
        if outcome.phase == "Provisioned":
            once = ", once: what changes later does not count" if profile.sync == "OneTime" else ""
            said = f"; {outcome.message}" if outcome.message else ""
            return Condition("destination", cluster, "yes", f"{which} is applied{once}{said}")
        if outcome.phase == "DryRun":
            said = f"{which} is tried dry: {outcome.message}"
            cure = "set syncMode to Continuous, and it is done"
            return Condition("destination", cluster, "waits", said, cure)
        if outcome.reason == AwayError.code:
            health = cluster_status.read_health(self._here, cluster)
            said = f"{which} waits for it: {health.message or outcome.message}"
            cure = f"see that cluster '{cluster}' answers; what waits for it then goes on by itself"
            return Condition("destination", cluster, "failed", said, cure)
        said = f"{which} failed: {outcome.message}{profile_status.describe_next_try(outcome)}"
        return Condition(
            "destination", cluster, "failed", said, _advise_deployment(cluster, outcome)
        )

    def _find_letter(self, about: str) -> str:
        """Return a dead letter about something."""
        found = (name for name, body in self._letters.items() if about in body.values())
        return next(found, "")

    @cached_property
    def _letters(self) -> Mapping[str, Mapping[str, Any]]:
        return {
            f"{inbox}/{letter.id}": letter.message.body
            for inbox, letters in list_dead_letters(self._here).items()
            for letter in letters[:_MOST_LETTERS]
        }


def _advise_render(trigger: EventTrigger, error: str) -> str:
    return f"fix what {trigger.kind} '{trigger.name}' renders, and apply it again: {error}"


def _advise_deployment(cluster: str, outcome: DeploymentStatus) -> str:
    then = "it is tried again by itself" if outcome.retry_at else "then apply it again"
    return f"fix this in cluster '{cluster}' or in what is applied; {then}: {outcome.message}"


def _count_phases(outcomes: Iterable[DeploymentStatus]) -> str:
    counted = Counter(each.phase for each in outcomes)
    return ", ".join(f"{number} {phase}" for phase, number in sorted(counted.items()))
