"""What a queue's promises are worth between processes, some of which are killed."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from bellhop.ports.queue import Delivery, Done, Result
from tests.contract.courtesies import ONCE, ORDER
from tests.contract.inboxes import all_came, numbers
from tests.waiting import PATIENCE

PORT = "queue"
KNOWN = [(by, number) for by in ("ann", "bob") for number in range(40)]


def share(other_process: Any) -> list[list[tuple[str, int]]]:
    """Have two processes publish while two others work; return what each of those was given."""
    workers = [other_process("work", 60, 2) for _ in range(2)]
    publishers = [other_process("publish", by, 40, 5) for by in ("ann", "bob")]
    assert [publisher.wait(60 * PATIENCE) for publisher in publishers] == [0, 0]
    for worker in workers:
        worker.stdin.close()
    lines = [worker.stdout.read().splitlines() for worker in workers]
    return [[(line.split()[0], int(line.split()[1])) for line in each] for each in lines]


def test_two_publish_and_two_work(rig: Any, other_process: Any) -> None:
    """All that two processes publish is handled by two others, which never meet."""
    given = share(other_process)
    rest: list[tuple[str, int]] = []

    def work(delivery: Delivery) -> Result:
        rest.append((delivery.message.body["by"], delivery.message.body["n"]))
        return Done()

    rig.serve(rig.queue(), work)

    assert all_came(given[0] + given[1] + rest, KNOWN)


@pytest.mark.courtesy(ORDER, ONCE)
def test_two_work_in_order(rig: Any, other_process: Any) -> None:
    """Each message comes to one of two processes, and a group's in the order of each publisher."""
    given = share(other_process)

    assert sorted(given[0] + given[1]) == KNOWN
    for each in given:
        in_line: dict[tuple[str, int], list[int]] = defaultdict(list)
        for by, number in each:
            in_line[by, number % 5].append(number)
        assert all(line == sorted(line) for line in in_line.values())
    assert rig.queue().list() == []


def test_nothing_acknowledged_is_lost_when_any_process_is_killed(
    rig: Any, other_process: Any
) -> None:
    """Publishers and a worker are killed at work: all that was acknowledged is handled.

    It takes long: other processes publish and consume many messages, and a visibility
    timeout passes.
    """
    publishers = {by: other_process("publish_until_killed", by, 200) for by in ("ann", "bob")}
    doomed, spared = (other_process("work", 16, 2) for _ in range(2))
    handled = [doomed.stdout.readline() for _ in range(20)]
    doomed.kill()
    acknowledged = []
    for by, publisher in publishers.items():
        said = [publisher.stdout.readline() for _ in range(20)]
        publisher.kill()
        said += publisher.stdout.read().splitlines()
        acknowledged += [(by, int(line), half) for line in said for half in ("a", "b")]
    spared.stdin.close()
    handled += doomed.stdout.read().splitlines() + spared.stdout.read().splitlines()
    found = {
        (by, int(number), half) for by, number, half in map(str.split, filter(str.strip, handled))
    }

    def work(delivery: Delivery) -> Result:
        body = delivery.message.body
        found.add((body["by"], body["n"], body["half"]))
        return Done()

    # The killed worker's messages in flight come when their time is up.
    rig.pass_time(17)
    rig.serve(rig.queue(), work)

    assert set(acknowledged) <= found


def test_publishing_in_halves_is_at_most_the_last_call(rig: Any, other_process: Any) -> None:
    """After kill -9 nothing is there but what was acknowledged and the call under way.

    It takes long: another process publishes messages one by one, and all are
    consumed.
    """
    publisher = other_process("publish_until_killed", "ann", 5000)
    for _ in range(40):
        publisher.stdout.readline()
    publisher.kill()
    last = 39 + len(publisher.stdout.read().splitlines())
    found: set[int] = set()

    def work(delivery: Delivery) -> Result:
        found.update(numbers([delivery]))
        return Done()

    rig.serve(rig.queue(), work)

    assert found in (set(range(last + 1)), set(range(last + 2)))
