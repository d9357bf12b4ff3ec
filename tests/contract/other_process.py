"""A second process in the contract tests: one role a run, named on the command line.

It says `ready` once it has opened what it needs. What it reports afterwards was acknowledged.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from typing import Any

from bellhop.errors import StaleError
from bellhop.ports.queue import Delivery, Done, Message, Result
from bellhop.ports.store import ABSENT, Item


def say(line: object) -> None:
    # Written by the kernel before the next step: a kill cannot take it back.
    os.write(1, f"{line}\n".encode())


def write_items(rig: Any) -> None:
    """Write items until killed; say each once it is written."""
    store = rig.store()
    say("ready")
    number = 0
    while True:
        store.put(Item("kill", f"{number:06}", {"number": number, "text": "x" * 5000}))
        say(number)
        number += 1


def create(rig: Any, by: str) -> None:
    """Create an item on a signal; say whether it was created."""
    store = rig.store()
    say("ready")
    sys.stdin.readline()
    try:
        store.put(Item("race", "one", {"by": by}), expect=ABSENT)
    except StaleError:
        say("stale")
    else:
        say("created")


def count(rig: Any, times: str) -> None:
    """Add to a counter with optimistic writes."""
    store = rig.store()
    say("ready")
    left = int(times)
    while left:
        item = store.get("counter", "one")
        try:
            store.put(Item("counter", "one", {"count": item.value["count"] + 1}), expect=item.token)
        except StaleError:
            continue
        left -= 1


def publish_until_killed(rig: Any, by: str, most: str) -> None:
    """Publish pairs until killed, so many at most; say each pair once it is published."""
    queue = rig.queue()
    say("ready")
    for number in range(int(most)):
        halves = ({"n": number, "by": by, "half": half} for half in ("a", "b"))
        queue.publish([Message(half, f"group {by} {half['half']}") for half in halves])
        say(number)
    sys.stdin.read()


def publish(rig: Any, by: str, count: str, groups: str) -> None:
    """Publish so many messages over so many groups."""
    queue = rig.queue()
    say("ready")
    for number in range(int(count)):
        queue.publish([Message({"n": number, "by": by}, f"group {number % int(groups)}")])


def work(rig: Any, visibility: str, seconds: str) -> None:
    """Finish messages until standard input ends and then none comes for so long; say each before.

    On a busy machine publishers start late, and pause for longer than a worker may wait for them.
    """
    queue = rig.queue(visibility=float(visibility))
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    say("ready")

    def handle(delivery: Delivery) -> Result:
        body = delivery.message.body
        say(f"{body['by']} {body['n']} {body.get('half', '')}")
        return Done()

    last = False
    while not last:
        last = ended.is_set()
        rig.serve(queue, handle, idle=float(seconds))


def take_and_hang(rig: Any, visibility: str) -> None:
    """Take what there is and never finish it."""
    queue = rig.queue(visibility=float(visibility))
    say("ready")
    sys.stdin.readline()
    for delivery in queue.receive(10, wait=timedelta(0)):
        say(delivery.message.body["n"])
    say("taken")
    sys.stdin.read()


def put_blobs(rig: Any) -> None:
    """Write one blob over and over, all of one byte, until killed."""
    blobs = rig.blobs()
    say("ready")
    number = 0
    while True:
        blobs.put("busy", bytes([number % 256]) * 1_500_000)
        say(number)
        number += 1


def put_secrets(rig: Any) -> None:
    """Write one secret over and over, all of one byte, until killed."""
    secrets = rig.secrets()
    say("ready")
    number = 0
    while True:
        secrets.put("kubeconfig/busy/one", bytes([number % 256]) * (rig.secret_limit // 2))
        say(number)
        number += 1


ROLES: dict[str, Callable[..., None]] = {
    role.__name__: role
    for role in (
        write_items,
        create,
        count,
        publish_until_killed,
        publish,
        work,
        take_and_hang,
        put_blobs,
        put_secrets,
    )
}

if __name__ == "__main__":
    rig_class, place, role, *arguments = sys.argv[1:]
    module, _, name = rig_class.partition(":")
    ROLES[role](getattr(import_module(module), name)(place), *arguments)
