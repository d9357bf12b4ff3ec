"""Local copies of remote files: what a folder may hold, and what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.adapters.sources.files.local_files import local_files
from bellhop.errors import InvalidError


def test_a_folder_has_its_files_and_no_others(tmp_path: Path) -> None:
    """A link within the folder is a file of it; one that leads out of it is refused."""
    folder = tmp_path / "copy"
    (folder / "base").mkdir(parents=True)
    (folder / "base" / "a.yaml").write_text("a: 1")
    (folder / "b.yaml").symlink_to("base/a.yaml")
    (found,) = local_files([f"GitRepository/flux/web={folder}"]).values()
    assert found == {"base/a.yaml": b"a: 1", "b.yaml": b"a: 1"}

    (tmp_path / "secret").write_text("hidden")
    (folder / "c.yaml").symlink_to("../secret")
    with pytest.raises(InvalidError, match=r"c\.yaml': it is a link to a file outside"):
        local_files([f"GitRepository/flux/web={folder}"])
