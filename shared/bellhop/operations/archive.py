"""An archive of an installation: lines, each sealed with a key that a passphrase gives.

    {"bellhop": "archive", "format": 1, "id": …, "left": …, "salt": …}      in clear
    base64 of a sealed entry, bound to the archive and to its number        as many as there are
    the same of {"kind": "end", "entries": N}                               whole to here

An entry that is changed, moved, left out or of another archive does not open, and an archive
without its end is known to be incomplete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from msgspec import Struct

from bellhop.errors import InvalidError
from bellhop.state.sealer import Sealer, as_bytes, as_text

FORMAT = 1
SHORTEST = 12
"""Characters of a passphrase: a thief of the file may try as many as possible."""

_KIND = "archive"
_HEADER = 1024
_COST = 2**16
_BLOCK, _AT_ONCE, _KEY = 8, 1, 32

Entry = Mapping[str, Any]


class Header(Struct, frozen=True):
    """The clear text of an archive: its number, and whether its installation was left."""

    id: str
    left: bool
    salt: str


def check(passphrase: str) -> None:
    """Refuse a passphrase that is too short."""
    if len(passphrase) < SHORTEST:
        raise InvalidError(
            f"cannot seal the archive: its passphrase has {len(passphrase)} characters; take"
            f" {SHORTEST} or more"
        )


def write(
    file: IO[str], passphrase: str, entries: Iterable[Entry], *, number: str, left: bool
) -> int:
    """Write an archive under its number; return the number of its entries."""
    header = Header(number, left, os.urandom(16).hex())
    clear = {"bellhop": _KIND, "format": FORMAT, "id": number, "left": left, "salt": header.salt}
    file.write(json.dumps(clear) + "\n")
    sealer = _sealer(passphrase, header)
    count = 0
    for entry in entries:
        file.write(as_text(sealer.seal(entry, _bound(header, count))) + "\n")
        count += 1
    end = {"kind": "end", "entries": count}
    file.write(as_text(sealer.seal(end, _bound(header, count))) + "\n")
    return count


def read_header(file: IO[str]) -> Header:
    """Return the clear text of an archive.

    Raises:
        InvalidError: the file is no archive, or one of a later version.
    """
    text = "cannot read the archive: `bellhop backup` did not write this file"
    try:
        clear = json.loads(file.readline(_HEADER))
        found = Header(str(clear["id"]), bool(clear["left"]), str(clear["salt"]))
        kind, form = clear["bellhop"], int(clear["format"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidError(text) from error
    if kind != _KIND:
        raise InvalidError(text)
    if form > FORMAT:
        raise InvalidError("cannot read the archive: a newer Bellhop wrote it; update this one")
    return found


def read(file: IO[str], passphrase: str, header: Header) -> Iterator[Entry]:
    """Yield the entries of an archive after its header.

    Raises:
        InvalidError: the passphrase is wrong, or the archive is damaged or incomplete.
    """
    sealer = _sealer(passphrase, header)
    for number, line in enumerate(file):
        try:
            entry: dict[str, Any] = sealer.open(as_bytes(line), _bound(header, number))
        except (InvalidError, ValueError) as error:
            raise InvalidError(
                "cannot open the archive: wrong passphrase"
                if number == 0
                else f"cannot open the archive: it is damaged at its line {number + 2}"
            ) from error
        if entry["kind"] == "end":
            return
        yield entry
    raise InvalidError("cannot read the archive: its end is missing; take another backup")


def _bound(header: Header, number: int) -> str:
    # The clear text is bound in as well.
    return f"{header.id} {header.left} {number}"


def _sealer(passphrase: str, header: Header) -> Sealer:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt  # noqa: PLC0415 - import budget

    kdf = Scrypt(header.salt.encode(), length=_KEY, n=_COST, r=_BLOCK, p=_AT_ONCE)
    return Sealer(kdf.derive(passphrase.encode()))
