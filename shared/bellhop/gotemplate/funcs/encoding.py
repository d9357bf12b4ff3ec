"""Sprig's checksums, base64 and base32, and what it leaves to chance."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import zlib
from typing import TYPE_CHECKING

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.limits import SLOW, SLOWER, WRITTEN
from bellhop.gotemplate.literals import to_bytes, to_text

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add

_DIGITS = "0123456789"
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PRINTABLE = "".join(map(chr, range(32, 127)))
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BASE32 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
_QUAD, _OCTET = 4, 8


@_add("b64enc", "string")
def b64enc(text: str) -> str:
    return base64.b64encode(to_bytes(text)).decode()


@_add("b64dec", "string", most=WRITTEN)
def b64dec(text: str) -> str:
    """Decode base64; what is wrong with the text comes back in its place."""
    try:
        return to_text(decode_base64(text))
    except FunctionError as error:
        return str(error)


def decode_base64(text: str) -> bytes:
    """Decode base64, over several lines too.

    Raises:
        FunctionError: the text is none; says from which byte on.
    """
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        position = _bad_position(text, _BASE64, _QUAD)
        raise FunctionError(f"illegal base64 data at input byte {position}") from error


@_add("b32enc", "string", most=SLOW)
def b32enc(text: str) -> str:
    return base64.b32encode(to_bytes(text)).decode()


@_add("b32dec", "string", most=SLOW)
def b32dec(text: str) -> str:
    """Decode base32; what is wrong with the text comes back in its place."""
    plain = text.replace("\n", "").replace("\r", "")
    try:
        return to_text(base64.b32decode(plain))
    except (binascii.Error, ValueError):
        return f"illegal base32 data at input byte {_bad_position(plain, _BASE32, _OCTET)}"


def _bad_position(text: str, alphabet: frozenset[str], group: int) -> int:
    """Find the byte Go names: the first that does not belong, or the start of a broken group."""
    taken = 0
    for position, character in enumerate(to_bytes(text)):
        if chr(character) in "\r\n":
            continue
        if chr(character) not in alphabet:
            if chr(character) == "=" and taken % group >= group // 2:
                continue
            return position
        taken += 1
    broken = taken % group if not text.endswith("=") else 0
    return len(to_bytes(text)) - broken


@_add("sha1sum", "string")
def sha1sum(text: str) -> str:
    return hashlib.sha1(to_bytes(text), usedforsecurity=False).hexdigest()


@_add("sha256sum", "string")
def sha256sum(text: str) -> str:
    return hashlib.sha256(to_bytes(text)).hexdigest()


@_add("sha512sum", "string")
def sha512sum(text: str) -> str:
    return hashlib.sha512(to_bytes(text)).hexdigest()


@_add("adler32sum", "string")
def adler32sum(text: str) -> str:
    """Return the Adler-32 checksum in decimal."""
    return str(zlib.adler32(to_bytes(text)))


# -- chance


def _random(budget: Budget, alphabet: str, count: int) -> str:
    budget.begin_call((), SLOWER)
    budget.take(count)
    return "".join(secrets.SystemRandom().choices(alphabet, k=max(count, 0)))


@_add("randAlphaNum", "int", budgeted=True)
def rand_alpha_num(budget: Budget, count: int) -> str:
    return _random(budget, _LETTERS + _DIGITS, count)


@_add("randAlpha", "int", budgeted=True)
def rand_alpha(budget: Budget, count: int) -> str:
    return _random(budget, _LETTERS, count)


@_add("randNumeric", "int", budgeted=True)
def rand_numeric(budget: Budget, count: int) -> str:
    return _random(budget, _DIGITS, count)


@_add("randAscii", "int", budgeted=True)
def rand_ascii(budget: Budget, count: int) -> str:
    """Return random printable characters."""
    return _random(budget, _PRINTABLE, count)


@_add("randBytes", "int", budgeted=True)
def rand_bytes(budget: Budget, count: int) -> str:
    """Return random bytes in base64."""
    if count < 0:
        raise FunctionError("runtime error: makeslice: len out of range")
    budget.reserve(count * 2)
    return base64.b64encode(secrets.token_bytes(count)).decode()


@_add("shuffle", "string", most=SLOWER)
def shuffle(text: str) -> str:
    characters = list(text)
    secrets.SystemRandom().shuffle(characters)
    return "".join(characters)


@_add("uuidv4")
def uuidv4() -> str:
    import uuid  # noqa: PLC0415 - dear, and rarely asked for

    return str(uuid.uuid4())
