"""The secret store in a folder: a file for each secret, sealed with a key from the settings.

    bellhop-secret-1 and a newline | length of the name, 4 bytes | name | nonce, 12 | sealed

The file is named for the SHA-256 of the secret's name: any name is safe, none leads out of the
folder. The part before the nonce is authenticated with the value, so that a file put in
another's place does not open. The name itself is readable, as a name of a cluster is no secret.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bellhop.adapters.local.files import prepare, remove, translated, write_whole
from bellhop.errors import InvalidError, MissingError, TooLargeError

KEY_BYTES = 32
"""The length of the key that seals the files: AES-256."""

LIMIT = 1_048_576
"""Bytes that one secret may take; a kubeconfig takes a hundredth of it."""

_MAGIC = b"bellhop-secret-1\n"
_LENGTH_BYTES = 4
_NONCE_BYTES = 12
_SUFFIX = ".sealed"


class FileSecrets:
    """Named secrets, sealed with AES-GCM in files that only this user may read.

    Of a `still` folder nothing is made: it is read as it is.

    Raises:
        InvalidError: the key has not KEY_BYTES bytes.
    """

    def __init__(self, folder: Path | str, key: bytes, *, still: bool = False) -> None:
        if len(key) != KEY_BYTES:
            raise InvalidError(
                f"cannot use the secrets' key: it has {len(key)} bytes, not {KEY_BYTES}"
            )
        self._folder = Path(folder).absolute()
        self._cipher = AESGCM(key)
        if not still:
            prepare(self._folder)

    def read(self, name: str) -> bytes:
        path = self._path(name)
        with translated(path):
            try:
                content = path.read_bytes()
            except FileNotFoundError as error:
                raise MissingError(f"there is no secret {name!r}") from error
        head = _head(name)
        start = len(head) + _NONCE_BYTES
        try:
            if not content.startswith(head):
                raise InvalidTag  # noqa: TRY301 - one sentence for every way to be altered
            return self._cipher.decrypt(content[len(head) : start], content[start:], head)
        except (InvalidTag, ValueError) as error:
            raise InvalidError(
                f"cannot open the secret {name!r}: it was sealed with another key, or altered;"
                " restore the key, or write the secret again"
            ) from error

    def put(self, name: str, value: bytes) -> None:
        if len(value) > LIMIT:
            raise TooLargeError(
                f"cannot write the secret {name!r}: its {len(value)} bytes exceed the secret"
                f" store's {LIMIT}"
            )
        head, nonce = _head(name), os.urandom(_NONCE_BYTES)
        write_whole(self._path(name), head + nonce + self._cipher.encrypt(nonce, value, head))

    def delete(self, name: str) -> None:
        remove(self._path(name))

    def names(self, prefix: str = "") -> Iterator[str]:
        found = (_name(path) for path in self._folder.glob(f"*{_SUFFIX}"))
        yield from sorted(name for name in found if name is not None and name.startswith(prefix))

    def _path(self, name: str) -> Path:
        return self._folder / (hashlib.sha256(_bytes(name)).hexdigest() + _SUFFIX)


def _bytes(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise InvalidError("cannot use a secret's name: it is not valid Unicode") from error


def _head(name: str) -> bytes:
    encoded = _bytes(name)
    return _MAGIC + len(encoded).to_bytes(_LENGTH_BYTES, "big") + encoded


def _name(path: Path) -> str | None:
    """Read the name off a file; None if it has just been deleted."""
    with translated(path):
        try:
            with path.open("rb") as file:
                return _read_name(file)
        except (FileNotFoundError, UnicodeDecodeError):
            return None


def _read_name(file: BinaryIO) -> str | None:
    if file.read(len(_MAGIC)) != _MAGIC:
        return None
    return file.read(int.from_bytes(file.read(_LENGTH_BYTES), "big")).decode()
