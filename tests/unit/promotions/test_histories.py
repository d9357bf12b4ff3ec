"""Random histories of a promotion: deaths, two workers, repeated messages, clocks that jump.

Clusters fail, refuse a release, join and leave.

A model of what was deployed, approved and passed says what may be where: nothing is in a stage that
the stage before did not have in all its clusters. In the end all has healed and is approved, and
each stage has the newest release.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.errors import ConflictError, InvalidError, UnreachableError
from bellhop.operations import promotions
from bellhop.state.messages import Promote, Resolve
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import CONFIG
from tests.unit.promotions.conftest import STAGES, Fleet3, auto, manual, promotion, version

HOUR = timedelta(hours=1)
MOMENT = timedelta(seconds=1)
GATES = (auto("staging", delay="30m"), manual("canary"), {"name": "production"})
STEPS = 16


class Model:
    """Versions that each stage has had in all its clusters, and those approved for canary."""

    def __init__(self) -> None:
        self.had: dict[str, set[str]] = {stage: set() for stage in STAGES}
        self.approved: set[str] = set()

    def look(self, staged: Fleet3) -> None:
        """Note what the stages have, and check that each came by its turn."""
        for stage, before in zip(STAGES, (None, *STAGES), strict=False):
            found = [_version(staged, name) for name in staged.kubes if name.startswith(stage)]
            for each in set(found) - {""}:
                assert before is None or each in self.had[before], (stage, each, self.had)
                assert stage != "production" or each in self.approved, (each, self.approved)
            if len(set(found)) == 1:
                self.had[stage] |= set(found)


def _version(staged: Fleet3, name: str) -> str:
    objects = staged.kubes[name].objects(CONFIG)
    return str(objects[0]["data"]["v"]) if objects else ""


class History:
    """One history."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.fleet = Fleet(folder)
        self.staged = Fleet3(self.fleet)
        self.fate = rig.make_mortal(self.fleet)
        self.model = Model()
        self.versions = 1
        self.joined = 2
        self.ends: dict[str, Callable[[], None]] = {}
        self.fleet.deploy(version("1"), promotion(*GATES))

    def play(self) -> None:
        steps = (self.change, self.approve, self.fail, self.refuse, self.heal)
        steps += (self.repeat, self.jump, self.wait, self.join, self.leave)
        for _ in range(STEPS):
            self.draw.choice(steps)()
            self.work()
        self.end()

    def change(self) -> None:
        """Apply the next version, in a process that may die; then it is applied again."""
        self.versions += 1
        text = version(str(self.versions))
        if rig.kill(
            self.fleet, self.fate, self.draw.randrange(5, 60), lambda: self.fleet.apply(text)
        ):
            self.fleet.apply(text)

    def approve(self) -> None:
        """Approve what is at canary, if anything is."""
        here = self.fleet.installation()
        with suppress(ConflictError):
            decision = promotions.approve(here, "agent", by="ann", stage="canary")
            self.model.approved.add(self._version_of(decision.release))

    def _version_of(self, release: int) -> str:
        kept = self.fleet.records.releases.get("agent", release)
        assert kept
        manifest = kept.value.inputs["ConfigMap default/agent"]
        text = next(iter(manifest["data"].values()))
        return str(text.split("v: '")[1].split("'")[0])

    def fail(self) -> None:
        self.draw.choice(list(self.staged.kubes.values())).fail_with(UnreachableError("is down"))

    def refuse(self) -> None:
        """Have a cluster answer, and refuse whatever is deployed next."""
        name = self.draw.choice(list(self.staged.kubes))
        if name not in self.ends:
            kube = self.staged.kubes[name]
            self.ends[name] = kube.refuse("agent", InvalidError("its webhook refuses it"))

    def heal(self) -> None:
        for kube in self.staged.kubes.values():
            kube.fail_with(None)
        while self.ends:
            self.ends.popitem()[1]()

    def join(self) -> None:
        """Register a cluster of any stage."""
        self.joined += 1
        stage = self.draw.choice(STAGES)
        name = f"{stage}{self.joined}"
        self.staged.kubes[name] = self.fleet.register(name, env=stage)

    def leave(self) -> None:
        """Deregister a cluster of a stage that has others, as it is."""
        name = self.draw.choice(list(self.staged.kubes))
        stage = name.rstrip("0123456789")
        if sum(each.startswith(stage) for each in self.staged.kubes) > 1:
            self.fleet.declare.deregister(f"fleet/{name}")
            del self.staged.kubes[name]
            self.ends.pop(name, None)

    def repeat(self) -> None:
        """Deliver messages again, as queues may at any time."""
        names = [f"agent-{each}" for each in STAGES]
        self.fleet.publisher.publish([Promote("agent"), *map(Resolve, names)])

    def jump(self) -> None:
        self.fleet.clock.jump(self.draw.choice((HOUR, -HOUR)))

    def wait(self) -> None:
        self.fleet.clock.advance(self.draw.choice((timedelta(minutes=20), HOUR)))

    def work(self) -> None:
        """Work for some moments, in processes that may die."""
        for _ in range(4):
            self.fleet.clock.advance(MOMENT)
            drawn = self.draw.random()
            if drawn < 0.3:
                rig.kill(self.fleet, self.fate, self.draw.randrange(2, 120))
            elif drawn < 0.6:
                self.race()
            else:
                self.fleet.pump()
            self.model.look(self.staged)

    def race(self) -> None:
        """Work in two processes: one does all that is due between two calls of the other."""
        other = rig.process(self.fleet)
        with interrupted(self.fleet.records, self.draw.randrange(80), other.pump):
            self.fleet.pump()

    def end(self) -> None:
        """Heal and approve all, and let time pass: each stage gets the newest release."""
        self.heal()
        rig.release(self.fleet)
        for _ in range(12):
            self.fleet.clock.advance(timedelta(minutes=20))
            for _ in range(4):
                self.fleet.clock.advance(MOMENT)
                rig.tick(self.fleet)
                self.fleet.pump()
                self.model.look(self.staged)
            self.approve()
        newest = str(self.versions)
        assert [self.staged.has(each) for each in STAGES] == [{newest}] * 3, self.staged.state
        assert self.staged.phases() == ["Promoted"] * 3


def play(folder: Path, seed: int) -> None:
    history = History(folder, seed)
    try:
        history.play()
    finally:
        history.fleet.close()


@pytest.mark.parametrize("seed", range(6))
def test_ends_as_the_model_says(tmp_path: Path, seed: int) -> None:
    play(tmp_path, seed)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(6, 500))
def test_ends_as_the_model_says_in_many_more(tmp_path: Path, seed: int) -> None:
    play(tmp_path, seed)
