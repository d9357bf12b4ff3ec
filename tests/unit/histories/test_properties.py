"""Whatever happens in whatever order: once everything heals, the clusters hold what they should.

Users, clusters, senders and crashes do anything; then everybody answers, time passes, each cluster
is resynced once, and every record and every object is compared with the model.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.declared import EACH, FLIP, FLIP_TEXT, KEYS, OWN, OWN_TEXT, WATCHED, Key
from tests.fakes.draws import GUARDED, HISTORIES, STARTS, STEPS, run
from tests.fakes.known import KNOWN
from tests.fakes.overlaps import OVERLAPS
from tests.fakes.world import Step

# `make fuzz` asks for this many times the examples, other ones each time.
_FUZZ = int(os.environ.get("BELLHOP_FUZZ") or 0)
_QUICK = settings(
    deadline=None,
    database=None,
    derandomize=not _FUZZ,
    print_blob=bool(_FUZZ),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.rest
@settings(_QUICK, max_examples=12 * max(_FUZZ, 1))
@given(declared=STARTS, steps=HISTORIES, lively=st.booleans())
def test_ends_as_the_model_says(
    declared: dict[Key, int],
    steps: list[Step],
    lively: bool,  # noqa: FBT001 - drawn by name
) -> None:
    """The clusters and every record agree with the model, and nothing is left over."""
    run(declared, steps, lively=lively)


@pytest.mark.rest
@settings(_QUICK, max_examples=5 * max(_FUZZ, 1))
@given(declared=STARTS, steps=GUARDED)
def test_ends_so_where_what_ends_is_held(declared: dict[Key, int], steps: list[Step]) -> None:
    """Where all that ends is held first, the end is the same once it is released."""
    run(declared, steps, guarded=True)


def test_ends_so_where_a_profile_loses_one_of_its_objects() -> None:
    """A profile in conflict that goes on has its other objects, in whatever order it came."""
    declared = {**dict.fromkeys(KEYS, 0), OWN: 1, OWN_TEXT: 1}
    in_order: list[Step] = [("leave", "east"), ("label", "east", "env", "production")]

    run(declared, in_order, lively=False)
    run(declared, in_order[1:], lively=True)


def test_every_known_history_is_one() -> None:
    """Whatever is left out is the name of a step or of an overlap, and says why in a sentence."""
    names = {name.rstrip(" !+") for name in KNOWN}

    assert names <= {*STEPS, *(overlap.name for overlap in OVERLAPS)}
    assert all(reason.endswith(".") for reason in KNOWN.values())


_SHARE = 9
"""One in so many deaths is played unless BELLHOP_FUZZ is set."""
DEATH = ("the death of whoever works",)
_C_GOES = ("drop", "east", "Service", "c", "sent")


@pytest.mark.rest
@pytest.mark.parametrize(
    ("steps", "stride"),
    [
        pytest.param([("put", "east", "Service", "c", "yes", 1, "sent")], 3, id="an object comes"),
        pytest.param(
            [("put", "east", "Service", "a", "yes", 2, "sent")], 6, id="an object changes"
        ),
        pytest.param(
            [("put", "east", "Service", "a", "no", 0, "sent")], 6, id="it matches no more"
        ),
        pytest.param([("drop", "east", "Service", "a", "sent")], 3, id="an object goes"),
        pytest.param([("delete", KEYS.index(EACH))], 9, id="a trigger goes"),
        pytest.param([("delete", KEYS.index(WATCHED))], 9, id="a source goes"),
        pytest.param([("apply", KEYS.index(OWN_TEXT), 1)], 6, id="a conflict"),
        pytest.param(
            [("put", "east", "Service", "c", "yes", 1, "sent"), DEATH, _C_GOES],
            6,
            id="an object comes and, after a death, goes",
        ),
    ],
)
def test_survives_death_at_every_step(steps: list[Step], stride: int) -> None:
    """The worker dies before each thing it does, until it gets to the end.

    Every call is two steps, and after one is as good as before the next. `make fuzz` plays all
    that count, others a share.
    """
    declared = dict.fromkeys(set(KEYS) - {FLIP, FLIP_TEXT}, 0)
    doom, died = -1, True
    while died:
        doom += stride if _FUZZ else stride * _SHARE
        work = ("work", 1, "sweep evaluate deploy", doom)
        given_ = steps if DEATH in steps else [*steps, DEATH]
        died = run(declared, [work if step is DEATH else step for step in given_])

    assert doom > 20


_A = ("put", "east", "Service", "a", "yes", 0, "sent")
_GOES = ("drop", "east", "Service", "a", "sent")
_ALL = "sweep evaluate deploy"


@pytest.mark.parametrize(
    ("flip", "steps", "lively"),
    [
        pytest.param(
            0,
            [("replace", "east"), ("raise", 0), ("work", 0, _ALL, 0), _A, ("delete", 0)],
            True,
            id="its profile goes after it was applied there",
        ),
        pytest.param(
            0,
            [
                _A,
                _GOES,
                ("overlap", 2, 0, "+"),
                ("gadget",),
                ("replace", "east"),
                ("work", 1, _ALL, 0),
                ("delete", 0),
            ],
            False,
            id="a kind comes with it",
        ),
        pytest.param(
            1,
            [("replace", "east"), ("flip", 0), _A, ("work", 0, _ALL, 0), ("flip", 0), _A],
            True,
            id="its trigger takes another form",
        ),
    ],
)
def test_forgets_nothing_of_a_cluster_that_came_in_place_of_another(
    flip: int,
    steps: list[Step],
    lively: bool,  # noqa: FBT001 - as histories have it
) -> None:
    """Objects that were applied to the new one before a resync are still in an inventory."""
    run({**dict.fromkeys(KEYS, 0), FLIP: flip}, steps, lively=lively)
