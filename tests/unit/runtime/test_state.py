"""The state folder: what it is opened with, and what becomes of it on a full disk."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bellhop.errors import BellhopError, BusyError, InvalidError, TemporaryError
from bellhop.runtime.embedded.serve import serve
from bellhop.runtime.embedded.state import KEY_BYTES, only_one, open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster

SIZE = 2 * 1024 * 1024
BLOCK = 4096


def opened(state: Path) -> None:
    """Open a state, make use of it, and close it."""
    embedded = open_state(state, Settings())
    try:
        embedded.installation.declare.register(
            Cluster("prod", "eu-1", {}, "v1.20.2", "digest", datetime.now(UTC))
        )
        embedded.installation.secrets.put("kubeconfig/prod/eu-1", b"secret")
    finally:
        embedded.close()


# Its key ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", ["store.db", "queue.db", "secrets"])
def test_a_state_without_its_key_is_refused(tmp_path: Path, left: str) -> None:
    """Before a new key is made, by which nothing that is there could be read."""
    opened(tmp_path)
    for path in tmp_path.iterdir():
        if path.is_file() and path.name != left:
            path.unlink()
    if left != "secrets":
        for path in (tmp_path / "secrets").iterdir():
            path.unlink()

    with pytest.raises(InvalidError, match=f"its key 'key' is missing.*'{left}'") as caught:
        open_state(tmp_path, Settings())
    assert "give back the file" in str(caught.value)
    assert not (tmp_path / "key").exists()


def test_a_state_that_gets_its_key_back_is_whole(tmp_path: Path) -> None:
    """The refusal has changed nothing."""
    opened(tmp_path)
    key = (tmp_path / "key").read_bytes()
    (tmp_path / "key").unlink()
    with pytest.raises(InvalidError):
        open_state(tmp_path, Settings())
    (tmp_path / "key").write_bytes(key)
    embedded = open_state(tmp_path, Settings())

    assert embedded.installation.secrets.read("kubeconfig/prod/eu-1") == b"secret"
    embedded.close()


def test_a_key_of_another_length_is_refused(tmp_path: Path) -> None:
    """Half a key would seal what no whole key opens."""
    opened(tmp_path)
    (tmp_path / "key").write_bytes(b"half")

    with pytest.raises(InvalidError, match=rf"key.*it has 4 bytes, not {KEY_BYTES}"):
        open_state(tmp_path, Settings())


def test_only_one_serves_from_a_folder(tmp_path: Path) -> None:
    """A second process gets an error that says so, until the first has ended."""
    refused = pytest.raises(
        BusyError, match=r"cannot serve from .*`bellhop serve`, is at work there; stop"
    )
    with only_one(tmp_path), refused, only_one(tmp_path):
        pass
    with only_one(tmp_path):
        assert (tmp_path / "lock").exists()


def test_those_who_open_a_new_state_at_once_agree_on_a_key(tmp_path: Path) -> None:
    """None of them takes another's fresh database for one that has lost its key."""
    failures: list[Exception] = []
    keys: set[bytes] = set()
    barrier = threading.Barrier(6)

    def work(state: Path) -> None:
        barrier.wait()
        try:
            open_state(state, Settings()).close()
            keys.add((state / "key").read_bytes())
        except BellhopError as error:
            failures.append(error)

    for number in range(5):
        state = tmp_path / str(number)
        keys.clear()
        threads = [threading.Thread(target=work, args=(state,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert failures == []
        assert [len(key) for key in keys] == [KEY_BYTES]
        assert {path.name for path in state.iterdir() if path.name.startswith("key")} == {"key"}


def test_a_damaged_address_is_named(tmp_path: Path) -> None:
    """What `serve` left behind is half a file: one sentence, and what to do."""
    tmp_path.joinpath("address.json").write_text('{"url": "https://')

    with pytest.raises(InvalidError, match=r"address.json.*damaged.*bellhop serve"):
        open_state(tmp_path, Settings())


# A full disk ------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root can make a disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, *, but: int) -> Path:
    """Write a file that leaves so many blocks."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        while os.statvfs(disk).f_bavail > but:
            file.write(bytes(BLOCK))
            file.flush()
    return ballast


@pytest.mark.parametrize("blocks", [0, 1, 2, 3, 5, 9, 13, 17, 21])
def test_a_full_disk_is_one_sentence_at_the_start(disk: Path, blocks: int) -> None:
    """Wherever it ends; with free space the state opens again as if nothing had been."""
    ballast = fill(disk, but=blocks)
    with pytest.raises(TemporaryError) as caught:
        opened(disk / "state")
    ballast.unlink()

    assert str(caught.value).endswith("the disk is full; free some space")
    opened(disk / "state")


def test_a_full_disk_is_one_sentence_for_serve(disk: Path) -> None:
    """The folder cannot even be made, or what is in it."""
    ballast = fill(disk, but=0)
    with pytest.raises(TemporaryError, match="the disk is full"):
        serve(disk / "state", host="127.0.0.1", port=0)
    ballast.unlink()


def test_what_is_written_onto_a_full_disk_is_whole_or_not_there(disk: Path) -> None:
    """Every cluster that was acknowledged is there, and none but the last one that was not."""
    embedded = open_state(disk / "state", Settings())
    labels = {"padding": "x" * 3000}
    taken = 0
    said = ""
    while not said:
        cluster = Cluster("prod", f"eu-{taken}", labels, "v1", "d", datetime.now(UTC))
        try:
            embedded.installation.declare.register(cluster)
            taken += 1
        except TemporaryError as error:
            said = str(error)
    embedded.close()
    again = open_state(disk / "state", Settings())
    names = {cluster.name for cluster in again.installation.records.clusters.all()}
    again.close()

    assert "the disk is full" in said
    assert taken > 0
    assert {f"eu-{number}" for number in range(taken)} <= names
    assert len(names) <= taken + 1
