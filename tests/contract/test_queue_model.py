"""Long random histories of a queue, compared with a model that fits on a screen."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bellhop.ports.queue import Again, Delivery, Done, Message
from tests.contract.courtesies import COUNTS, ONCE, ORDER, PAUSES, STANDSTILL

PORT = "consumer"
VISIBILITY = 10
"""Units of the rig, as all durations here."""

ATTEMPTS = 3
units = st.integers(0, 15)


@dataclass
class Entry:
    number: int
    available_at: datetime
    attempt: int = 0
    receipt: str = ""


@dataclass
class Group:
    """A group as the port describes it: a line, and until when a batch of it is held."""

    line: list[Entry] = field(default_factory=list)
    held_until: datetime | None = None

    def at(self, now: datetime) -> Group:
        """Release the messages that were held too long."""
        if self.held_until is not None and self.held_until <= now:
            self.held_until = None
            for entry in self.line:
                entry.receipt = ""
        return self

    def spent(self, now: datetime) -> Sequence[Entry]:
        """Return the first ones that are due and have used up their attempts without a word."""
        if self.held_until is not None:
            return []
        due = (entry.attempt >= ATTEMPTS and entry.available_at <= now for entry in self.line)
        return self.line[: sum(itertools.takewhile(bool, due))]

    def available(self, now: datetime) -> bool:
        left = self.line[len(self.spent(now)) :]
        return self.held_until is None and bool(left) and left[0].available_at <= now


class QueueMachine(RuleBasedStateMachine):
    """What is published, received, done, retried, replayed, and how time passes."""

    deliveries = Bundle("deliveries")
    number = itertools.count()

    def __init__(self, rig: Any) -> None:
        super().__init__()
        self.rig = rig
        self.queue = rig.queue(
            f"queue {next(self.number)}", visibility=VISIBILITY, attempts=ATTEMPTS
        )
        self.groups: dict[str, Group] = {}
        self.dead: list[tuple[str, int]] = []
        self.published = 0

    def now(self) -> datetime:
        now: datetime = self.rig.now()
        return now

    def group(self, name: str) -> Group:
        return self.groups.setdefault(name, Group()).at(self.now())

    def append(self, name: str, number: int) -> None:
        self.group(name).line.append(Entry(number, self.now()))

    @rule(batch=st.lists(st.sampled_from("abc"), max_size=5))
    def publish(self, batch: list[str]) -> None:
        messages = []
        for name in batch:
            self.append(name, self.published)
            messages.append(Message({"n": self.published}, name))
            self.published += 1
        self.queue.publish(messages)

    @rule(target=deliveries, limit=st.integers(1, 6))
    def receive(self, limit: int) -> Any:
        groups = {name: self.group(name) for name in list(self.groups)}
        available = {name for name, group in groups.items() if group.available(self.now())}
        deliveries = self.queue.receive(limit, wait=timedelta(0))

        self._bury_spent()
        assert len(deliveries) <= limit
        assert bool(deliveries) == bool(available)
        places = dict.fromkeys(groups, 0)
        for delivery in deliveries:
            name = delivery.message.group
            assert name in available
            entry = groups[name].line[places[name]]
            places[name] += 1
            assert entry.available_at <= self.now()
            assert delivery.message.body == {"n": entry.number}
            entry.attempt += 1
            assert delivery.attempt == entry.attempt
            entry.receipt = delivery.receipt
            groups[name].held_until = self.now() + self.rig.span(VISIBILITY)
        return multiple(*deliveries)

    def _bury_spent(self) -> None:
        """Follow the queue in dead-lettering spent messages: a receive may do so at any time."""
        found = {letter.message.body["n"] for letter in self.queue.list()}
        for name in list(self.groups):
            group = self.group(name)
            for entry in self.group(name).spent(self.now()):
                if entry.number in found:
                    group.line.remove(entry)
                    self.dead.append((name, entry.number))

    def _held(self, delivery: Delivery) -> tuple[Group, Entry | None]:
        group = self.group(delivery.message.group)
        held = [entry for entry in group.line if entry.receipt == delivery.receipt]
        return group, held[0] if held else None

    def _let_go(self, group: Group) -> None:
        if not any(entry.receipt for entry in group.line):
            group.held_until = None

    @rule(delivery=deliveries)
    def done(self, delivery: Delivery) -> None:
        group, entry = self._held(delivery)
        self.queue.settle(delivery, Done())
        if entry is not None:
            group.line.remove(entry)
            self._let_go(group)

    @rule(delivery=deliveries, delay=units)
    def retry(self, delivery: Delivery, delay: int) -> None:
        group, entry = self._held(delivery)
        became = self.queue.settle(delivery, Again(self.rig.span(delay), "again"))
        if entry is None:
            assert became == Done()
            return
        again = isinstance(became, Again)
        assert again == (entry.attempt < ATTEMPTS)
        entry.receipt = ""
        if again:
            entry.available_at = self.now() + self.rig.span(delay)
        else:
            group.line.remove(entry)
            self.dead.append((delivery.message.group, entry.number))
        self._let_go(group)

    @rule(delivery=deliveries)
    def extend(self, delivery: Delivery) -> None:
        group, entry = self._held(delivery)
        assert self.queue.extend(delivery) == (entry is not None)
        if entry is not None:
            group.held_until = self.now() + self.rig.span(VISIBILITY)

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        letter = data.draw(st.sampled_from(self.queue.list()))
        self.queue.replay(letter.id)
        number = letter.message.body["n"]
        self.dead.remove((letter.message.group, number))
        self.append(letter.message.group, number)

    @rule(by=units)
    def pass_time(self, by: int) -> None:
        self.rig.pass_time(by)

    @invariant()
    def the_dead_are_the_models(self) -> None:
        found = [(letter.message.group, letter.message.body["n"]) for letter in self.queue.list()]
        assert sorted(found) == sorted(self.dead)

    def teardown(self) -> None:
        """Everything that was not finished can still be had, in order."""
        self.rig.pass_time(1000)
        left = {name: [e.number for e in self.group(name).line] for name in self.groups}
        found: dict[str, list[int]] = {name: [] for name in self.groups}
        while deliveries := self.queue.receive(100, wait=timedelta(0)):
            for delivery in deliveries:
                found[delivery.message.group].append(delivery.message.body["n"])
                self.queue.settle(delivery, Done())
        self._bury_spent()
        self.the_dead_are_the_models()
        dead = {number for _, number in self.dead}
        assert found == {name: [n for n in line if n not in dead] for name, line in left.items()}
        self.queue.close()


@pytest.mark.courtesy(ORDER, PAUSES, COUNTS, ONCE, STANDSTILL)
def test_keeps_to_the_model(rig: Any) -> None:
    """Whatever is done to a queue, it answers as the model does."""
    run_state_machine_as_test(
        lambda: QueueMachine(rig),  # type: ignore[arg-type]  # documented: a factory will do
        settings=settings(
            max_examples=100,
            stateful_step_count=40,
            deadline=None,
            phases=(Phase.generate,),
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
