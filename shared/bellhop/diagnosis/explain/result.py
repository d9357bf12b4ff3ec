"""What triggers made of matches: profiles, and how each went to its clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from bellhop.api.kinds import EventTrigger
from bellhop.catalog.catalog import Catalog
from bellhop.diagnosis import overview
from bellhop.diagnosis.explain.chain import MOST, Chain, Link
from bellhop.diagnosis.queues import dead_letters
from bellhop.diagnosis.selection_gaps import no_destination
from bellhop.errors import (
    AwayError,
    MissingError,
    PausedError,
    QueuedError,
    UnmetError,
    WaitingError,
)
from bellhop.installation.installation import Installation
from bellhop.profiles import loops
from bellhop.state.delays import loop_timer
from bellhop.state.record import DeploymentStatus, Profile

_MOST_LETTERS = 1000

Serves = Callable[[], bool]
"""Says whether who does the work answers."""


class Results:
    """Follows profiles to their clusters, and says who is to do what is not done."""

    def __init__(self, here: Installation, catalog: Catalog, chain: Chain, serves: Serves) -> None:
        self._here = here
        self._catalog = catalog
        self._chain = chain
        self._serves = serves
        self._answer: bool | None = None

    def waiting(self, about: str) -> str:
        """Say what to do about something that a worker is to do, given the words it is about."""
        letter = self._letter(about) if about else ""
        if letter:
            return f"`bellhop dead-letters replay {letter}`: a message about it was dead-lettered"
        if self._answer is None:
            self._answer = self._serves()
        if not self._answer:
            start = self._here.worker.start
            return f"{start}: it does not answer, and nothing is done without it"
        busy = self._here.worker.busy
        return f"ask again in a moment: {busy}; `bellhop show events -f` shows it"

    def tell(self, trigger: EventTrigger, cluster: str, name: str) -> None:
        """Tell of one profile, which may not have been made yet, and where it went."""
        records = self._here.records
        try:
            found = records.profiles.head(trigger.name, cluster, name)
        except MissingError as error:
            said = f"{error}; what it holds is lost"
            self._chain.add("profile", name, "failed", said, self.waiting(name))
            return
        if found is None:
            slowed = self._slowed(trigger, cluster, name)
            if slowed:
                self._chain.links.append(slowed)
                return
            said = f"EventTrigger '{trigger.name}' has not made it yet"
            self._chain.add("profile", name, "waits", said, self.waiting(name))
            return
        profile = records.profiles.with_leaving(found.value)
        known = (records.outcomes.get(key, name) for key in profile.destinations)
        self.tell_made(trigger, profile, [each.value for each in known if each])

    def tell_made(
        self, trigger: EventTrigger, profile: Profile, outcomes: Sequence[DeploymentStatus]
    ) -> None:
        """Tell of a profile that was made, where it went and where it did not."""
        self._chain.links.append(self._profile(trigger, profile))
        known = {each.cluster: each for each in outcomes}
        links = [self._destination(profile, key, known.get(key)) for key in profile.destinations]
        self._chain.add_all(links, f"clusters of {profile.name}: {_phases(known.values())}")
        for key in profile.leaving[:MOST]:
            said = f"{profile.name} is being removed from it"
            self._chain.add("destination", key, "waits", said, self.waiting(profile.name))

    def _profile(self, trigger: EventTrigger, profile: Profile) -> Link:
        made = f"made by {trigger.kind} '{trigger.name}'"
        if profile.error:
            said = f"{made}, and cannot be rendered: {profile.error}"
            return Link("profile", profile.name, "failed", said, _mend(trigger, profile.error))
        slowed = self._slowed(trigger, profile.cluster, profile.name)
        if slowed:
            return slowed
        lack = no_destination(trigger, self._catalog)
        if lack:
            said = f"{made}, and goes to no cluster: {lack.said}"
            return Link("profile", profile.name, "failed", said, lack.cure)
        if not profile.destinations:
            cure = self.waiting(profile.name)
            return Link("profile", profile.name, "waits", f"{made}, and is being taken back", cure)
        number = len(profile.destinations)
        said = f"{made}, for {number} cluster{'s' if number > 1 else ''}"
        return Link("profile", profile.name, "yes", said)

    def _slowed(self, trigger: EventTrigger, cluster: str, name: str) -> Link | None:
        """Tell of a profile that waits for its next turn, since it feeds itself."""
        kept = self._here.records.timers.get(loop_timer(trigger.name, cluster, name))
        if kept is None:
            return None
        said = (
            f"{trigger.kind} '{trigger.name}' feeds itself: what is applied changes what it is made"
            f" from, so that it is made once a minute, next at {kept.value.at:%H:%M:%S}"
        )
        return Link("profile", name, "waits", said, loops.CURE)

    def _destination(
        self, profile: Profile, cluster: str, outcome: DeploymentStatus | None
    ) -> Link:
        which = profile.name
        if outcome and outcome.reason == UnmetError.code:
            said = f"{which}: {outcome.message}{overview.next_try(outcome)}"
            cure = "it goes on by itself once that is so"
            return Link("destination", cluster, "waits", said, cure)
        if outcome and outcome.reason in {WaitingError.code, QueuedError.code}:
            cure = f"see to what comes first, and it goes on by itself: {outcome.message}"
            return Link("destination", cluster, "waits", f"{which} waits for its turn", cure)
        if outcome and outcome.reason == PausedError.code:
            cure = overview.resuming(cluster)
            return Link("destination", cluster, "waits", f"{which} waits: {outcome.message}", cure)
        if outcome is None or outcome.phase == "Provisioning":
            said = f"{which} is still to be applied"
            return Link("destination", cluster, "waits", said, self.waiting(which))
        if profile.error and outcome.message == profile.error:
            return Link("destination", cluster, "no", f"it keeps what it had of {which}")
        if outcome.phase == "Provisioned":
            once = ", once: what changes later does not count" if profile.sync == "OneTime" else ""
            said = f"; {outcome.message}" if outcome.message else ""
            return Link("destination", cluster, "yes", f"{which} is applied{once}{said}")
        if outcome.phase == "DryRun":
            said = f"{which} is tried dry: {outcome.message}"
            cure = "set syncMode to Continuous, and it is done"
            return Link("destination", cluster, "waits", said, cure)
        if outcome.reason == AwayError.code:
            health = overview.health(self._here, cluster)
            said = f"{which} waits for it: {health.message or outcome.message}"
            cure = f"see that cluster '{cluster}' answers; what waits for it then goes on by itself"
            return Link("destination", cluster, "failed", said, cure)
        said = f"{which} failed: {outcome.message}{overview.next_try(outcome)}"
        return Link("destination", cluster, "failed", said, _deployed(cluster, outcome))

    def _letter(self, about: str) -> str:
        """Find a message that was given up and is about something."""
        found = (name for name, body in self._letters.items() if about in body.values())
        return next(found, "")

    @cached_property
    def _letters(self) -> Mapping[str, Mapping[str, Any]]:
        return {
            f"{inbox}/{letter.id}": letter.message.body
            for inbox, letters in dead_letters(self._here).items()
            for letter in letters[:_MOST_LETTERS]
        }


def _mend(trigger: EventTrigger, error: str) -> str:
    return f"fix what {trigger.kind} '{trigger.name}' renders, and apply it again: {error}"


def _deployed(cluster: str, outcome: DeploymentStatus) -> str:
    then = "it is tried again by itself" if outcome.retry_at else "then apply it again"
    return f"fix this in cluster '{cluster}' or in what is applied; {then}: {outcome.message}"


def _phases(outcomes: Iterable[DeploymentStatus]) -> str:
    counted = Counter(each.phase for each in outcomes)
    return ", ".join(f"{number} {phase}" for phase, number in sorted(counted.items()))
