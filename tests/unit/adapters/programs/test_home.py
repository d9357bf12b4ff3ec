"""The private folder of a call: whose it is, and when it goes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from bellhop.adapters.programs.box import private_home, remove_abandoned_homes


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the temporary folder of a process that has just started."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    remove_abandoned_homes.cache_clear()
    return tmp_path


def test_a_home_is_removed_with_all_that_lies_in_it(folder: Path) -> None:
    """Nothing stays of a call that ended."""
    with private_home({"a/file": b"hunter2"}) as home:
        assert (home / "a" / "file").read_text() == "hunter2"
        assert home.stat().st_mode & 0o077 == 0
    assert not list(folder.iterdir())


def test_a_process_removes_the_homes_of_killed_ones_when_it_makes_its_first(folder: Path) -> None:
    """The lock of a process ends with it, so that its folders differ from those in use."""
    abandoned = folder / "bellhop-call-abandoned"
    abandoned.mkdir()
    (abandoned / "secret").write_text("hunter2")
    with private_home() as first:
        assert not abandoned.exists()
        remove_abandoned_homes.cache_clear()
        with private_home():
            assert first.exists()


def test_a_link_with_the_name_of_a_home_is_left_unchanged(folder: Path, tmp_path: Path) -> None:
    """Another user of the machine cannot have us delete what a link names."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").write_text("kept")
    (folder / "bellhop-call-link").symlink_to(target)
    with private_home():
        assert (target / "file").exists()
