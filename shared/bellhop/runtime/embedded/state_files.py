"""Notices that the state folder is deleted or replaced while `serve` works on its open files.

An open file outlives its name: `serve` would go on, and lose all that it writes when it ends, while
another `serve` starts beside it under the same path.
"""

from __future__ import annotations

from pathlib import Path

from bellhop.errors import MissingError

_NAMES = ("lock", "store.db", "queue.db")
"""Files that are open for as long as `serve` runs, so that no other file gets their inodes."""

_Inode = tuple[int, int]
"""Device and number."""


class StateFiles:
    """The files of a state folder, as they were when `serve` opened them."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._opened = {name: _inode(state / name) for name in _NAMES}

    def refuse_replaced(self) -> None:
        """Compare the files at their paths with the open ones.

        Raises:
            MissingError: one is not there any more, or another file is in its place.
        """
        for name, opened in self._opened.items():
            found = _inode(self._state / name)
            if found != opened or found is None:
                what = "is not there any more" if found is None else "is another file by now"
                raise MissingError(
                    f"cannot go on serving from '{self._state}': its '{name}' {what}, and what is"
                    " written from now on would be lost; put the folder back, or restore a backup,"
                    " and start `bellhop serve` again"
                )


def _inode(path: Path) -> _Inode | None:
    """Return which file is at a path; None if there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
