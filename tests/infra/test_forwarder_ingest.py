"""A sender and the ingest stage itself, between them HTTP: each settles what the other says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.local.server import Server
from bellhop.errors import StaleError, UnreachableError
from bellhop.forwarder import backoff
from bellhop.runtime.embedded.http import Front
from bellhop.state.match import Observation
from tests.fakes.fleet import Fleet, service
from tests.infra.sender_rig import Office
from tests.waiting import eventually


class Pair:
    """A sender in a cluster where Services count, and its ingest."""

    def __init__(self, folder: Path) -> None:
        self.fleet = Fleet(folder)
        self.fleet.register("east", env="production")
        self.fleet.apply_example("network-policy")
        self.fleet.pump()
        front = Front(self.fleet.ingest)
        self.server = Server(front, host="127.0.0.1", port=0)
        self.server.start()
        self.office = Office(folder, self.server.url, "east")

    def put(self, name: str, **spec: Any) -> None:
        manifest = service(name, spec=spec)
        manifest["metadata"] |= {"uid": f"u-{name}", "resourceVersion": "7"}
        self.office.put_body(name, json.dumps({"object": manifest}).encode())

    def kept(self) -> set[str]:
        heads = self.fleet.records.observations.heads("fleet/east")
        return {head.key.name for head in heads}

    def fail(self, name: str, *errors: Exception) -> None:
        """Have the store fail on an object, once with each error."""
        put, left = self.fleet.records.observations.put, [*errors]

        def fail(observation: Observation) -> bool:
            if observation.key.name == name and left:
                raise left.pop(0)
            return put(observation)

        self.fleet.records.observations.put = fail  # type: ignore[method-assign, assignment]

    def settle(self) -> None:
        self.office.sender.start()
        eventually("nothing is owed", lambda: self.office.queue.owed()[0] == 0)

    def close(self) -> None:
        self.office.close()
        self.server.stop()
        self.fleet.close()


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    monkeypatch.setattr(backoff, "LONGEST_SECONDS", 0.01)
    pair = Pair(tmp_path)
    yield pair
    pair.close()


GOOD = {f"web-{number}" for number in range(30)}


def deep(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        pytest.param("../evil", {}, id="no object of an API server"),
        pytest.param("evil", deep(250), id="nested too deep, so that its request cannot be read"),
        pytest.param("evil", {"text": "x" * 5_000_000}, id="larger than any request"),
    ],
)
def test_one_bad_object_among_many_is_dropped(pair: Pair, name: str, spec: dict[str, Any]) -> None:
    """All others are kept, and it is named."""
    pair.put(name, **spec)
    for each in sorted(GOOD):
        pair.put(each)
    pair.settle()

    assert pair.kept() == GOOD
    assert pair.office.count("dropped") == 1
    [line] = pair.office.said("Dropped")
    assert line["object"].endswith(f"/{name}")


@pytest.mark.parametrize(
    "error", [UnreachableError("the store is away"), StaleError("a lost write"), KeyError("a bug")]
)
def test_an_object_that_fails_for_a_while_is_kept_in_the_end(pair: Pair, error: Exception) -> None:
    """Whether the store is away, another writer wins, or ingest has a defect that passes."""
    pair.fail("late", *[error] * 4)
    pair.put("late")
    for each in sorted(GOOD):
        pair.put(each)
    pair.settle()

    assert pair.kept() == GOOD | {"late"}
    assert pair.office.count("dropped") == 0
