"""Short histories in which two or three act at once, played under every choice of turns.

Each is a small world, what happened before, and who acts. `plays` enumerates the choices: single
interruptions of a sort, at every step if asked for; then two of them, and any from seeds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fakes import rig
from tests.fakes.declared import (
    ALIVE,
    ALL,
    ALL_TEXT,
    CHECKED,
    CHECKED_TEXT,
    CLASS,
    CLASSED,
    CLASSED_TEXT,
    EACH,
    EACH_TEXT,
    FLIP,
    FLIP_TEXT,
    GRANT,
    GRANT_TEXT,
    HEALTH,
    HEARD,
    HERE_TEXT,
    LASTING,
    LASTING_TEXT,
    LOCAL,
    NEAR_TEXT,
    OWN,
    OWN_TEXT,
    READS,
    READS_TEXT,
    STEPS,
    TEAM,
    TEAM_SET,
    TEAM_TEXT,
    THEIRS,
    THEIRS_TEXT,
    THEN,
    THEN_TEXT,
    TOLD,
    TOLD_TEXT,
    WATCHED,
    Key,
)
from tests.fakes.ending import check
from tests.fakes.turns import DIES, LATER, Chooser, Drawn, GivenMoves, Moves, Turns, read, spelled
from tests.fakes.world import Step, World

_ONE: Mapping[Key, int] = {WATCHED: 0, EACH: 0, EACH_TEXT: 0}
_TWO: Mapping[Key, int] = {WATCHED: 0, ALL: 0, ALL_TEXT: 0, OWN: 0, OWN_TEXT: 1}
_HEARD: Mapping[Key, int] = {HEARD: 0, TOLD: 0, TOLD_TEXT: 0}
_CLASSED: Mapping[Key, int] = {CLASS: 0, CLASSED: 0, CLASSED_TEXT: 0}
_THERE: Step = ("put", "east", "Service", "a", "yes", 0, "sent")


_BOTH: Sequence[Step] = (_THERE, ("put", "east", "Service", "b", "yes", 0, "sent"))


@dataclass(frozen=True)
class Overlap:
    """What is declared, what happened before (and was worked off), what is asked for, who acts.

    None stands for a worker, steps for a user or a sender.
    """

    name: str
    declared: Mapping[Key, int]
    before: Sequence[Step]
    asked: Sequence[Step]
    acts: Mapping[str, Sequence[Step] | None]
    clusters: Sequence[str] = ("east",)
    guarded: bool = False
    rung: bool = False
    """Whether reads of templates are followed only by webhook calls, before any resync heals."""


def _overlap(name: str, **given: object) -> Overlap:
    defaults = {"declared": _ONE, "before": [_THERE], "asked": [], "acts": {"a": None, "b": None}}
    return Overlap(name, **{**defaults, **given})  # type: ignore[arg-type]


def _put(ring: str, v: int, *, name: str = "a", large: bool = False) -> Step:
    return ("put", "east", "Service", name, ring, v, "sent", large)


def _apply(key: Key, variant: int) -> Step:
    return ("apply", STEPS.index(key), variant)


def _delete(key: Key) -> Step:
    return ("delete", STEPS.index(key))


def _drop(name: str) -> Step:
    return ("drop", "east", "Service", name, "sent")


def _held(name: str, **given: object) -> Overlap:
    """Return a history of two objects, of which one that ends is too much already."""
    defaults = {"before": _BOTH, "guarded": True}
    return _overlap(name, **{**defaults, **given})


def _agreed() -> list[Step]:
    """Return the moves until just before resyncs confirm that an object which is held is deleted.

    The second of them has ended, and nobody has taken note of that.
    """
    wait: Step = ("work", 61, rig.STAGES, 0)
    resync: Step = ("sweep", "east", False)
    check: Step = ("weigh", "east")
    held: list[Step] = [*_BOTH, wait, _drop("a"), wait, check, wait]
    return [*held, resync, wait, check, wait, resync, wait]


_APPLY, _WELL, _REMOVE, _POST_DELETE = (
    ("gate", "east", word, False)
    for word in ("preDeployChecks", "validateHealths", "preDeleteChecks", "postDeleteChecks")
)


def _open(gate: Step) -> Step:
    return (*gate[:3], True)


def _checked(name: str, **given: object) -> Overlap:
    """Return a history of a profile that is checked before and after all that is done."""
    return _overlap(name, **{"declared": {CHECKED: 0, CHECKED_TEXT: 0}, **given})


def _ordered(name: str, **given: object) -> Overlap:
    """Return a history of two profiles, of which one comes after the other."""
    declared = {OWN: 0, OWN_TEXT: 0, THEN: 0, THEN_TEXT: 0}
    return _overlap(name, **{"declared": declared, "before": [], **given})


def _limited(name: str, **given: object) -> Overlap:
    """Return a history of a profile that goes to one of two clusters at a time."""
    defaults = {"before": [], "asked": [_apply(THEN_TEXT, 1)]}
    declared = {THEN: 2, THEN_TEXT: 0}
    return _overlap(name, declared=declared, clusters=("east", "west"), **{**defaults, **given})


def _lasting(name: str, **given: object) -> Overlap:
    """Return a history of a profile that leaves its objects where it goes."""
    return _overlap(name, **{"declared": {LASTING: 0, LASTING_TEXT: 0}, "before": [], **given})


def _sender(*steps: Step) -> dict[str, Sequence[Step] | None]:
    """Return who acts where a cluster sends something beside two workers."""
    return {"a": None, "b": None, "s": steps}


def _user(*steps: Step) -> dict[str, Sequence[Step] | None]:
    """Return who acts where a user does something beside two workers."""
    return {"a": None, "b": None, "u": steps}


def _hosted(name: str, **given: object) -> Overlap:
    """Return a history of a profile that is Local in part, and of the cluster that hosts that."""
    declared = {LOCAL: 0, NEAR_TEXT: 0, HERE_TEXT: 0}
    defaults = {"before": [("host", True)], "asked": [_apply(HERE_TEXT, 1)]}
    clusters = ("east", "west")
    return _overlap(name, declared=declared, clusters=clusters, **{**defaults, **given})


def _price(v: int, name: str = "price") -> Step:
    return ("put", rig.HOST, "Widget", name, "yes", v, "sent")


def _read(name: str, **given: object) -> Overlap:
    """Return a history of a profile whose template reads a Widget of `mgmt/mgmt`."""
    defaults = {"before": [("host", True), _price(0)], "rung": True}
    return _overlap(name, **{"declared": {READS: 0, READS_TEXT: 0}, **defaults, **given})


def _granted(name: str, *steps: Step) -> Overlap:
    """Return a history of a RoleRequest that gets another role while something else happens."""
    return _overlap(
        name,
        declared={GRANT: 0, GRANT_TEXT: 0},
        before=[],
        asked=[_apply(GRANT_TEXT, 1)],
        acts=_user(*steps),
    )


def _tenanted(name: str, **given: object) -> Overlap:
    """Return a history of rights, and of what was written by them."""
    declared = {GRANT: 0, GRANT_TEXT: 2, THEIRS: 0, THEIRS_TEXT: 0}
    return _overlap(name, **{"declared": declared, "before": [], **given})


def _health_checked(name: str, **given: object) -> Overlap:
    """Return a history of a health check that is asked of a cluster with a Service."""
    defaults = {"asked": [_put("yes", 1)]}
    return _overlap(name, declared={HEALTH: 0, ALIVE: 0}, **{**defaults, **given})


def _cloud_event(minute: int, what: str = "built") -> Step:
    return ("tell", "east", "web", minute, what, minute)


OVERLAPS = [
    _overlap(
        "two events of one subject at once",
        declared=_HEARD,
        before=[],
        acts={"r": [_cloud_event(1)], "s": [_cloud_event(2)], "a": None},
    ),
    _overlap(
        "a CloudEvent is overtaken by its end",
        declared=_HEARD,
        before=[],
        asked=[_cloud_event(2, "removed")],
        acts=_sender(_cloud_event(1)),
    ),
    _overlap(
        "a CloudEvent begins anew while its end is worked on",
        declared=_HEARD,
        before=[_cloud_event(1)],
        asked=[_cloud_event(2, "removed")],
        acts=_sender(_cloud_event(3)),
    ),
    _overlap(
        "a CloudEvent comes again a week after its end",
        declared=_HEARD,
        before=[_cloud_event(1), _cloud_event(2, "removed")],
        asked=[("week",)],
        acts={"s": [_cloud_event(1)], "a": None, "b": None},
    ),
    _overlap(
        "a sweep meets a CloudEvent",
        declared=_HEARD,
        before=[_cloud_event(1)],
        asked=[("sweep", "east", True)],
        acts=_sender(_cloud_event(2)),
    ),
    _overlap(
        "a profile is rolled back while it is carried out, and that is undone",
        declared={OWN: 0, OWN_TEXT: 0},
        before=[_apply(OWN_TEXT, 1)],
        asked=[_apply(OWN_TEXT, 0)],
        acts=_user(("rollback",), ("undo",)),
    ),
    _overlap("an object comes", before=[], asked=[_put("yes", 1)]),
    _overlap("an object changes twice", asked=[_put("yes", 1)], acts=_sender(_put("yes", 2))),
    _overlap(
        "an object matches no more while it is judged",
        before=[_put("no", 0)],
        asked=[_put("yes", 1)],
        acts=_sender(_put("no", 2)),
    ),
    _overlap("an object goes while it is judged", asked=[_put("yes", 1)], acts=_sender(_drop("a"))),
    _overlap(
        "an object goes, and another comes under its name",
        asked=[_drop("a")],
        acts=_sender(_put("yes", 3)),
    ),
    _overlap(
        "two senders tell of one object",
        before=[],
        acts={"r": [_put("yes", 1)], "s": [_put("yes", 2)], "a": None},
    ),
    _overlap(
        "a large object changes while it is read",
        before=[_put("yes", 0, large=True)],
        asked=[_put("yes", 1, large=True)],
        acts=_sender(_put("yes", 2, large=True)),
    ),
    _overlap(
        "rights are taken away while an object is judged",
        declared={**_ONE, WATCHED: 4},
        before=[("permit", "east", True), _THERE],
        asked=[_put("yes", 1), ("sweep", "east", False)],
        acts=_user(("permit", "east", False)),
    ),
    _overlap(
        "rights are given while a sweep asks",
        declared={**_ONE, WATCHED: 4},
        asked=[("sweep", "east", True)],
        acts=_user(("permit", "east", True)),
    ),
    _overlap(
        "rights come and go while they are asked for",
        declared={**_ONE, WATCHED: 4},
        before=[],
        asked=[("permit", "east", True), _put("yes", 1)],
        acts=_user(("permit", "east", False), _put("yes", 2), ("permit", "east", True)),
    ),
    _overlap(
        "a source changes hands while an object is judged",
        before=[("permit", "east", True), _THERE],
        asked=[("tenant", True)],
        acts=_user(("permit", "east", False), _put("yes", 1)),
    ),
    _overlap(
        "a sweep meets an event",
        asked=[("put", "east", "Service", "b", "yes", 1, "lost"), ("sweep", "east", False)],
        acts=_sender(_put("yes", 1)),
    ),
    _overlap("a sweep meets a deletion", asked=[("sweep", "east", True)], acts=_sender(_drop("a"))),
    _overlap(
        "a text changes while it is rendered",
        asked=[_put("yes", 1)],
        acts=_user(_apply(EACH_TEXT, 1)),
    ),
    _overlap(
        "a source changes while an object is judged",
        asked=[_put("no", 1)],
        acts=_user(_apply(WATCHED, 1)),
    ),
    _overlap(
        "a source goes while an object is judged",
        asked=[_put("yes", 1)],
        acts=_user(_delete(WATCHED)),
    ),
    _overlap(
        "a trigger goes while it is instantiated", asked=[_put("yes", 1)], acts=_user(_delete(EACH))
    ),
    _overlap("a trigger goes and comes", acts=_user(_delete(EACH), _apply(EACH, 2))),
    _overlap(
        "a trigger is made anew in another form",
        declared={WATCHED: 0, FLIP: 0, FLIP_TEXT: 0},
        acts=_user(("flip", 1)),
    ),
    _overlap(
        "a profile shrinks and grows while it is applied",
        declared={OWN: 0, OWN_TEXT: 0},
        before=[],
        asked=[_apply(OWN_TEXT, 1)],
        acts=_user(_apply(OWN_TEXT, 0)),
    ),
    _overlap(
        "a profile goes while it is applied",
        declared={OWN: 0, OWN_TEXT: 0},
        before=[],
        asked=[_apply(OWN_TEXT, 1)],
        acts=_user(_delete(OWN)),
    ),
    _overlap("two profiles want one object", declared=_TWO, before=[], asked=[_THERE]),
    _overlap(
        "the winner of an object gives it up while another takes it",
        declared=_TWO,
        asked=[_put("yes", 1)],
        acts=_user(_apply(OWN_TEXT, 0)),
    ),
    _overlap(
        "tiers change sides", declared=_TWO, asked=[_put("yes", 1)], acts=_user(_apply(OWN, 1))
    ),
    _overlap(
        "a destination is left and chosen again",
        declared={WATCHED: 0, EACH: 1, EACH_TEXT: 2},
        asked=[("label", "west", "dep", None)],
        acts=_user(("label", "west", "dep", "eng")),
        clusters=("east", "west"),
    ),
    _overlap(
        "two clusters are left at once",
        declared={OWN: 0, OWN_TEXT: 0},
        before=[("label", "east", "dep", "eng"), ("label", "west", "dep", "eng")],
        asked=[_delete(OWN)],
        clusters=("east", "west"),
    ),
    _overlap(
        "two clusters are left while their profile comes back",
        declared={OWN: 0, OWN_TEXT: 0},
        before=[("label", "east", "dep", "eng"), ("label", "west", "dep", "eng")],
        asked=[_delete(OWN)],
        acts=_user(_apply(OWN, 1)),
        clusters=("east", "west"),
    ),
    _overlap(
        "a profile goes and comes and goes while its clusters are left",
        declared={OWN: 0, OWN_TEXT: 0},
        before=[("label", "east", "dep", "eng"), ("label", "west", "dep", "eng")],
        asked=[_delete(OWN)],
        acts=_user(_apply(OWN, 1), _delete(OWN)),
        clusters=("east", "west"),
    ),
    _lasting(
        "a profile that leaves its objects comes back while it goes",
        asked=[_delete(LASTING)],
        acts=_user(_apply(LASTING, 0)),
    ),
    _lasting(
        "a cluster whose objects are left is chosen again with others to bring",
        asked=[("label", "east", "dep", None), _apply(LASTING_TEXT, 1)],
        acts=_user(("label", "east", "dep", "eng")),
    ),
    _lasting(
        "others make an object anew that is left, and its profile comes back",
        asked=[("foreign", "east", 0), _delete(LASTING)],
        acts=_user(_apply(LASTING, 0)),
    ),
    _overlap(
        "a Profile goes while its cluster leaves it",
        declared={TEAM: 0, TEAM_TEXT: 0},
        before=[],
        asked=[("label", "west", "dep", None)],
        acts=_user(_delete(TEAM)),
        clusters=("east", "west"),
    ),
    _overlap(
        "a Set changes while its Profile is applied",
        declared={TEAM: 2, TEAM_TEXT: 0, TEAM_SET: 0},
        before=[],
        asked=[_apply(TEAM_TEXT, 1)],
        acts=_user(_apply(TEAM_SET, 1)),
        clusters=("east", "west"),
    ),
    _overlap(
        "a Profile and a ClusterProfile of its name change sides",
        declared={OWN: 0, OWN_TEXT: 0, TEAM: 0, TEAM_TEXT: 2},
        before=[],
        asked=[_apply(OWN, 1)],
        acts=_user(_apply(OWN, 0)),
    ),
    _tenanted(
        "rights are deleted with what was written by them", asked=[_delete(GRANT), _delete(THEIRS)]
    ),
    _tenanted(
        "rights are deleted with what is about to be written by them",
        asked=[_apply(THEIRS_TEXT, 1)],
        acts=_user(_delete(THEIRS), _delete(GRANT)),
    ),
    _tenanted(
        "a cluster loses rights and what was written by them, and has them again",
        asked=[("label", "east", "dep", None)],
        acts=_user(("label", "east", "dep", "eng")),
    ),
    _tenanted(
        "rights come again while they wait for what leaves by them",
        asked=[_delete(GRANT), _delete(THEIRS)],
        acts=_user(_apply(GRANT, 0)),
    ),
    _ordered(
        "a profile and the one before it change at once",
        asked=[_apply(OWN_TEXT, 1), _apply(THEN_TEXT, 1)],
    ),
    _ordered("a profile is withdrawn with the one before it", asked=[_delete(THEN), _delete(OWN)]),
    _ordered(
        "a profile and the one before it leave a cluster",
        asked=[("label", "east", "dep", None)],
        acts=_user(("label", "east", "dep", "eng")),
    ),
    _ordered(
        "what a profile waits for is applied",
        declared={OWN_TEXT: 0, THEN: 0, THEN_TEXT: 0},
        asked=[_apply(THEN_TEXT, 1)],
        acts=_user(_apply(OWN, 0)),
    ),
    _ordered(
        "what a profile stands on goes and comes while it is applied",
        asked=[_apply(THEN_TEXT, 1)],
        acts=_user(_delete(OWN), _apply(OWN, 0)),
    ),
    _ordered(
        "a profile goes while what it stands on is withdrawn",
        asked=[_delete(OWN)],
        acts=_user(_delete(THEN)),
    ),
    _ordered(
        "a profile stands on another no more while that is withdrawn",
        asked=[_delete(OWN)],
        acts=_user(_apply(THEN, 1)),
    ),
    _ordered(
        "a profile comes back while it goes before the one that it stands on",
        asked=[_delete(THEN)],
        acts=_user(_apply(THEN, 0), _delete(THEN), _delete(OWN)),
    ),
    _limited("two clusters change one after the other"),
    _limited(
        "another revision comes while clusters change one after the other",
        acts=_user(_apply(THEN_TEXT, 0)),
    ),
    _limited(
        "a cluster leaves, and comes back, while clusters change one after the other",
        acts=_user(("label", "east", "dep", None), ("label", "east", "dep", "eng")),
    ),
    _limited(
        "a profile goes while its clusters change one after the other", acts=_user(_delete(THEN))
    ),
    _limited(
        "clusters change all at once from now on", acts=_user(_apply(THEN, 1), _apply(THEN, 2))
    ),
    _limited(
        "a cluster is paused, and resumed, while clusters change one after the other",
        acts=_user(("pause", "east", True), ("pause", "east", False)),
    ),
    _overlap(
        "a cluster is paused, and resumed, while a profile is applied in it",
        declared={OWN: 0, OWN_TEXT: 0},
        before=[],
        asked=[_apply(OWN_TEXT, 1)],
        acts=_user(("pause", "east", True), ("pause", "east", False)),
    ),
    _overlap(
        "a cluster is resumed while a profile leaves it",
        declared={OWN: 0, OWN_TEXT: 0},
        before=[("pause", "east", True)],
        asked=[_delete(OWN)],
        acts=_user(("pause", "east", False)),
    ),
    _overlap(
        "a cluster is resumed beside an event",
        before=[_THERE, ("pause", "east", True)],
        asked=[_put("yes", 1)],
        acts={"a": None, "b": None, "u": [("pause", "east", False)], "s": [_put("yes", 2)]},
    ),
    _overlap(
        "a cluster is resumed while triggers select it no more",
        before=[_THERE, ("work", 0, rig.STAGES, 0), ("pause", "east", True)],
        asked=[("label", "east", "env", None)],
        acts=_user(("pause", "east", False)),
    ),
    _overlap(
        "a paused cluster leaves and comes back while it is worked on",
        before=[_THERE, ("pause", "east", True)],
        asked=[_put("yes", 1)],
        acts=_user(("leave", "east")),
    ),
    _overlap(
        "a source cluster is chosen no more while it is swept",
        asked=[("sweep", "east", True)],
        acts=_user(("label", "east", "env", None)),
    ),
    _overlap(
        "a label is set while a token is renewed",
        acts={"t": [("rotate", "east", "new")], "u": [("label", "east", "x", "1")], "a": None},
    ),
    _overlap(
        "two labels are set at once",
        acts={"t": [("label", "east", "x", "1")], "u": [("label", "east", "y", "1")], "a": None},
    ),
    _overlap(
        "a cluster leaves and comes back while it is worked on",
        asked=[_put("yes", 1)],
        acts=_user(("leave", "east")),
    ),
    _overlap(
        "a cluster is made anew while it is worked on",
        asked=[_put("yes", 1)],
        acts=_user(("replace", "east"), ("sweep", "east", False)),
    ),
    _overlap(
        "a backup is restored while it is worked on",
        before=[("backup", "east"), _THERE],
        asked=[_put("yes", 1)],
        acts=_user(("restore", "east"), ("sweep", "east", False)),
    ),
    _overlap(
        "an apiVersion is raised while it is applied",
        declared={OWN: 0, OWN_TEXT: 2},
        before=[],
        asked=[("sweep", "east", True)],
        acts=_user(("raise", 1)),
    ),
    _overlap(
        "others make an object anew while it is applied",
        declared={OWN: 0, OWN_TEXT: 0},
        before=[],
        asked=[_apply(OWN_TEXT, 1)],
        acts=_user(("foreign", "east", 0)),
    ),
    _overlap(
        "a profile goes while it adopts what others made",
        declared={OWN: 0, OWN_TEXT: 0},
        before=[],
        asked=[("foreign", "east", 0), _apply(OWN_TEXT, 1)],
        acts=_user(_delete(OWN)),
    ),
    _overlap(
        "two profiles adopt what others made",
        declared={**_TWO, OWN_TEXT: 0},
        asked=[("foreign", "east", 0), _apply(OWN_TEXT, 1), _put("yes", 1)],
    ),
    _overlap(
        "a definition vanishes while its objects are judged",
        declared={WATCHED: 3, EACH: 0, EACH_TEXT: 0},
        before=[("put", "east", "Widget", "a", "yes", 0, "sent")],
        asked=[("put", "east", "Widget", "a", "yes", 1, "sent")],
        acts=_user(("widgets", "east", False)),
    ),
    _checked(
        "the ground becomes ready while a new revision comes",
        before=[_APPLY],
        asked=[_apply(CHECKED_TEXT, 1)],
        acts=_user(_open(_APPLY), _apply(CHECKED, 1)),
    ),
    _checked(
        "what was brought becomes healthy while a new revision comes",
        before=[_WELL],
        asked=[("sweep", "east", True), _apply(CHECKED, 1)],
        acts=_user(_open(_WELL), _apply(CHECKED_TEXT, 1)),
    ),
    _checked(
        "a profile goes that waits to be healthy",
        before=[_WELL],
        asked=[_apply(CHECKED_TEXT, 1)],
        acts=_user(_delete(CHECKED), _open(_WELL)),
    ),
    _checked(
        "a profile comes back whose removal waits for its check",
        before=[("gate", "east", "", True), _REMOVE],
        asked=[_delete(CHECKED)],
        acts=_user(_apply(CHECKED, 0)),
    ),
    _checked(
        "a removal is let go while its profile comes back",
        before=[("gate", "east", "", True), _REMOVE],
        asked=[_delete(CHECKED)],
        acts=_user(_open(_REMOVE), _apply(CHECKED, 1)),
    ),
    _checked(
        "a cluster is chosen again while what follows its removal is waited for",
        before=[("gate", "east", "", True), _POST_DELETE],
        asked=[("label", "east", "dep", None)],
        acts=_user(("label", "east", "dep", "eng"), _open(_POST_DELETE)),
    ),
    _checked(
        "a profile goes whose clusters wait for their checks",
        before=[
            ("gate", "east", "", True),
            ("gate", "west", "", True),
            _REMOVE,
            ("gate", "west", "postDeleteChecks", False),
        ],
        asked=[_delete(CHECKED)],
        acts=_user(_open(_REMOVE)),
        clusters=("east", "west"),
    ),
    _overlap(
        "a cluster satisfies a classifier while it loses its label",
        declared=_CLASSED,
        asked=[_put("no", 1), ("patience",)],
        acts=_sender(_put("yes", 2)),
    ),
    _overlap(
        "the last of two objects that bring a label goes",
        declared=_CLASSED,
        before=_BOTH,
        asked=[_drop("a")],
        acts=_sender(_drop("b")),
    ),
    _overlap(
        "a label is set while a classifier gives it",
        declared=_CLASSED,
        before=[],
        asked=[_THERE],
        acts=_user(("label", "east", "class", "mine")),
    ),
    _overlap(
        "a label is taken away while a classifier takes it back",
        declared=_CLASSED,
        asked=[_drop("a")],
        acts=_user(("label", "east", "class", None), _put("yes", 3)),
    ),
    _overlap(
        "a classifier goes while it gives a label",
        declared=_CLASSED,
        before=[],
        asked=[_THERE],
        acts=_user(_delete(CLASS)),
    ),
    _overlap(
        "a classifier goes and comes while a sweep asks for it",
        declared=_CLASSED,
        asked=[("sweep", "east", True)],
        acts=_user(_delete(CLASS), _apply(CLASS, 1)),
    ),
    _overlap(
        "a cluster leaves and comes back while it is classified",
        declared=_CLASSED,
        before=[],
        asked=[_THERE],
        acts=_user(("leave", "east")),
    ),
    _hosted(
        "a cluster is chosen no more while what is Local for it changes",
        acts=_user(("label", "west", "dep", None)),
    ),
    _hosted(
        "a label that is in what is Local changes while that is rendered",
        asked=[("label", "west", "x", "1")],
        acts=_user(("label", "west", "y", "1"), ("label", "east", "x", "1")),
    ),
    _hosted(
        "a cluster leaves and comes back while what is Local for it is brought",
        acts=_user(("leave", "west")),
    ),
    _hosted(
        "the host comes while what it is to host is waiting for it",
        before=[],
        asked=[_apply(NEAR_TEXT, 1)],
        acts=_user(("host", True)),
    ),
    _hosted(
        "the host leaves and comes back while what is Local is brought",
        acts=_user(("host", False), ("host", True)),
    ),
    _hosted(
        "the host is paused, and resumed, while what is Local is brought",
        acts=_user(("pause", "mgmt", True), ("pause", "mgmt", False)),
    ),
    _hosted(
        "a profile goes while its host is to be left and its clusters are, too",
        asked=[("label", "east", "dep", None)],
        acts=_user(_delete(LOCAL), ("host", False)),
    ),
    _health_checked(
        "a resource is well again while it is found not to be", acts=_sender(_put("yes", 0))
    ),
    _health_checked(
        "a health check changes while a resource is judged",
        asked=[_put("yes", 2)],
        acts=_user(_apply(HEALTH, 1)),
    ),
    _health_checked(
        "a cluster's health is asked for no more, and again, while a resource is judged",
        acts=_user(_delete(ALIVE), _apply(ALIVE, 0)),
    ),
    _health_checked(
        "a cluster with something that is not well leaves and comes back",
        acts=_user(("leave", "east")),
    ),
    _granted(
        "a cluster is chosen no more while rights are given in it", ("label", "east", "dep", None)
    ),
    _granted(
        "a RoleRequest goes and comes while it gives rights", _delete(GRANT), _apply(GRANT, 1)
    ),
    _held("two objects end at once and are held", asked=[_drop("a"), _drop("b")]),
    _held(
        "an object comes back while it is about to be held",
        asked=[_drop("a")],
        acts=_sender(_put("yes", 1)),
    ),
    _held(
        "an object that is held comes back while it is let go",
        before=[*_BOTH, _drop("a")],
        asked=[("release",)],
        acts=_sender(_put("yes", 1)),
    ),
    _held(
        "another object ends while what is held is let go",
        before=[*_BOTH, _drop("a")],
        asked=[("release",)],
        acts=_sender(_drop("b")),
    ),
    _held(
        "two let go what is held",
        before=[*_BOTH, _drop("a")],
        acts={"u": [("release",)], "v": [("release",)], "a": None},
    ),
    _held(
        "the last object that is held comes back while it is weighed",
        before=[*_BOTH, _drop("a")],
        asked=[("weigh", "east")],
        acts=_sender(_put("yes", 1), ("weigh", "east"), _drop("b")),
    ),
    _held(
        "a source is mended while what it ended is about to be held",
        asked=[_apply(WATCHED, 2)],
        acts=_user(_apply(WATCHED, 0)),
    ),
    _held(
        "a trigger goes while what it brought is held",
        before=[*_BOTH, _drop("a")],
        asked=[_drop("b")],
        acts=_user(_delete(EACH)),
    ),
    _held(
        "what a profile for all is made of is held while another object comes",
        declared={WATCHED: 0, ALL: 0, ALL_TEXT: 0},
        asked=[_drop("a")],
        acts=_sender(_put("yes", 1, name="c")),
    ),
    _held(
        "two sweeps find at once what has ended",
        before=[*_BOTH, ("drop", "east", "Service", "a", "lost")],
        asked=[("sweep", "east", True), ("sweep", "east", False)],
    ),
    _held(
        "a sweep and a ring end an object each",
        before=[*_BOTH, ("drop", "east", "Service", "a", "lost")],
        asked=[("sweep", "east", True)],
        acts=_sender(_drop("b")),
    ),
    _held(
        "an object comes back while sweeps agree that it is gone",
        before=_agreed(),
        asked=[("weigh", "east")],
        acts=_sender(_put("yes", 1)),
    ),
    _held(
        "another object ends while sweeps agree about the first",
        before=_agreed(),
        asked=[("weigh", "east")],
        acts=_sender(_drop("b")),
    ),
    _held(
        "what sweeps agree on is released at that moment",
        before=_agreed(),
        asked=[("weigh", "east"), ("weigh", "east")],
        acts=_user(("release",)),
    ),
    _held(
        "a source is written anew while a sweep finds what has ended",
        before=[*_BOTH, ("drop", "east", "Service", "a", "lost")],
        asked=[("sweep", "east", True)],
        acts=_user(_apply(WATCHED, 2)),
    ),
    _held(
        "what was held ends again a week after it came back",
        before=[*_BOTH, _drop("a"), _put("yes", 1), ("week",), _drop("a"), ("week",)],
        asked=[_put("yes", 2), _drop("a")],
        acts=_user(("release",)),
    ),
    _held(
        "a profile for all is made anew while what it is made of is forgotten with its kind",
        declared={WATCHED: 0, ALL: 0, ALL_TEXT: 0},
        asked=[_apply(WATCHED, 2)],
        acts=_user(_apply(ALL, 1), _apply(WATCHED, 0)),
    ),
    _held(
        "a cluster leaves while something of it is about to be held",
        asked=[_drop("a")],
        acts=_user(("leave", "east")),
    ),
    _read(
        "what is read changes while it is read for the first time",
        declared={READS_TEXT: 0},
        asked=[_apply(READS, 0)],
        acts=_sender(_price(1)),
    ),
    _read(
        "what is read comes while it is missed for the first time",
        declared={READS_TEXT: 0},
        before=[("host", True)],
        asked=[_apply(READS, 0)],
        acts=_sender(_price(1)),
    ),
    _read(
        "what is read changes, and goes, and comes again",
        asked=[_price(1)],
        acts=_sender(("drop", rig.HOST, "Widget", "price", "sent"), _price(2)),
    ),
    _read(
        "another object is read from now on, and both change",
        asked=[_apply(READS, 1)],
        acts=_sender(_price(1), _price(2, "other")),
    ),
    _read(
        "what was to be read no more is read again",
        asked=[_delete(READS)],
        acts={"a": None, "b": None, "u": [_apply(READS, 0)], "s": [_price(1)]},
    ),
    _read(
        "what was read no more is read again while a sweep lets go of its kind",
        before=[("host", True), _price(0), _apply(READS, 2)],
        asked=[("sweep", rig.HOST, False)],
        acts={"a": None, "b": None, "u": [_apply(READS, 0)], "s": [_price(1)]},
    ),
    _read(
        "a cluster is left and chosen again while what it reads changes",
        asked=[("label", "east", "dep", None)],
        acts={"a": None, "b": None, "u": [("label", "east", "dep", "eng")], "s": [_price(1)]},
        clusters=("east", "west"),
    ),
    _read(
        "the cluster that is read comes after who reads it",
        before=[],
        asked=[("host", True)],
        acts=_sender(_price(1)),
    ),
]
"""Each has two workers at least, or other actors that may meet."""

SORTS = ("", LATER, DIES)
"""Interruptions: by another, by another for so long that all that was held is not, by death."""


def play(overlap: Overlap, chooser: Chooser) -> Turns:
    """Play one history to its end, heal, and check.

    Raises:
        AssertionError: it ended otherwise than the model says; a note says how to play it again.
    """
    with _world(overlap) as world:
        turns = None
        try:
            turns = world.overlap(overlap.acts, chooser)
            world.heal()
            check(world)
        except BaseException as error:
            moves = spelled(world.last_moves)
            error.add_note(f"played: '{overlap.name}' with the moves '{moves}'")
            raise
    return turns


@contextmanager
def _world(overlap: Overlap) -> Iterator[World]:
    with rig.folder() as folder:
        world = World(Path(folder), overlap.clusters, guarded=overlap.guarded, rung=overlap.rung)
        try:
            world.begin(overlap.declared)
            for step in overlap.before:
                world.do(step)
            world.fleet.pump()
            for step in overlap.asked:
                world.do(step)
            yield world
        finally:
            world.fleet.close()


def single(overlap: Overlap, sort: str, steps: int, stride: int = 1) -> Iterator[Moves]:
    """Yield one interruption of a sort at every step, or at each n-th, by each other actor."""
    for at in range(1, steps + 1, stride):
        for other in _others(overlap, sort):
            yield {at: other + sort}


def _others(overlap: Overlap, sort: str) -> list[str]:
    """Name the actors that may go on; of a death there is one sort only."""
    return [""] if sort == DIES else list(overlap.acts)[1:]


def again(text: str) -> Turns:
    """Play once more the history of a failure's note.

    Raises:
        LookupError: it is no such note.
    """
    overlap, moves = read_note(text)
    return play(overlap, GivenMoves(moves))


def read_note(text: str) -> tuple[Overlap, Moves]:
    """Return which history a failure's note names, and its moves.

    Raises:
        LookupError: it is no such note.
    """
    found = re.search(r"'(?P<name>.+)' with the moves '(?P<moves>[^']*)'", text)
    if not found:
        raise LookupError(f"cannot find what was played in {text!r}")
    overlap = next(each for each in OVERLAPS if each.name == found["name"])
    return overlap, read(found["moves"])


def pairs(overlap: Overlap, sort: str, steps: int, count: int, draw: Random) -> Iterator[Moves]:
    """Yield that many draws of two interruptions, of which the second is of the sort."""
    others = list(overlap.acts)
    for _ in range(count):
        first, second = sorted(draw.sample(range(1, steps + 1), 2))
        last = DIES if sort == DIES else draw.choice(others) + sort
        yield {first: draw.choice(others[1:]) + (sort if sort == LATER else ""), second: last}


def plays(
    overlap: Overlap, sort: str, *, most: int, twice: int = 0, seeds: Sequence[int] = ()
) -> Iterator[Chooser]:
    """Yield choosers: `most` single interruptions, evenly, `twice` of two, and one a seed."""
    steps = play(overlap, GivenMoves({})).steps
    stride = max(steps * len(_others(overlap, sort)) // most, 1)
    for moves in single(overlap, sort, steps, stride):
        yield GivenMoves(moves)
    for moves in pairs(overlap, sort, steps, twice, Random(sum(seeds))):
        yield GivenMoves(moves)
    for seed in seeds:
        yield Drawn(seed, rare=8, kinds=sort)
