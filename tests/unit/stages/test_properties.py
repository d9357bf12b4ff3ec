"""Whatever happens in whatever order: once everything heals, the clusters hold what they should.

Users, clusters, senders and crashes do anything; then everybody answers, time passes, each cluster
is swept once, and every record and every object is compared with the model.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.declared import EACH, FLIP, FLIP_TEXT, KEYS, OWN_TEXT, WATCHED, Key
from tests.fakes.ending import check
from tests.fakes.known import KNOWN, played
from tests.fakes.overlaps import OVERLAPS
from tests.fakes.world import CLUSTERS, NAMES, Step, World, plain

_cluster = st.sampled_from(CLUSTERS)
_kind = st.sampled_from(["Service", "Service", "ServiceAccount", "Widget"])
_name = st.sampled_from(NAMES)
_ring = st.sampled_from(["yes", "yes", "no"])
_push = st.sampled_from(["sent", "sent", "late", "lost"])
_which = st.integers(0, len(KEYS) - 1)
_number = st.integers(0, 40)
_stages = st.sampled_from(
    [*["sweep evaluate deploy"] * 2, "evaluate deploy", "deploy evaluate", "sweep"]
)
_verb = st.sampled_from(["resource", "get", "list", "apply", "remove"])
_how = st.sampled_from(["silent", "denied", "up"])
_doom = st.one_of(st.just(0), st.integers(1, 30), st.integers(1, 90))
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
    "patience": [st.tuples()],
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
}
"""What may happen; `work` may end with the death of whoever works, `overlap` is two or three."""

_ANY = st.one_of(
    *(
        strategy.map(lambda given_, verb=verb: (verb.split()[-1], *given_))
        for verb, strategies in STEPS.items()
        if played(verb)
        for strategy in strategies
    )
)

# `make fuzz` asks for this many times the examples, other ones each time.
_FUZZ = int(os.environ.get("BELLHOP_FUZZ") or 0)
_QUICK = settings(
    deadline=None,
    database=None,
    derandomize=not _FUZZ,
    print_blob=bool(_FUZZ),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_start = st.lists(st.integers(0, 3), min_size=len(KEYS), max_size=len(KEYS))


def run(declared: dict[Key, int], steps: list[Step], *, lively: bool = True) -> bool:
    """Declare all in the variants given, go through the steps, heal, and check.

    Say whether anybody died.
    """
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.begin({key: plain(key, which) for key, which in declared.items()})
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


@settings(_QUICK, max_examples=60 * max(_FUZZ, 1))
@given(start=_start, steps=st.lists(_ANY, min_size=6, max_size=30), lively=st.booleans())
def test_ends_as_the_model_says(
    start: list[int],
    steps: list[Step],
    lively: bool,  # noqa: FBT001 - drawn by name
) -> None:
    """The clusters and every record agree with the model, and nothing is left over."""
    run(dict(zip(KEYS, start, strict=True)), steps, lively=lively)


def test_every_known_history_is_one() -> None:
    """Whatever is left out is the name of a step or of an overlap, and says why in a sentence."""
    names = {name.rstrip(" !+") for name in KNOWN}

    assert names <= {*STEPS, *(overlap.name for overlap in OVERLAPS)}
    assert all(reason.endswith(".") for reason in KNOWN.values())


DEATH = ("the death of whoever works",)
_C_GOES = ("drop", "east", "Service", "c", "sent")


@pytest.mark.parametrize(
    ("steps", "stride"),
    [
        pytest.param([("put", "east", "Service", "c", "yes", 1, "sent")], 2, id="an object comes"),
        pytest.param(
            [("put", "east", "Service", "a", "yes", 2, "sent")], 4, id="an object changes"
        ),
        pytest.param(
            [("put", "east", "Service", "a", "no", 0, "sent")], 4, id="it matches no more"
        ),
        pytest.param([("drop", "east", "Service", "a", "sent")], 2, id="an object goes"),
        pytest.param([("delete", KEYS.index(EACH))], 6, id="a trigger goes"),
        pytest.param([("delete", KEYS.index(WATCHED))], 6, id="a source goes"),
        pytest.param([("apply", KEYS.index(OWN_TEXT), 1)], 4, id="a conflict"),
        pytest.param(
            [("put", "east", "Service", "c", "yes", 1, "sent"), DEATH, _C_GOES],
            4,
            id="an object comes and, after a death, goes",
        ),
    ],
)
def test_survives_death_at_every_step(steps: list[Step], stride: int) -> None:
    """Whoever works dies before each thing it does, until it gets to the end.

    Every call is two steps, and after one is as good as before the next; where there are very
    many, some are left out.
    """
    declared = dict.fromkeys(set(KEYS) - {FLIP, FLIP_TEXT}, 0)
    doom, died = -1, True
    while died:
        doom += stride
        work = ("work", 1, "sweep evaluate deploy", doom)
        given_ = steps if DEATH in steps else [*steps, DEATH]
        died = run(declared, [work if step is DEATH else step for step in given_])

    assert doom > 20
