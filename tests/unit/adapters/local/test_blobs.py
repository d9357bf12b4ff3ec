"""What file blobs promise beyond the port: spread, private, in their folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bellhop.adapters.local.store import FileBlobs
from bellhop.errors import DeniedError, InvalidError


def test_spreads_blobs_over_folders_only_for_this_user(tmp_path: Path) -> None:
    """Many blobs lie in up to 256 folders, 0700, as files of 0600."""
    blobs = FileBlobs(tmp_path / "blobs")
    for number in range(100):
        blobs.put(f"../{number}", b"x")
    folders = list((tmp_path / "blobs").iterdir())
    files = [file for folder in folders for file in folder.iterdir()]

    assert 50 < len(folders) <= 100
    assert len(files) == 100
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == ["blobs"]


def test_takes_a_name_that_is_not_unicode(tmp_path: Path) -> None:
    """A lone surrogate is a name like any other."""
    blobs = FileBlobs(tmp_path)
    blobs.put("\ud800", b"x")

    assert blobs.get("\ud800") == b"x"


def test_a_file_in_the_folders_place_is_said(tmp_path: Path) -> None:
    """A folder that cannot be made is invalid, named by its path."""
    (tmp_path / "blobs").write_text("")

    with pytest.raises(InvalidError, match=r"blobs.*file where a folder should be"):
        FileBlobs(tmp_path / "blobs")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user to become")
def test_a_folder_of_another_user_is_denied(tmp_path: Path) -> None:
    """What may not be read is denied, and not missing."""
    FileBlobs(tmp_path / "blobs").put("one", b"x")
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            FileBlobs(tmp_path / "blobs")
        except DeniedError:
            os._exit(42)
        finally:
            os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
