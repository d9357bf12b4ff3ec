"""The first messages of an event, which a resync publishes again in case a queue has lost one.

    observation ─► Evaluate ─► match ─► Instantiate ─► profile ─► Apply ─► deployment status

Each record shows whether the work on the one before it was done. A resync checks the objects that
changed since the last one, and publishes the first message whose work is missing. It reads the
source index, a match, a profile and a status for each destination, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.api.kinds import EventSource, EventTrigger
from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import profile_name
from bellhop.errors import MissingError, ScriptError
from bellhop.events.access_reviews import may_see
from bellhop.events.reports import Reports, inputs_digest
from bellhop.events.rules_match import REFERENCE, Candidate, evaluate_rules, state_digest
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.envelope import Envelope
from bellhop.state.match import Match
from bellhop.state.messages import Apply, Evaluate, Instantiate
from bellhop.state.profile import Profile
from bellhop.state.records import Records


class LostMessages:
    """Finds the work on changed objects of one cluster that was not done.

    `checked` gets the names of the profiles that were checked, and those in it are left out.
    """

    def __init__(self, records: Records, catalog: Catalog, cluster: str, checked: set[str]) -> None:
        self._records = records
        self._catalog = catalog
        self._cluster = cluster
        self._checked = checked

    def find(self, key: ObjectKey, manifest: Mapping[str, Any] | None) -> Iterator[Envelope]:
        """Yield the messages to publish again for an object; without a manifest it is deleted."""
        index = self._records.trails.get(self._cluster, key)
        sources = self._catalog.sources_of(self._cluster, key)
        named = [each for each in sources if index.value.may_name(each.name)]
        matches = {each.name: self._read_match(each, key) for each in named}
        if manifest is None:
            # Evaluate deletes the matches of a deleted object, or holds them, and ends its index.
            ended = not index.token or index.value.ended
            evaluated = ended and all(not each or each.held for each in matches.values())
        else:
            candidate = Candidate(manifest)
            evaluated = all(
                self._is_evaluated(each, candidate, key, matches.get(each.name)) for each in sources
            )
        if not evaluated:
            yield Evaluate(self._cluster, str(key))
        for source in named:
            for name in self._catalog.triggers_on(self._cluster, source.name):
                trigger = self._catalog.triggers[name]
                yield from self._find_deployment(source, trigger, key, matches.get(source.name))

    def _read_match(self, source: EventSource, key: ObjectKey) -> Match | None:
        kept = self._records.matches.get(self._cluster, source.name, key)
        return kept.value if kept else None

    def _is_evaluated(
        self, source: EventSource, candidate: Candidate, key: ObjectKey, match: Match | None
    ) -> bool:
        """Compare a match with what the source says now; only evaluate runs scripts."""
        if match and match.held:
            return True
        state = state_digest(source, candidate)
        done = match is not None and _describe(match) == (True, state, "", True)
        if done and state != REFERENCE:
            return True
        matching = True
        if source.account:
            sees = may_see(self._records, self._cluster, source.account, key, asked=True)
            if sees is None:
                return False
            matching = sees
        try:
            matching = matching and evaluate_rules(source, candidate, None).matching
        except ScriptError:
            return False
        return done if matching else match is None

    def _find_deployment(
        self, source: EventSource, trigger: EventTrigger, key: ObjectKey, match: Match | None
    ) -> Iterator[Envelope]:
        """Yield the message that a trigger's profile of an object, or of all, still lacks."""
        place = str(key) if trigger.one_for_event else ""
        name = profile_name(trigger.name, self._cluster, place)
        if name in self._checked:
            return
        self._checked.add(name)
        try:
            kept = self._records.profiles.head(trigger.name, self._cluster, name)
        except MissingError:
            kept = None
        profile = kept.value if kept else None
        expected = self._inputs_digest(source, trigger, place, match)
        if not _is_rendered(profile, expected):
            yield Instantiate(trigger.name, self._cluster, place)
        elif profile and not profile.paused:
            yield from self._find_applications(profile)

    def _inputs_digest(
        self, source: EventSource, trigger: EventTrigger, place: str, match: Match | None
    ) -> str:
        """Return the digest of what a profile is rendered from; empty where nothing matches."""
        reports = Reports(self._records)
        if not trigger.one_for_event:
            marks = reports.marks(self._cluster, source)
            return inputs_digest(self._catalog.revision, marks) if marks else ""
        if source.aggregation:
            return reports.mark(self._cluster, source, place)
        return match.digest if match and match.matching else ""

    def _find_applications(self, profile: Profile) -> Iterator[Apply]:
        profile = self._records.profiles.with_leaving(profile)
        for destination in (*profile.destinations, *profile.leaving):
            kept = self._records.outcomes.get(destination, profile.name)
            if not _is_applied(profile, kept.value if kept else None):
                yield Apply(profile.trigger, profile.cluster, profile.name, destination)


def _describe(match: Match) -> tuple[bool, str, str, bool]:
    return match.matching, match.digest, match.error, match.told


def _is_rendered(profile: Profile | None, expected: str) -> bool:
    if profile is None:
        return not expected
    # A profile that is withdrawn has no digest, and is kept until its clusters are left.
    known = bool(expected) or not profile.digest
    return known and profile.told and profile.made_of == expected


def _is_applied(profile: Profile, status: DeploymentStatus | None) -> bool:
    """Compare a status with the profile's last change; former versions did not note its time."""
    if status is None:
        return False
    if profile.sync == "OneTime" or profile.revised_at is None:
        return True
    return status.revision == profile.revision or status.at >= profile.revised_at
