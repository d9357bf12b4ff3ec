"""Explanation of one trigger: its clusters, matching objects, profiles and destinations.

trigger ─► clusters it selects ─► its source, and objects that match ─► profiles ─► destinations
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bellhop import luabox
from bellhop.api.kinds import EventSource, EventTrigger
from bellhop.core.gvk import CLOUD_EVENT
from bellhop.diagnosis import cluster_status, names, profile_status
from bellhop.diagnosis.condition import Condition
from bellhop.diagnosis.explain.evaluation import advise_source, describe_failure, evaluate
from bellhop.diagnosis.explain.result import MAX_LINKS, Chain, Explanation, Results, Serves
from bellhop.diagnosis.selection_gaps import (
    Gap,
    KnownRefs,
    describe_missing_ref,
    find_cluster_gap,
    find_destination_gap,
    find_name_gap,
    find_source_cluster_gap,
    find_source_gap,
    list_missing_refs,
)
from bellhop.diagnosis.source_status import AGGREGATION, read_report
from bellhop.errors import MissingError, StaleError
from bellhop.events.rules_match import Candidate
from bellhop.installation import Installation
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.match import Match

STEPS = ("trigger", "cluster", "source", "object", "profile", "destination")
_MAX_EVALUATED = 50
"""Objects that are evaluated again for the reasons why none matches."""

_REASONS = 5
_DONE = "nothing to do: everything is deployed"


def explain_trigger(here: Installation, name: str, serves: Serves) -> Explanation:
    """Explain a trigger, from the clusters that it selects to what was applied.

    Raises:
        MissingError: there is no such trigger; names the nearest one.
    """
    catalog = here.catalogs.known()
    trigger = catalog.triggers.get(name)
    if trigger is None:
        listed = "`bellhop get eventtriggers` lists those that are there"
        raise MissingError(
            f"there is no trigger '{name}'{names.suggest(name, catalog.triggers, listed)}"
        )
    return _TriggerExplanation(here, trigger, serves).explain()


class _Reason(NamedTuple):
    """A reason why objects do not match: an example, how many, and how near they are."""

    said: str
    example: str
    number: int
    nearness: int


class _TriggerExplanation:
    """The explanation of one trigger."""

    def __init__(self, here: Installation, trigger: EventTrigger, serves: Serves) -> None:
        self._here = here
        self._trigger = trigger
        self._catalog = here.catalogs.known()
        self._chain = Chain(f"{trigger.kind} {trigger.name}", STEPS)
        self._results = Results(here, self._catalog, self._chain, serves)

    def explain(self) -> Explanation:
        trigger, catalog = self._trigger, self._catalog
        self._add_gap("trigger", find_source_cluster_gap(trigger, catalog))
        self._add_gap("trigger", find_source_gap(trigger, catalog))
        self._add_gap("trigger", find_destination_gap(trigger, catalog))
        holders = KnownRefs(self._here)
        for ref in list_missing_refs(holders, trigger):
            self._add_gap("trigger", describe_missing_ref(holders, ref))
        if not self._chain.links:
            self._chain.add("trigger", trigger.name, "yes", "all that it names is there")
        selected = self._add_clusters()
        self._add_matches(selected)
        self._add_profiles()
        return self._chain.end(_DONE)

    def _add_gap(self, step: str, lack: Gap | None) -> None:
        if lack:
            self._chain.add(step, self._trigger.name, "failed", lack.message, lack.cure)

    def _add_clusters(self) -> Sequence[str]:
        """Add all clusters; return those that are selected."""
        trigger, links, selected = self._trigger, [], []
        for key, cluster in sorted(self._catalog.clusters.items()):
            lack = find_cluster_gap(trigger, cluster, self._catalog)
            problem = find_name_gap(trigger, key, self._catalog)
            if lack:
                links.append(Condition("cluster", key, "no", lack.message))
            elif problem:
                links.append(Condition("cluster", key, "failed", *problem))
            else:
                selected.append(key)
                links.append(self._describe_cluster(key))
        self._chain.add_all(links, "clusters")
        return selected

    def _describe_cluster(self, key: str) -> Condition:
        if obstacle := next(cluster_status.list_obstacles(self._here, key), None):
            return obstacle
        labels = self._catalog.clusters[key].labels
        by_label = self._trigger.source_selector.matches(labels)
        field = "sourceClusterSelector takes" if by_label else "clusterSetRefs take"
        return Condition("cluster", key, "yes", f"its {field} it")

    # Matches ------------------------------------------------------------------------------------

    def _add_matches(self, selected: Sequence[str]) -> None:
        found, links = 0, []
        for key in selected:
            source = self._catalog.source_of(self._trigger, key)
            if source is None:
                continue
            matches = list(self._here.records.matches.of(key, source.name))
            matching = sum(each.matching for each in matches)
            found += matching
            links.append(
                self._describe_aggregation(source, key)
                if source.aggregation
                else self._describe_source(source, key, matching, len(selected))
            )
            self._chain.add_all(
                [self._describe_failure(source, each) for each in matches if each.error],
                f"objects of {key} on which the source fails",
            )
        self._chain.add_all(links, "clusters")
        if not found and not any(link.type == "object" for link in self._chain.links):
            for key in selected[:_REASONS]:
                self._add_reasons(key)

    def _describe_source(
        self, source: EventSource, key: str, matching: int, many: int
    ) -> Condition:
        place = f" in {key}" if many > 1 else f" in {key}, the one cluster"
        if not matching:
            return Condition("source", source.name, "no", f"nothing matches{place}")
        objects = f"{matching} objects match" if matching > 1 else "1 object matches"
        return Condition("source", source.name, "yes", f"{objects}{place}")

    def _describe_aggregation(self, source: EventSource, key: str) -> Condition:
        found = read_report(self._here, key, source.name)
        given = f"{found.given} objects match" if found.given != 1 else "1 object matches"
        said = f": {found.message}" if found.message else ""
        failed = [error for what, error in found.errors if what == AGGREGATION]
        if failed:
            why = describe_failure(source, failed[0])
            return Condition(
                "source", source.name, "failed", f"{why}, in {key}", advise_source(source, why)
            )
        if found.awaited:
            waits = f"{given} in {key}; its aggregatedSelection waits for a resync of all its kinds"
            return Condition(
                "source", source.name, "waits", waits, self._results.advise_waiting(key)
            )
        chosen = f"{given} in {key}; its aggregatedSelection returns {len(found.matching)}{said}"
        return Condition("source", source.name, "yes" if found.matching else "no", chosen)

    def _describe_failure(self, source: EventSource, match: Match) -> Condition:
        name = f"{names.object_name(match.key)} in {match.cluster}"
        said = describe_failure(source, match.error)
        return Condition("object", name, "failed", said, advise_source(source, said))

    def _add_reasons(self, key: str) -> None:
        """Evaluate the known objects of a cluster again, and add the reasons, the nearest first."""
        source = self._catalog.source_of(self._trigger, key)
        if source is None:
            return
        limits = luabox.Limits(
            seconds=self._here.settings.script_seconds / 10,
            memory=self._here.settings.script_memory,
        )
        reasons: dict[str, _Reason] = {}
        for candidate, name in islice(self._candidates(key, source), _MAX_EVALUATED):
            said, failed = _explain_missing(source, candidate, limits)
            if failed:
                cure = advise_source(source, said)
                self._chain.add("object", f"{name} in {key}", "failed", said, cure)
                return
            old = reasons.get(said, _Reason(said, name, 0, 0))
            nearness = max(old.nearness, _nearness(source, candidate))
            reasons[said] = old._replace(number=old.number + 1, nearness=nearness)
        if not reasons:
            self._add_unknown(key, source)
        nearest = sorted(reasons.values(), key=lambda each: (-each.nearness, -each.number))
        for each in nearest[:_REASONS]:
            more = f" and {each.number - 1} more" if each.number > 1 else ""
            cure = f"change {each.example}, or EventSource '{source.name}': {each.said}"
            self._chain.add("object", f"{each.example} in {key}{more}", "no", each.said, cure)

    def _add_unknown(self, key: str, source: EventSource) -> None:
        kinds = " or ".join(sorted({gvk.kind for gvk in source.kinds})) or "object"
        unserved = source.kinds.intersection(self._here.records.health.head(key).unserved)
        for gvk in sorted(unserved):
            said = f"{key} does not serve {gvk}: EventSource '{source.name}' waits for its CRD"
            cure = (
                f"install the CRD of {gvk} in {key}; it is looked for at each resync, or at once by"
                f" `bellhop resync {key}`"
            )
            self._chain.add("object", "-", "waits", said, cure)
        if unserved:
            return
        if self._here.records.health.head(key).swept_at:
            doing = (
                f"send a {kinds} to" if source.kinds == {CLOUD_EVENT} else f"create a {kinds} in"
            )
            cure = f"{doing} {key} that EventSource '{source.name}' takes"
            self._chain.add("object", "-", "no", f"no {kinds} is known in {key}", cure)
            return
        said = f"no {kinds} is known in {key}, which was never resynced"
        self._chain.add("object", "-", "waits", said, self._results.advise_waiting(key))

    def _candidates(self, key: str, source: EventSource) -> Iterator[tuple[Candidate, str]]:
        for gvk in sorted(source.kinds):
            for head in self._here.records.observations.heads(key, gvk):
                if gvk == CLOUD_EVENT and head.key.namespace != source.name:
                    continue
                try:
                    kept = self._here.records.observations.get(key, head.key)
                except StaleError:
                    continue
                if kept and kept.value.manifest is not None:
                    yield Candidate(kept.value.manifest), names.object_name(head.key)

    # Profiles -----------------------------------------------------------------------------------

    def _add_profiles(self) -> None:
        outcomes: dict[str, list[DeploymentStatus]] = {}
        for (trigger, _, name), found in profile_status.read_outcomes(self._here).items():
            if trigger == self._trigger.name:
                outcomes.setdefault(name, []).extend(found)
        number = 0
        for profile in self._here.records.profiles.heads(self._trigger.name):
            number += 1
            if number <= MAX_LINKS:
                found = outcomes.get(profile.name, [])
                self._results.add_rendered(self._trigger, profile, found)
        if number > MAX_LINKS:
            failing = sum(
                each.phase.startswith("Failed") for found in outcomes.values() for each in found
            )
            self._chain.note(
                "profile", f"{number - MAX_LINKS} more profiles; {failing} deployments fail"
            )
        matched = any(link.type == "source" and link.status == "yes" for link in self._chain.links)
        if matched and not number:
            said = "no profile is made yet of what matches"
            cure = self._results.advise_waiting(self._trigger.name)
            self._chain.add("profile", "-", "waits", said, cure)


def _explain_missing(
    source: EventSource, candidate: Candidate, limits: luabox.Limits
) -> tuple[str, bool]:
    """Return why an object has no match, in words, and whether the script failed."""
    found = evaluate(source, candidate, limits)
    said = "it matches, and is not evaluated yet" if found.matching else found.said
    return said, found.failed


def _nearness(source: EventSource, candidate: Candidate) -> int:
    """Count the labels of an object that its source selects by."""
    labels = (candidate.manifest.get("metadata") or {}).get("labels") or {}
    asked: set[str] = set()
    for each in source.selectors:
        asked.update(term.key for term in each.label_filters)
        asked.update(term.key for term in (each.selector.requirements if each.selector else ()))
    return len(asked & labels.keys())
