"""What file secrets promise beyond the port: sealed, private, in their folder."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from bellhop.adapters.local.secrets import FileSecrets
from bellhop.errors import InvalidError, MissingError, TemporaryError

KEY = bytes(range(32))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "secrets"


@pytest.fixture
def secrets(folder: Path) -> FileSecrets:
    return FileSecrets(folder, KEY)


def only_file(folder: Path) -> Path:
    [path] = folder.iterdir()
    return path


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_takes_a_key_of_32_bytes_only(folder: Path, length: int) -> None:
    """A key of another length is refused before anything is written."""
    with pytest.raises(InvalidError, match=f"has {length} bytes, not 32"):
        FileSecrets(folder, b"k" * length)

    assert not folder.exists()


def test_keeps_files_only_for_this_user(folder: Path) -> None:
    """The folder is 0700 and the files 0600, whatever the umask or what was there before."""
    umask = os.umask(0)
    folder.mkdir(0o755)
    try:
        FileSecrets(folder, KEY).put("a", b"x")
    finally:
        os.umask(umask)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_file(folder).stat().st_mode) == 0o600


def test_nothing_of_a_value_is_readable(secrets: FileSecrets, folder: Path) -> None:
    """The file holds the name and no part of the value; the same value looks new each time."""
    secrets.put("kubeconfig/ns/name", b"the token")
    first = only_file(folder).read_bytes()
    secrets.put("kubeconfig/ns/name", b"the token")
    second = only_file(folder).read_bytes()

    assert b"token" not in first
    assert first != second


@pytest.mark.parametrize(
    "name",
    ["../outside", "/etc/passwd", "..", ".", "", "a/../../b", "nul\0byte", "x" * 5000, "ä/😀\n"],
)
def test_no_name_leads_out_of_the_folder(
    secrets: FileSecrets, folder: Path, tmp_path: Path, name: str
) -> None:
    """Any name is a file in the folder itself, listed as it was given."""
    secrets.put(name, b"x")

    assert secrets.read(name) == b"x"
    assert list(secrets.names()) == [name]
    assert list(tmp_path.iterdir()) == [folder]
    assert only_file(folder).is_file()


def test_another_key_does_not_open_a_secret(secrets: FileSecrets, folder: Path) -> None:
    """With the wrong key a secret is invalid, never missing and never garbage."""
    secrets.put("a", b"x")

    with pytest.raises(
        InvalidError, match="cannot open the secret 'a': it was sealed with another"
    ):
        FileSecrets(folder, b"k" * 32).read("a")


def test_a_file_in_anothers_place_does_not_open(secrets: FileSecrets, folder: Path) -> None:
    """A secret's file copied over another's is refused: the name is authenticated."""
    secrets.put("mine", b"good")
    mine = only_file(folder)
    secrets.put("their", b"evil")
    [their] = set(folder.iterdir()) - {mine}
    mine.write_bytes(their.read_bytes())

    with pytest.raises(InvalidError, match="cannot open the secret 'mine'"):
        secrets.read("mine")


def test_every_altered_byte_is_noticed(secrets: FileSecrets, folder: Path) -> None:
    """A file altered anywhere, or cut anywhere, does not open."""
    secrets.put("name", b"some value")
    path = only_file(folder)
    whole = path.read_bytes()
    altered = [whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(len(whole))]
    cut = [whole[:n] for n in range(len(whole))]

    for content in altered + cut:
        path.write_bytes(content)
        with pytest.raises(InvalidError):
            secrets.read("name")


def test_lists_only_what_it_wrote(secrets: FileSecrets, folder: Path) -> None:
    """Files of others, and what a killed writer left, are no secrets."""
    secrets.put("a", b"x")
    (folder / "notes.sealed").write_bytes(b"hello")
    (folder / "empty.sealed").write_bytes(b"")
    (folder / "bad.sealed").write_bytes(b"bellhop-secret-1\n\0\0\0\1\xff")
    (folder / ".unfinished-1").write_bytes(b"bellhop")

    assert list(secrets.names()) == ["a"]


def test_clears_what_killed_writers_left_behind(folder: Path) -> None:
    """Opening deletes unfinished files of long ago and leaves those that may be in writing."""
    folder.mkdir()
    old, new = folder / ".unfinished-old", folder / ".unfinished-new"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    FileSecrets(folder, KEY)

    assert not old.exists()
    assert new.exists()


def test_a_failed_write_leaves_the_older_value_and_no_rest(
    secrets: FileSecrets, folder: Path
) -> None:
    """Where the new file cannot take its place, the error is Bellhop's and nothing has changed."""
    secrets.put("a", b"x")
    path = only_file(folder)
    path.unlink()
    path.mkdir()
    (path / "in the way").write_text("")

    with pytest.raises((InvalidError, TemporaryError)) as caught:
        secrets.put("a", b"y")

    assert isinstance(caught.value.__cause__, OSError)
    assert only_file(folder) == path


def test_a_deleted_folder_is_reported(secrets: FileSecrets, folder: Path) -> None:
    """Reading in a folder that was deleted is a missing secret."""
    folder.rmdir()

    with pytest.raises(MissingError):
        secrets.read("a")
