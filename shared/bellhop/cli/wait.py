"""Looks at objects until all of them are as a pipeline waits for them to be."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from bellhop.api.kinds import DeclarationKey
from bellhop.cli.options import DELETE, PROVISIONED, READY
from bellhop.cli.output import Row, count, say
from bellhop.cli.queries import Asked, absent
from bellhop.diagnosis import overview
from bellhop.diagnosis.overview import ProfileStatus
from bellhop.errors import MissingError, TemporaryError
from bellhop.installation.installation import Installation
from bellhop.operations.wait import Quiet, cluster_lacks, profiles_lack

_PAUSES = (1.0, 1.0, 2.0, 3.0)
"""Seconds between two looks, the last one again and again: a cloud is asked no more often."""


class Wait:
    """The objects that are waited for, and what they lack."""

    def __init__(self, here: Installation, objects: Sequence[Asked], condition: str) -> None:
        self._here = here
        self._objects = objects
        self.condition = condition
        self._quiet = Quiet(here)
        self._known: dict[str, None] = {}

    def look(self) -> Mapping[str, str]:
        """Return what each object lacks, by its name; nothing where it is as it is to be.

        Raises:
            MissingError: one that is to be something is not there.
        """
        # Before the records are read: they tell what was done until then.
        quiet = self.condition == PROVISIONED and self._quiet.look()
        statuses = list(overview.statuses(self._here)) if self.condition != READY else []
        found: dict[str, str] = {}
        for what in self._objects if self.condition == DELETE else ():
            found |= self._leaving(what, statuses)
        for what in self._objects:
            rows = list(self._rows(what))
            found |= {name: self._lacks(what, row, statuses, quiet=quiet) for name, row in rows}
            if not (rows or self._known) and what.query.name:
                found.setdefault(_named(what), "")
        if self.condition != DELETE:
            return found
        self._known |= dict.fromkeys(found)
        return {name: found.get(name, "") for name in self._known}

    def _rows(self, what: Asked) -> Iterator[tuple[str, Row]]:
        rows = list(what.kind.view.rows(self._here, what.query))
        if not rows and self.condition != DELETE:
            if what.query.name:
                raise absent(self._here, what)
            raise MissingError(f"cannot wait for {what.kind.plural}: there are none of these")
        yield from ((what.kind.object_name(row), row) for row in rows)

    def _leaving(self, what: Asked, statuses: Sequence[ProfileStatus]) -> Mapping[str, str]:
        """Return the triggers waited for that are deleted, and of which clusters have profiles."""
        if what.kind.singular != "eventtrigger":
            return {}
        found = {}
        for profile in (each.profile for each in statuses):
            name = what.kind.object_name({"namespace": "", "name": profile.trigger})
            if profile.trigger and (profile.trigger == what.query.name or name in self._known):
                found[name] = f"its profile '{profile.shown}' is still there"
        return found

    def _lacks(
        self, what: Asked, row: Row, statuses: Sequence[ProfileStatus], *, quiet: bool
    ) -> str:
        if self.condition == DELETE:
            return "it is still there"
        if self.condition == READY:
            return cluster_lacks(self._here, f"{row['namespace']}/{row['name']}")
        return profiles_lack(self._here, _of(what, row, statuses), quiet=quiet)


def wait(waited: Wait, seconds: float) -> None:
    """Look until nothing lacks anything, and say of each object once that is so.

    Raises:
        MissingError: one is not there.
        TemporaryError: that takes longer than so many seconds.
    """
    ends, met, looks = time.monotonic() + seconds, set[str](), 0
    while True:
        found = waited.look()
        for name in [each for each, lacks in found.items() if not lacks and each not in met]:
            met.add(name)
            say(f"{name} {'deleted' if waited.condition == DELETE else waited.condition}")
        lacking = {name: lacks for name, lacks in found.items() if lacks}
        left = ends - time.monotonic()
        if not lacking:
            return
        if left <= 0:
            break
        time.sleep(min(_PAUSES[min(looks, len(_PAUSES) - 1)], left))
        looks += 1
    for name, lacks in lacking.items():
        say(f"error: {name}: {lacks}", err=True)
    state = "deleted" if waited.condition == DELETE else waited.condition
    verb = "is" if len(lacking) == 1 else "are"
    raise TemporaryError(
        f"timed out: {len(lacking)} of {count(len(found), 'object')} {verb} not {state} yet"
    )


def _named(what: Asked) -> str:
    """Return the name of an object that does not exist, without a namespace if none was given."""
    row = {"namespace": what.query.namespace, "name": what.query.name}
    return what.kind.object_name(row).replace("//", "/")


def _of(what: Asked, row: Row, statuses: Sequence[ProfileStatus]) -> list[ProfileStatus]:
    """Return the profiles of a row: those of a trigger, or the one that it is."""
    if what.kind.singular == "eventtrigger":
        return [each for each in statuses if each.profile.trigger == row["name"]]
    if row.get("trigger"):
        named = row["trigger"], row["name"]
        return [x for x in statuses if (x.profile.trigger, x.profile.shown) == named]
    [kind] = what.kind.stored
    own = DeclarationKey(kind, row["namespace"], row["name"]).rule
    return [x for x in statuses if (x.profile.trigger, x.profile.name) == ("", own)]
