"""Archives on disk: whole, bounded, and shared between processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bellhop.adapters.sources.charts.client import ArchiveCache
from bellhop.errors import TemporaryError


def test_what_is_written_is_found_again(tmp_path: Path) -> None:
    """By another process, too; and nobody else may read it."""
    path = ArchiveCache(tmp_path / "charts").put("a", b"content")
    assert ArchiveCache(tmp_path / "charts").get("a") == (path, b"content")
    assert ArchiveCache(tmp_path / "charts").get("b") is None
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_was_damaged_is_not_there(tmp_path: Path) -> None:
    cache = ArchiveCache(tmp_path)
    path = cache.put("a", b"content")
    path.write_bytes(b"conten")
    assert cache.get("a") is None
    assert not path.exists()
    assert cache.put("a", b"content") == path


def test_the_least_recently_used_is_evicted(tmp_path: Path) -> None:
    cache = ArchiveCache(tmp_path, most=10)
    paths = [cache.put(key, key.encode() * 4) for key in "ab"]
    for at, path in enumerate(paths):
        os.utime(path, (at, at))
    assert cache.get("a")
    cache.put("c", b"cccc")
    assert [key for key in "abc" if cache.get(key)] == ["a", "c"]


def test_one_larger_than_the_cache_is_its_only_one(tmp_path: Path) -> None:
    cache = ArchiveCache(tmp_path, most=10)
    cache.put("a", b"a")
    cache.put("b", b"b" * 11)
    assert [key for key in "ab" if cache.get(key)] == ["b"]


def test_a_writer_that_was_killed_leaves_nothing_that_stays(tmp_path: Path) -> None:
    (tmp_path / ".unfinished-x").write_bytes(b"x" * 11)
    os.utime(tmp_path / ".unfinished-x", (0, 0))
    ArchiveCache(tmp_path, most=10).put("a", b"a")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_takes_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TemporaryError, match=r"cannot write a chart into '.*/file'"):
        ArchiveCache(tmp_path / "file").put("a", b"a")


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    cache = ArchiveCache(tmp_path)
    path = cache.put("a", b"content")
    path.unlink()
    (path / "in the way").mkdir(parents=True)
    with pytest.raises(TemporaryError, match="cannot write a chart into"):
        cache.put("a", b"content")
    assert list(tmp_path.iterdir()) == [path]
    assert cache.get("a") is None
