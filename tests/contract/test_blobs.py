"""What every blob store keeps to: the sentences of bellhop.ports.store."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bellhop.errors import MissingError
from bellhop.ports.store import Blobs

PORT = "blobs"
MEGABYTES = 1_572_864
"""1.5 MiB: what etcd lets an object have."""


@pytest.fixture
def blobs(rig: Any) -> Blobs:
    found: Blobs = rig.blobs()
    return found


def test_reading_what_was_never_written_is_missing(blobs: Blobs) -> None:
    """A name without a blob is said to be missing, by its name."""
    with pytest.raises(MissingError, match="'observation/one'"):
        blobs.get("observation/one")


@settings(
    max_examples=30,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(value=st.binary(max_size=2000))
def test_reads_back_any_bytes(blobs: Blobs, value: bytes) -> None:
    """What was written is read back, byte for byte; nothing at all too."""
    blobs.put("one", value)

    assert blobs.get("one") == value


def test_takes_what_no_item_and_no_message_takes(blobs: Blobs) -> None:
    """The largest object that a cluster can hold fits."""
    value = bytes(range(256)) * (MEGABYTES // 256)
    blobs.put("large", value)

    assert blobs.get("large") == value


def test_writing_again_replaces(rig: Any, blobs: Blobs) -> None:
    """Another client's longer and shorter values replace a blob whole."""
    other = rig.blobs()
    for value in (b"one", b"a longer one", b"1"):
        other.put("one", value)

        assert blobs.get("one") == value


def test_deletes_a_blob(blobs: Blobs) -> None:
    """A deleted blob is missing; deleting it again is fine."""
    blobs.put("one", b"1")
    blobs.put("two", b"2")
    blobs.delete("one")
    blobs.delete("one")

    with pytest.raises(MissingError):
        blobs.get("one")
    assert blobs.get("two") == b"2"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("fleet/prod-eu/v1/Service/ns/web", id="slashes"),
        pytest.param("../../etc/passwd", id="the way out"),
        pytest.param("/etc/passwd", id="an absolute path"),
        pytest.param("ä 😀\n%2F?#", id="any character"),
        pytest.param("x" * 900, id="long"),
        pytest.param(".", id="a dot"),
    ],
)
def test_takes_any_name(blobs: Blobs, name: str) -> None:
    """A name is a name, whatever it would mean in other systems."""
    blobs.put(name + "x", b"another")
    blobs.put(name, b"mine")

    assert blobs.get(name) == b"mine"
    blobs.delete(name)
    assert blobs.get(name + "x") == b"another"


def test_readers_never_see_half_a_blob(rig: Any, blobs: Blobs) -> None:
    """While threads write over a blob, a reader gets one whole value or another."""
    blobs.put("one", b"\0" * 200_000)

    def write(byte: int) -> None:
        client = rig.blobs()
        for _ in range(10):
            client.put("one", bytes([byte]) * 200_000)

    writers = [threading.Thread(target=write, args=(byte,)) for byte in range(1, 4)]
    for writer in writers:
        writer.start()
    seen = []
    while any(writer.is_alive() for writer in writers):
        seen.append(blobs.get("one"))
    for writer in writers:
        writer.join()

    assert {(len(value), len(set(value))) for value in seen} <= {(200_000, 1)}


def test_a_killed_writer_leaves_a_whole_blob(blobs: Blobs, other_process: Any) -> None:
    """After kill -9 the blob has the last acknowledged value, or the one being written."""
    writer = other_process("put_blobs")
    for _ in range(10):
        writer.stdout.readline()
    writer.kill()
    last = 9 + len(writer.stdout.read().splitlines())

    value = blobs.get("busy")
    assert value in {bytes([byte % 256]) * 1_500_000 for byte in (last, last + 1)}
