"""Draws what happens in a World, and plays it to its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

from bellhop.state.messages import INBOXES
from tests.fakes import declared as users
from tests.fakes import rig
from tests.fakes.declared import ALIVE, DRAWN, GRANTED, HOSTED, JUDGED, Key
from tests.fakes.ending import check
from tests.fakes.known import played
from tests.fakes.world import CLUSTERS, NAMES, Step, World, plain

_cluster = st.sampled_from(CLUSTERS)
_kind = st.sampled_from(["Service", "Service", "ServiceAccount", "Widget"])
_name = st.sampled_from(NAMES)
_ring = st.sampled_from(["yes", "yes", "no"])
_push = st.sampled_from(["sent", "sent", "late", "lost"])
_which = st.sampled_from(list(map(users.STEPS.index, [*DRAWN, *HOSTED, *GRANTED, ALIVE])))
_number = st.integers(0, 40)
_stages = st.sampled_from(
    [*["sweep evaluate deploy"] * 2, "evaluate deploy", "deploy evaluate", "sweep"]
)
_verb = st.sampled_from(["resource", "get", "list", "apply", "remove"])
_how = st.sampled_from(["silent", "denied", "up"])
_doom = st.one_of(st.just(0), st.integers(1, 30), st.integers(1, 90))
_wrong = st.sampled_from([1, 24, 60 * 24, 365 * 24, -1, -24, -60 * 24])
_works = [
    st.tuples(st.integers(0, 5), _stages, _doom),
    st.tuples(st.integers(0, 5), _stages, _doom),
    st.tuples(st.just(1), st.just("sweep evaluate deploy"), _doom),
]
STEPS = {
    "put": [st.tuples(_cluster, _kind, _name, _ring, st.integers(0, 2), _push)],
    "drop": [st.tuples(_cluster, _kind, _name, _push)],
    "anew": [st.tuples(_cluster, _kind, _name, st.integers(0, 2), _push)],
    "late": [st.tuples(st.integers(0, 5), st.booleans())],
    "label": [
        st.tuples(
            _cluster,
            st.sampled_from(["env", "dep", "x"]),
            st.sampled_from(["production", "eng", None]),
        )
    ],
    "pause": [st.tuples(_cluster, st.booleans())],
    "apply": [st.tuples(_which, st.integers(0, 3))],
    "delete": [st.tuples(_which)],
    "down": [st.tuples(_cluster, _how), st.tuples(_cluster, _how, _verb)],
    "sweep": [st.tuples(_cluster, st.booleans())],
    "echo": [st.tuples(_cluster, _kind, _name)],
    "replay": [st.tuples(_number)],
    "work": _works,
    "overlap": [st.tuples(st.integers(2, 3), _number, st.sampled_from(["", "!"]))],
    "long overlap": [st.tuples(st.integers(2, 3), _number, st.sampled_from(["+", "+!"]))],
    "leave": [st.tuples(_cluster)],
    "replace": [st.tuples(_cluster)],
    "rotate": [st.tuples(_cluster, st.sampled_from(["new", "newer"]))],
    "doom": [st.tuples(st.integers(1, 40))],
    "week": [st.tuples()],
    "clock": [st.tuples(st.sampled_from([0, 1, 24, -24]))],
    "jump": [st.tuples(_wrong, st.integers(0, 30), _stages, _doom)],
    "patience": [st.tuples()],
    "refuse": [st.tuples(st.sampled_from(sorted(INBOXES)), st.booleans())],
    "dead": [st.tuples()],
    "widgets": [st.tuples(_cluster, st.booleans())],
    "gadget": [st.tuples()],
    "gadgets": [st.tuples(_cluster, st.booleans())],
    "raise": [st.tuples(st.integers(0, 1))],
    "flip": [st.tuples(st.integers(0, 1))],
    "hand": [st.tuples(_cluster, _number)],
    "foreign": [st.tuples(_cluster, _number)],
    "backup": [st.tuples(_cluster)],
    "restore": [st.tuples(_cluster)],
    "host": [st.tuples(st.booleans())],
    "host_down": [st.tuples(_how)],
}
"""The possible moves; `work` may end with the worker's death, `overlap` is two or three."""

ANY = st.one_of(
    *(
        strategy.map(lambda given_, verb=verb: (verb.split()[-1], *given_))
        for verb, strategies in STEPS.items()
        if played(verb)
        for strategy in strategies
    )
)
"""One thing that may happen, of those that should end well by now."""


def _declared(keys: Sequence[Key]) -> st.SearchStrategy[dict[Key, int]]:
    return st.fixed_dictionaries({key: st.integers(0, 3) for key in keys})


def _maybe(keys: Sequence[Key]) -> st.SearchStrategy[dict[Key, int]]:
    return st.one_of(st.just({}), _declared(keys))


def _together(*parts: dict[Key, int]) -> dict[Key, int]:
    return {key: which for part in parts for key, which in part.items()}


STARTS = st.builds(_together, _declared(DRAWN), *map(_maybe, (HOSTED, GRANTED, JUDGED)))
"""What is declared at first; some worlds have what others have not."""

HISTORIES = st.lists(ANY, min_size=6, max_size=30)


GUARDED = st.lists(
    st.one_of(ANY, ANY, ANY, st.just(("release",)), _cluster.map(lambda each: ("weigh", each))),
    min_size=6,
    max_size=30,
)
"""Histories in a world that holds what ends, and in which somebody lets it go now and then."""


def run(
    declared: dict[Key, int], steps: list[Step], *, lively: bool = True, guarded: bool = False
) -> bool:
    """Declare all in the variants given, go through the steps, heal, and check.

    Say whether anybody died.
    """
    with rig.folder() as folder:
        world = World(Path(folder), guarded=guarded)
        world.begin({key: plain(key, which) for key, which in declared.items()})
        world.do(("host", True))
        for name in NAMES:
            world.do_put("east", "Service", name, "yes", 0, "sent")
        if lively:
            world.fleet.pump()
        for step in steps:
            world.do(step)

        world.heal()

        check(world)
        world.fleet.close()
        return world.deaths > 0
