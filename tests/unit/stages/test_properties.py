"""Whatever happens in whatever order: once everything heals, the clusters hold what they should.

Users, clusters, senders and crashes do anything; then everybody answers, time passes, each cluster
is swept once, and every record and every object is compared with the model.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bellhop.model.gvk import ObjectKey
from bellhop.settings import Settings
from bellhop.stages import look, survey
from tests.fakes.world import CLUSTERS, CONFIG, KEYS, NAMES, Wish, World


@pytest.fixture(autouse=True, scope="module")
def _short_pages() -> Iterator[None]:
    """Read every list in pages of one object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(look, "PAGE", 1)
        patch.setattr(survey, "PAGE", 1)
        yield


def check_cluster(world: World, cluster: str) -> None:
    """Compare a cluster, and all records about it as a destination, with the model."""
    records = world.fleet.records
    here = f"fleet/{cluster}"
    wishes = [wish for wish in world.wishes() if cluster in wish.destinations]
    owners: dict[str, Wish] = {}
    for wish in sorted(wishes, key=lambda each: each.tier):
        for name in wish.objects:
            owners.setdefault(name, wish)
    length = str(len(world.labels[cluster]))
    values = {name: wish.objects[name].replace("LEN", length) for name, wish in owners.items()}

    kube = world.fleet.access.clusters[here]
    assert {each["metadata"]["name"]: each["data"]["v"] for each in kube.objects(CONFIG)} == values
    inventories = {
        each.profile: {key.name for key, held in each.held.items() if held.digest}
        for each in records.inventories.of(here)
    }
    assert inventories == {
        wish.name: mine
        for wish in wishes
        if (mine := {name for name, owner in owners.items() if owner is wish})
    }
    keys = {name: ObjectKey(CONFIG, "made", name).identity for name in owners}
    found = {item.sort for item in world.fleet.store.query(f"owner/{here}")}
    assert found == {str(key) for key in keys.values()}
    for name, wish in owners.items():
        owner = records.owners.get(here, keys[name])
        assert owner
        assert (owner.value.profile, owner.value.tier) == (wish.name, wish.tier)
    assert {each.profile: (each.phase, each.reason) for each in records.outcomes.of(here)} == {
        wish.name: ("Provisioned", "")
        if all(owners[name] is wish for name in wish.objects)
        else ("FailedNonRetriable", "Conflict")
        for wish in wishes
    }


def check_source(world: World, cluster: str) -> None:
    """Compare what is known of a cluster as a source with what is in it."""
    records = world.fleet.records
    here = f"fleet/{cluster}"
    catalog = world.fleet.catalogs.current()
    assert {(each.source, str(each.key)) for each in records.matches.of(here)} == {
        (source.name, str(ObjectKey.of(each)))
        for trigger in ("each", "all")
        for each in world.matching(cluster, trigger)
        if (source := catalog.source_of(catalog.triggers[trigger], here))
    }
    kube = world.fleet.access.clusters[here]
    assert {str(each.key) for each in records.observations.heads(here) if not each.gone} == {
        str(ObjectKey.of(each)) for gvk in catalog.kinds_in(here) for each in kube.objects(gvk)
    }
    assert records.health.get(here).value.state == "Healthy"


def check(world: World) -> None:
    """Compare everything with the model; nothing may be left over."""
    for cluster in CLUSTERS:
        check_cluster(world, cluster)
        check_source(world, cluster)
    wishes = {wish.name: wish for wish in world.wishes()}
    profiles = {
        each.name: each
        for trigger in ("each", "all", "")
        for each in world.fleet.records.profiles.of(trigger)
    }
    assert profiles.keys() == wishes.keys()
    for name, profile in profiles.items():
        assert {f"fleet/{each}" for each in wishes[name].destinations} == {*profile.destinations}
        assert (profile.leaving, profile.error) == ((), "")
    assert list(world.fleet.records.pending.all()) == []
    for queue in world.fleet.queues.values():
        assert queue.list() == []
    assert '"ERROR"' not in world.fleet.output.getvalue()


_cluster = st.sampled_from(CLUSTERS)
_kind = st.sampled_from(["Service", "Service", "ServiceAccount"])
_name = st.sampled_from(NAMES)
_ring = st.sampled_from(["yes", "yes", "no"])
_push = st.sampled_from(["sent", "sent", "late", "lost"])
_which = st.integers(0, len(KEYS) - 1)
_stages = st.sampled_from(
    [
        "sweep evaluate deploy",
        "sweep evaluate deploy",
        "evaluate deploy",
        "deploy evaluate",
        "sweep",
    ]
)
_verb = st.sampled_from(["resource", "get", "list", "apply", "remove"])
_doom = st.one_of(st.just(0), st.integers(1, 30), st.integers(1, 90))
STEPS = st.one_of(
    st.tuples(
        st.just("put"),
        _cluster,
        _kind,
        _name,
        _ring,
        st.integers(0, 2),
        _push,
    ),
    st.tuples(st.just("drop"), _cluster, _kind, _name, _push),
    st.tuples(st.just("lose"), _cluster, st.integers(0, 5)),
    st.tuples(st.just("late"), st.integers(0, 5), st.booleans()),
    st.tuples(
        st.just("label"),
        _cluster,
        st.sampled_from(["env", "dep", "x"]),
        st.sampled_from(["production", "eng", None]),
    ),
    st.tuples(st.just("apply"), _which, st.integers(0, 2)),
    st.tuples(st.just("delete"), _which),
    st.tuples(st.just("down"), _cluster, st.sampled_from(["silent", "denied", "up"])),
    st.tuples(st.just("down"), _cluster, st.sampled_from(["silent", "denied", "up"]), _verb),
    st.tuples(st.just("sweep"), _cluster, st.booleans()),
    st.tuples(st.just("echo"), _cluster, _kind, _name),
    st.tuples(st.just("work"), st.integers(0, 5), _stages, _doom),
    st.tuples(st.just("work"), st.integers(0, 5), _stages, _doom),
    st.tuples(st.just("work"), st.just(1), st.just("sweep evaluate deploy"), _doom),
    st.tuples(st.just("leave"), _cluster),
    st.tuples(st.just("doom"), st.integers(1, 40)),
)

"""What may happen; `work` may end with the death of whoever works."""

# `make fuzz` asks for this many times the examples, other ones each time.
_FUZZ = int(os.environ.get("BELLHOP_FUZZ") or 0)
_QUICK = settings(
    deadline=None,
    database=None,
    derandomize=not _FUZZ,
    print_blob=bool(_FUZZ),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_start = st.lists(st.integers(0, 2), min_size=len(KEYS), max_size=len(KEYS))


def run(
    start: list[int], steps: list[tuple[Any, ...]], *, lively: bool = True, hasty: bool = False
) -> bool:
    """Declare all in the variants given, go through the steps, heal, and check.

    Say whether anybody died.
    """
    with tempfile.TemporaryDirectory() as folder:
        # Where everybody is hasty, a sweep's turn ends after each step.
        world = World(Path(folder), Settings(turn=timedelta(0)) if hasty else None)
        world.begin(start)
        for name in NAMES:
            world.do_put("east", "Service", name, "yes", 0, "sent")
        if lively:
            world.fleet.pump()
        for verb, *given_ in steps:
            getattr(world, f"do_{verb}")(*given_)

        world.heal()

        check(world)
        world.fleet.close()
        return world.deaths > 0


@settings(_QUICK, max_examples=60 * max(_FUZZ, 1))
@given(start=_start, steps=st.lists(STEPS, min_size=6, max_size=30), lively=st.booleans())
def test_ends_as_the_model_says(
    start: list[int],
    steps: list[tuple[Any, ...]],
    lively: bool,  # noqa: FBT001 - drawn by name
) -> None:
    """The clusters and every record agree with the model, and nothing is left over."""
    run(start, steps, lively=lively, hasty=not lively)


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
        pytest.param(
            [("delete", KEYS.index(("EventTrigger", "", "each")))], 6, id="a trigger goes"
        ),
        pytest.param(
            [("delete", KEYS.index(("EventSource", "", "watched")))], 6, id="a source goes"
        ),
        pytest.param(
            [("apply", KEYS.index(("ConfigMap", "default", "own")), 1)], 4, id="a conflict"
        ),
        pytest.param(
            [("put", "east", "Service", "c", "yes", 1, "sent"), DEATH, _C_GOES],
            4,
            id="an object comes and, after a death, goes",
        ),
        pytest.param(
            [
                ("put", "east", "Service", "0", "yes", 1, "lost"),
                ("put", "east", "Service", "b", "yes", 1, "lost"),
                ("drop", "east", "Service", "a", "lost"),
                ("sweep", "east", False),
            ],
            24,
            id="a sweep finds what was missed",
        ),
    ],
)
def test_survives_death_at_every_step(steps: list[tuple[Any, ...]], stride: int) -> None:
    """Whoever works dies before each thing it does, until it gets to the end.

    Every call is two steps, and after one is as good as before the next; where there are very
    many, some are left out.
    """
    doom, died = -1, True
    while died:
        doom += stride
        work = ("work", 1, "sweep evaluate deploy", doom)
        given_ = steps if DEATH in steps else [*steps, DEATH]
        chosen = [work if step is DEATH else step for step in given_]
        died = run([0] * len(KEYS), chosen, hasty=("sweep", "east", False) in steps)

    assert doom > 20
