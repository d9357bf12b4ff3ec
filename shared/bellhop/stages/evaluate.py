"""Evaluate: one object's newest observation against the sources in force in its cluster.

It talks to no cluster and touches the records of this one object only, so an event costs the
same however many objects match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from bellhop import luabox
from bellhop.engine.catalog import Catalog
from bellhop.engine.criteria import selects
from bellhop.engine.digest import content, digest
from bellhop.errors import ScriptError
from bellhop.model.gvk import ObjectKey
from bellhop.model.kinds import EventSource
from bellhop.model.record import Match, Observation
from bellhop.ports.queue import Message, Queue
from bellhop.records import Records, messages
from bellhop.records.catalogs import Catalogs
from bellhop.settings import Settings
from bellhop.stages.ledger import noting

_LONGEST = 1024
"""Characters of a script's message that are kept."""


class Evaluate:
    """Keeps the matches of one object right, and tells deploy what changed."""

    def __init__(
        self, records: Records, catalogs: Catalogs, deploy: Queue, settings: Settings
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._deploy = deploy
        self._limits = luabox.Limits(seconds=settings.script_seconds, memory=settings.script_memory)

    def handle(self, body: Mapping[str, Any], attempt: int) -> None:
        """Evaluate one object; a repeated try publishes again what the first may not have."""
        cluster, key = body["cluster"], ObjectKey.parse(body["object"])
        seen = self._records.observations.get(cluster, key)
        if seen is None:
            return
        observation = seen.value
        catalog = self._catalogs.current()
        for source in catalog.sources_for(cluster, key.gvk):
            with noting(self._records, body, cluster, body["object"]) as note:
                changed = self._judge(source, observation)
                if changed is None and attempt == 1:
                    continue
                triggers = catalog.triggers_on(cluster, source.name)
                self._deploy.publish(self._follow_up(catalog, triggers, observation, body))
                if changed is not None:
                    note.what = "failed" if changed.error else _WHAT[changed.matching]
                    note.detail = changed.error or changed.message
                    note.context = {"source": source.name, "triggers": list(triggers)}

    def _judge(self, source: EventSource, observation: Observation) -> Match | None:
        """Bring one source's match up to date; return it if the report changed."""
        cluster, key = observation.cluster, observation.key
        kept = self._records.matches.get(cluster, source.name, key)
        old = kept.value if kept else None
        was = old is not None and old.matching
        error = message = ""
        try:
            matching, message = self._evaluate(source, observation)
        except ScriptError as failure:
            # An error is never an empty answer: what matched before is kept.
            matching, error = was, str(failure)
        mark = ""
        if matching:
            mark = old.digest if error and old else self._digest(source, observation)
        if old and (old.matching, old.digest, old.error) == (matching, mark, error):
            return None
        if not matching and not error:
            if old is None:
                return None
            self._records.matches.delete(cluster, source.name, key)
            return replace(old, matching=False, message=message) if was else None
        since = old.since if old and was else self._records.clock.now()
        match = Match(cluster, source.name, key, matching, mark, since, message, error)
        self._records.matches.put(match)
        return match

    def _evaluate(self, source: EventSource, observation: Observation) -> tuple[bool, str]:
        if observation.manifest is None:
            return False, ""
        message = ""
        for selector in source.selectors:
            if not selects(selector, observation.manifest):
                continue
            if not selector.script:
                return True, ""
            try:
                script = _compile(selector.script, source.name, self._limits)
                verdict = luabox.evaluate(script, dict(observation.manifest))
            except luabox.LuaError as error:
                raise ScriptError(str(error), name=source.name) from error
            message = verdict.message[:_LONGEST]
            if verdict.matching:
                return True, message
        return False, message

    def _digest(self, source: EventSource, observation: Observation) -> str:
        # Without collectResources templates see nothing but the reference.
        assert observation.manifest is not None
        return digest(content(observation.manifest)) if source.collect_resources else "reference"

    def _follow_up(
        self,
        catalog: Catalog,
        triggers: tuple[str, ...],
        observation: Observation,
        body: Mapping[str, Any],
    ) -> list[Message]:
        return [
            messages.instantiate(
                name,
                observation.cluster,
                str(observation.key) if catalog.triggers[name].one_for_event else "",
                trace=body["trace"],
                rang=body["rang"],
            )
            for name in triggers
        ]


_WHAT = {True: "matched", False: "unmatched"}


@lru_cache(maxsize=256)
def _compile(text: str, name: str, limits: luabox.Limits) -> luabox.Script:
    return luabox.Script(text, name=name, limits=limits)
