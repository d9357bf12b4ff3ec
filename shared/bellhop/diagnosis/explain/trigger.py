"""From a trigger to what it made: where it is in force, what its source takes, where that went.

trigger ─► clusters it selects ─► its source, and objects that match ─► profiles ─► destinations
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bellhop import luabox
from bellhop.api.kinds import EventSource, EventTrigger
from bellhop.core.gvk import CLOUD_EVENT
from bellhop.diagnosis import object_names, overview
from bellhop.diagnosis.explain.chain import MOST, Chain, Explanation, Link
from bellhop.diagnosis.explain.object import failure, mending
from bellhop.diagnosis.explain.result import Results, Serves
from bellhop.diagnosis.reports import AGGREGATION, report
from bellhop.diagnosis.selection_gaps import (
    Holders,
    Lack,
    lacking,
    miss,
    no_destination,
    no_holder,
    no_source,
    no_source_cluster,
)
from bellhop.errors import MissingError, ScriptError, StaleError, TemporaryError
from bellhop.events.rules_match import Candidate, judge, why_not
from bellhop.installation.installation import Installation
from bellhop.state.record import DeploymentStatus, Match

STEPS = ("trigger", "cluster", "source", "object", "profile", "destination")
_JUDGED = 50
"""Objects that are judged again to say why none matches."""

_REASONS = 5
_DONE = "nothing to do: everything is deployed"


def explain_trigger(here: Installation, name: str, serves: Serves) -> Explanation:
    """Explain what became of a trigger, from the clusters that it selects to what was applied.

    Raises:
        MissingError: there is no such trigger; names the nearest one.
    """
    catalog = here.catalogs.known()
    trigger = catalog.triggers.get(name)
    if trigger is None:
        listed = "`bellhop get eventtriggers` lists those that are there"
        raise MissingError(
            f"there is no trigger '{name}'{object_names.guess(name, catalog.triggers, listed)}"
        )
    return _Story(here, trigger, serves).tell()


class _Reason(NamedTuple):
    """Why objects do not match: an example, how many, and how near they came."""

    said: str
    example: str
    number: int
    nearness: int


class _Story:
    """One trigger's story, told once."""

    def __init__(self, here: Installation, trigger: EventTrigger, serves: Serves) -> None:
        self._here = here
        self._trigger = trigger
        self._catalog = here.catalogs.known()
        self._chain = Chain(f"{trigger.kind} {trigger.name}", STEPS)
        self._results = Results(here, self._catalog, self._chain, serves)

    def tell(self) -> Explanation:
        """Tell the whole chain."""
        trigger, catalog = self._trigger, self._catalog
        self._lacks("trigger", no_source_cluster(trigger, catalog))
        self._lacks("trigger", no_source(trigger, catalog))
        self._lacks("trigger", no_destination(trigger, catalog))
        holders = Holders(self._here)
        for ref in lacking(holders, trigger):
            self._lacks("trigger", no_holder(holders, ref))
        if not self._chain.links:
            self._chain.add("trigger", trigger.name, "yes", "all that it names is there")
        selected = self._tell_clusters()
        self._tell_matches(selected)
        self._tell_profiles()
        return self._chain.end(_DONE)

    def _lacks(self, step: str, lack: Lack | None) -> None:
        if lack:
            self._chain.add(step, self._trigger.name, "failed", lack.said, lack.cure)

    def _tell_clusters(self) -> Sequence[str]:
        """Tell which clusters are selected, and of the others what keeps them out."""
        trigger, links, selected = self._trigger, [], []
        for key, cluster in sorted(self._catalog.clusters.items()):
            lack = miss(trigger, cluster, self._catalog)
            problem = self._catalog.problems_in(key).get(trigger.name)
            if lack:
                links.append(Link("cluster", key, "no", lack.said))
            elif problem:
                said = f"its eventSourceName cannot be rendered: {problem}"
                cure = f"correct the eventSourceName of {trigger.kind} '{trigger.name}': {problem}"
                links.append(Link("cluster", key, "failed", said, cure))
            else:
                selected.append(key)
                links.append(self._selected(key))
        self._chain.add_all(links, "clusters")
        return selected

    def _selected(self, key: str) -> Link:
        health = overview.health(self._here, key)
        if health.away:
            cure = f"see that cluster '{key}' answers: {health.message}"
            said = f"it is {health.state.lower()}: {health.message}"
            return Link("cluster", key, "failed", said, cure)
        if pause := overview.paused(self._here, key):
            return Link("cluster", key, "waits", *pause)
        labels = self._catalog.clusters[key].labels
        by_label = self._trigger.source_selector.matches(labels)
        field = "sourceClusterSelector takes" if by_label else "clusterSetRefs take"
        return Link("cluster", key, "yes", f"its {field} it")

    # What matches -------------------------------------------------------------------------------

    def _tell_matches(self, selected: Sequence[str]) -> None:
        found, links = 0, []
        for key in selected:
            source = self._catalog.source_of(self._trigger, key)
            if source is None:
                continue
            matches = list(self._here.records.matches.of(key, source.name))
            matching = sum(each.matching for each in matches)
            found += matching
            links.append(
                self._aggregated(source, key)
                if source.aggregation
                else self._source(source, key, matching, len(selected))
            )
            self._chain.add_all(
                [self._failed(source, each) for each in matches if each.error],
                f"objects of {key} on which the source fails",
            )
        self._chain.add_all(links, "clusters")
        if not found and not any(link.step == "object" for link in self._chain.links):
            for key in selected[:_REASONS]:
                self._tell_why_none(key)

    def _source(self, source: EventSource, key: str, matching: int, many: int) -> Link:
        place = f" in {key}" if many > 1 else f" in {key}, the one cluster"
        if not matching:
            return Link("source", source.name, "no", f"nothing matches{place}")
        objects = f"{matching} objects match" if matching > 1 else "1 object matches"
        return Link("source", source.name, "yes", f"{objects}{place}")

    def _aggregated(self, source: EventSource, key: str) -> Link:
        """Tell what the source's aggregatedSelection makes of what matches in a cluster."""
        told = report(self._here, key, source.name)
        given = f"{told.given} objects match" if told.given != 1 else "1 object matches"
        said = f": {told.message}" if told.message else ""
        failed = [error for what, error in told.errors if what == AGGREGATION]
        if failed:
            why = failure(source, failed[0])
            return Link("source", source.name, "failed", f"{why}, in {key}", mending(source, why))
        if told.awaited:
            waits = f"{given} in {key}; its aggregatedSelection waits for a resync of all its kinds"
            return Link("source", source.name, "waits", waits, self._results.waiting(key))
        chosen = f"{given} in {key}; its aggregatedSelection returns {len(told.matching)}{said}"
        return Link("source", source.name, "yes" if told.matching else "no", chosen)

    def _failed(self, source: EventSource, match: Match) -> Link:
        name = f"{overview.object_name(match.key)} in {match.cluster}"
        said = failure(source, match.error)
        return Link("object", name, "failed", said, mending(source, said))

    def _tell_why_none(self, key: str) -> None:
        """Judge what is known in a cluster again, and tell the reasons, the nearest miss first."""
        source = self._catalog.source_of(self._trigger, key)
        if source is None:
            return
        limits = luabox.Limits(
            seconds=self._here.settings.script_seconds / 10,
            memory=self._here.settings.script_memory,
        )
        reasons: dict[str, _Reason] = {}
        for candidate, name in islice(self._candidates(key, source), _JUDGED):
            said, failed = _verdict(source, candidate, limits)
            if failed:
                cure = mending(source, said)
                self._chain.add("object", f"{name} in {key}", "failed", said, cure)
                return
            old = reasons.get(said, _Reason(said, name, 0, 0))
            nearness = max(old.nearness, _nearness(source, candidate))
            reasons[said] = old._replace(number=old.number + 1, nearness=nearness)
        if not reasons:
            self._tell_nothing_known(key, source)
        nearest = sorted(reasons.values(), key=lambda each: (-each.nearness, -each.number))
        for each in nearest[:_REASONS]:
            more = f" and {each.number - 1} more" if each.number > 1 else ""
            cure = f"change {each.example}, or EventSource '{source.name}': {each.said}"
            self._chain.add("object", f"{each.example} in {key}{more}", "no", each.said, cure)

    def _tell_nothing_known(self, key: str, source: EventSource) -> None:
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
        self._chain.add("object", "-", "waits", said, self._results.waiting(key))

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
                    yield Candidate(kept.value.manifest), overview.object_name(head.key)

    # What was made ------------------------------------------------------------------------------

    def _tell_profiles(self) -> None:
        outcomes: dict[str, list[DeploymentStatus]] = {}
        for (trigger, _, name), found in overview.outcomes(self._here).items():
            if trigger == self._trigger.name:
                outcomes.setdefault(name, []).extend(found)
        told = 0
        for profile in self._here.records.profiles.heads(self._trigger.name):
            told += 1
            if told <= MOST:
                found = outcomes.get(profile.name, [])
                self._results.tell_made(self._trigger, profile, found)
        if told > MOST:
            failing = sum(
                each.phase.startswith("Failed") for found in outcomes.values() for each in found
            )
            self._chain.note("profile", f"{told - MOST} more profiles; {failing} deployments fail")
        matched = any(link.step == "source" and link.state == "yes" for link in self._chain.links)
        if matched and not told:
            said = "no profile is made yet of what matches"
            cure = self._results.waiting(self._trigger.name)
            self._chain.add("profile", "-", "waits", said, cure)


def _verdict(source: EventSource, candidate: Candidate, limits: luabox.Limits) -> tuple[str, bool]:
    """Judge one object in words; say whether the script failed."""
    try:
        ruling = judge(source, candidate, limits)
    except (ScriptError, TemporaryError) as error:
        return failure(source, str(error)), True
    if ruling.matching:
        return "it matches, and is not evaluated yet", False
    reasons = dict.fromkeys(why_not(each, candidate.manifest) for each in ruling.declined)
    return "; ".join(reasons) or "the source has no selectors", False


def _nearness(source: EventSource, candidate: Candidate) -> int:
    """Count the labels of an object that its source asks about at all."""
    labels = (candidate.manifest.get("metadata") or {}).get("labels") or {}
    asked: set[str] = set()
    for each in source.selectors:
        asked.update(wanted.key for wanted in each.label_filters)
        asked.update(wanted.key for wanted in (each.selector.requirements if each.selector else ()))
    return len(asked & labels.keys())
