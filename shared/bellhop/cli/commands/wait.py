"""`bellhop wait`: wait until objects meet a condition."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bellhop.cli.command import Command
from bellhop.cli.completion import complete_kind, complete_name, complete_stage
from bellhop.cli.options import DELETE, PROMOTED, PROVISIONED, READY, read_duration
from bellhop.cli.output import Row, format_count, say
from bellhop.cli.queries import (
    PROMOTION,
    ObjectQuery,
    make_missing_error,
    naming_options,
    read_query,
)
from bellhop.cli.session import open_installation
from bellhop.errors import MissingError, TemporaryError

if TYPE_CHECKING:
    from bellhop.diagnosis.profile_status import ProfileStatus
    from bellhop.installation import Installation

_PROFILES = ("clusterprofile", "profile", "rolerequest")
_MEANT = {
    "cluster": READY,
    PROMOTION: PROMOTED,
    **dict.fromkeys((*_PROFILES, "eventtrigger"), PROVISIONED),
}


class Goal(NamedTuple):
    """The condition to wait for, at which stage of a promotion, and for how long."""

    condition: str
    stage: str
    seconds: float


def goal_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --for, --stage and --timeout; `goal` is what they mean."""

    @wraps(command)
    def call(*, condition: str, stage: str, timeout: str, **others: Any) -> None:
        seconds = read_duration(timeout).total_seconds()
        command(goal=Goal(condition, stage, seconds), **others)

    for option in (
        click.option(
            "--timeout",
            metavar="DURATION",
            default="5m",
            show_default=True,
            help="How long to wait, as in 90s or 10m.",
        ),
        click.option(
            "--stage",
            metavar="STAGE",
            default="",
            help="Stage of a promotion.",
            shell_complete=complete_stage,
        ),
        click.option(
            "--for",
            "condition",
            required=True,
            type=click.Choice([READY, PROVISIONED, PROMOTED, DELETE]),
            help="`ready`, of clusters: it answers, and its first resync has succeeded."
            " `provisioned`, of ClusterProfiles, Profiles and RoleRequests: deployed in all"
            " clusters, as it is stored now; of EventTriggers: so are all profiles that it"
            " has generated, one at least. `promoted`, of ClusterPromotions: the newest release has"
            " passed the last stage, or the one of --stage. `delete`, of every kind: it does not"
            " exist any more; a profile exists until its clusters have nothing of it.",
        ),
    ):
        call = option(call)
    return call


@click.command(
    "wait",
    cls=Command,
    usage=(
        "KIND [NAMESPACE/]NAME... --for=CONDITION [OPTIONS]",
        "KIND -l SELECTOR | --all --for=CONDITION [OPTIONS]",
        "promotion NAME --for=promoted [--stage STAGE] [OPTIONS]",
    ),
    examples=(
        "bellhop wait cluster prod/eu-1 --for=ready --timeout 5m",
        "bellhop wait clusterprofile web --for=provisioned",
        "bellhop wait eventtrigger web --for=delete",
        "bellhop wait promotion agent --for=promoted --stage staging --timeout 30m",
    ),
)
@click.argument("kind", shell_complete=complete_kind)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_name)
@naming_options
@click.option("--all", "every", is_flag=True, help="All objects of the kind.")
@goal_options
def command(
    kind: str,
    names: Sequence[str],
    namespace: str,
    selector: str,
    goal: Goal,
    *,
    every: bool,
) -> None:
    """Wait for a condition on objects, and print a line for each that meets it.

    The exit code is 0 once all meet it, 1 if an object does not exist, and 75 after the timeout,
    which reports what each object is waiting for.
    """
    what = _read_queries(kind, names, namespace, selector, every=every)
    meant = _MEANT.get(what[0].kind.singular)
    if goal.condition not in (DELETE, meant):
        possible = " and ".join(f"--for={each}" for each in (meant, DELETE) if each)
        raise click.UsageError(f"{what[0].kind.plural} have {possible}")
    if goal.stage and goal.condition != PROMOTED:
        raise click.UsageError("--stage goes with `promotion NAME --for=promoted`")
    wait(Wait(open_installation(), what, goal), goal.seconds)


def _read_queries(
    kind: str, names: Sequence[str], namespace: str, selector: str, *, every: bool
) -> list[ObjectQuery]:
    """Read the objects to wait for: KIND NAME..., KIND/NAME, by labels, or all."""
    kind, slash, first = kind.partition("/")
    names = [first, *names] if slash else names
    if sum((bool(names), bool(selector), every)) != 1:
        raise click.UsageError("name what to wait for: NAMES, -l SELECTOR or --all")
    return [read_query(kind, each, namespace, selector) for each in names or [""]]


_PAUSES = (1.0, 1.0, 2.0, 3.0)
"""Seconds between two checks; the last one repeats, to call a cloud no more often."""


class Wait:
    """The objects of `bellhop wait`, and what each of them lacks."""

    def __init__(
        self,
        here: Installation,
        objects: Sequence[ObjectQuery],
        goal: Goal,
    ) -> None:
        from bellhop.operations.wait import Quiet

        self._here = here
        self._stage = goal.stage
        self._objects = objects
        self.condition = goal.condition
        self._quiet = Quiet(here)
        self._known: dict[str, None] = {}

    def look(self) -> Mapping[str, str]:
        """Return what each object lacks, by its name; an empty text if it meets the condition."""
        from bellhop.diagnosis import profile_status

        # Before the records are read: they have what was done until then.
        quiet = self.condition in (PROVISIONED, PROMOTED) and self._quiet.look()
        by_profile = self.condition in (PROVISIONED, DELETE)
        statuses = list(profile_status.read_statuses(self._here)) if by_profile else []
        found: dict[str, str] = {}
        for what in self._objects if self.condition == DELETE else ():
            found |= self._leaving(what, statuses)
        for what in self._objects:
            rows = list(self._rows(what))
            found |= {name: self._lacks(what, row, statuses, quiet=quiet) for name, row in rows}
            if not (rows or self._known) and what.query.name:
                found.setdefault(_format_query(what), "")
        if self.condition != DELETE:
            return found
        self._known |= dict.fromkeys(found)
        return {name: found.get(name, "") for name in self._known}

    def _rows(self, what: ObjectQuery) -> Iterator[tuple[str, Row]]:
        rows = list(what.kind.view.rows(self._here, what.query))
        if not rows and self.condition != DELETE:
            if what.query.name:
                raise make_missing_error(self._here, what)
            raise MissingError(f"cannot wait for {what.kind.plural}: there are none of these")
        yield from ((what.kind.object_name(row), row) for row in rows)

    def _leaving(self, what: ObjectQuery, statuses: Sequence[ProfileStatus]) -> Mapping[str, str]:
        """Return the deleted triggers of the query that still have profiles in clusters."""
        if what.kind.singular != "eventtrigger":
            return {}
        found = {}
        for profile in (each.profile for each in statuses):
            name = what.kind.object_name({"namespace": "", "name": profile.trigger})
            if profile.trigger and (profile.trigger == what.query.name or name in self._known):
                found[name] = f"its profile '{profile.shown}' is still there"
        return found

    def _lacks(
        self, what: ObjectQuery, row: Row, statuses: Sequence[ProfileStatus], *, quiet: bool
    ) -> str:
        from bellhop.operations.wait import (
            describe_cluster_gap,
            describe_profile_gap,
            describe_promotion_gap,
        )

        if self.condition == DELETE:
            return "it is still there"
        if self.condition == READY:
            return describe_cluster_gap(self._here, f"{row['namespace']}/{row['name']}")
        if self.condition == PROMOTED:
            return describe_promotion_gap(self._here, row["name"], self._stage, quiet=quiet)
        return describe_profile_gap(self._here, _select_statuses(what, row, statuses), quiet=quiet)


def wait(waited: Wait, seconds: float) -> None:
    """Wait until no object lacks anything, and print a line for each that meets the condition."""
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
        f"timed out: {len(lacking)} of {format_count(len(found), 'object')} {verb} not {state} yet"
    )


def _format_query(what: ObjectQuery) -> str:
    """Return the name of an object that does not exist, without a namespace if none is given."""
    row = {"namespace": what.query.namespace, "name": what.query.name}
    return what.kind.object_name(row).replace("//", "/")


def _select_statuses(
    what: ObjectQuery, row: Row, statuses: Sequence[ProfileStatus]
) -> list[ProfileStatus]:
    """Return the profiles of a row: those of a trigger, or the profile itself."""
    if what.kind.singular == "eventtrigger":
        return [each for each in statuses if each.profile.trigger == row["name"]]
    if row.get("trigger"):
        named = row["trigger"], row["name"]
        return [x for x in statuses if (x.profile.trigger, x.profile.shown) == named]
    from bellhop.api.kinds import DeclarationKey

    [kind] = what.kind.stored
    own = DeclarationKey(kind, row["namespace"], row["name"]).rule
    return [x for x in statuses if (x.profile.trigger, x.profile.name) == ("", own)]
