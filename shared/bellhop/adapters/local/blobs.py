"""The blob store in a folder: a file for each blob, spread over 256 folders.

A file is named for the SHA-256 of the blob's name, so that every name is safe and none is too long.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from bellhop.adapters.local.files import prepare, remove, translated, write_whole
from bellhop.errors import MissingError


class FileBlobs:
    """Bytes by name; a blob is replaced whole, while readers of the older one keep reading it.

    Of a `still` folder nothing is made: it is read as it is.
    """

    def __init__(self, folder: Path | str, *, still: bool = False) -> None:
        self._folder = Path(folder).absolute()
        if not still:
            prepare(self._folder)

    def get(self, name: str) -> bytes:
        """Read a blob.

        Raises:
            MissingError: there is none of that name.
        """
        path = self._path(name)
        with translated(path):
            try:
                return path.read_bytes()
            except FileNotFoundError as error:
                raise MissingError(f"there is no blob {name!r}") from error

    def put(self, name: str, value: bytes) -> None:
        """Write a blob, whole or not at all; writing it again replaces it."""
        write_whole(self._path(name), value)

    def delete(self, name: str) -> None:
        """Delete a blob; one that is not there is fine."""
        remove(self._path(name))

    def _path(self, name: str) -> Path:
        # A lone surrogate is a name like any other here: only its digest meets the disk.
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        return self._folder / digest[:2] / digest
