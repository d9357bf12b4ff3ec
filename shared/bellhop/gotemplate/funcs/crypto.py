"""Sprig's passwords and ciphers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.funcs.encoding import decode_base64
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.limits import WRITTEN
from bellhop.gotemplate.literals import to_bytes, to_text

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add

_BLOCK, _KEY = 16, 32
_LONGEST_BCRYPT = 72
_SEED = b"com.lyndir.masterpassword"
_SHAPES: dict[str, list[str]] = {
    "maximum": ["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
    "long": [
        "CvcvnoCvcvCvcv",
        "CvcvCvcvnoCvcv",
        "CvcvCvcvCvcvno",
        "CvccnoCvcvCvcv",
        "CvccCvcvnoCvcv",
        "CvccCvcvCvcvno",
        "CvcvnoCvccCvcv",
        "CvcvCvccnoCvcv",
        "CvcvCvccCvcvno",
        "CvcvnoCvcvCvcc",
        "CvcvCvcvnoCvcc",
        "CvcvCvcvCvccno",
        "CvccnoCvccCvcv",
        "CvccCvccnoCvcv",
        "CvccCvccCvcvno",
        "CvcvnoCvccCvcc",
        "CvcvCvccnoCvcc",
        "CvcvCvccCvccno",
        "CvccnoCvcvCvcc",
        "CvccCvcvnoCvcc",
        "CvccCvcvCvccno",
    ],
    "medium": ["CvcnoCvc", "CvcCvcno"],
    "short": ["Cvcn"],
    "basic": ["aaanaaan", "aannaaan", "aaannaaa"],
    "pin": ["nnnn"],
}
_LETTERS = "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz"
_CHARACTERS = {
    "V": "AEIOU",
    "C": "BCDFGHJKLMNPQRSTVWXYZ",
    "v": "aeiou",
    "c": "bcdfghjklmnpqrstvwxyz",
    "A": "AEIOUBCDFGHJKLMNPQRSTVWXYZ",
    "a": _LETTERS,
    "n": "0123456789",
    "o": "@&%?,=[]_:-+*$#!'^~;()/.",
    "x": _LETTERS + "0123456789!@#$%^&*()",
}


@_add("bcrypt", "string", budgeted=True)
def bcrypt_(budget: Budget, password: str) -> str:
    """Hash a password with bcrypt, at its cost of 10, with a new salt each time."""
    import bcrypt  # noqa: PLC0415 - loads native code that hardly any template needs

    budget.look()
    data = to_bytes(password)
    if len(data) > _LONGEST_BCRYPT:
        return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
    return bcrypt.hashpw(data, bcrypt.gensalt(rounds=10, prefix=b"2a")).decode()


@_add("htpasswd", "string", "string", budgeted=True)
def htpasswd(budget: Budget, user: str, password: str) -> str:
    """Write a line of a password file, its password hashed with bcrypt."""
    if ":" in user:
        return f"invalid username: {user}"
    return f"{user}:{bcrypt_(budget, password)}"


@_add("derivePassword", "uint32", *["string"] * 4, budgeted=True)
def derive_password(
    budget: Budget, counter: int, kind: str, password: str, user: str, site: str
) -> str:
    """Derive a password for a site from a master password."""
    shapes = _SHAPES.get(kind)
    if shapes is None:
        return f"cannot find password template {kind}"
    budget.look()
    name, place = to_bytes(user), to_bytes(site)
    salt = _SEED + len(name).to_bytes(4, "big") + name
    key = hashlib.scrypt(to_bytes(password), salt=salt, n=32768, r=8, p=2, maxmem=1 << 27, dklen=64)
    message = _SEED + len(place).to_bytes(4, "big") + place + counter.to_bytes(4, "big")
    seed = hmac.new(key, message, hashlib.sha256).digest()
    shape = shapes[seed[0] % len(shapes)]
    return "".join(
        _CHARACTERS[mark][seed[position] % len(_CHARACTERS[mark])]
        for position, mark in enumerate(shape, 1)
    )


def _cipher(password: str, vector: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers import (  # noqa: PLC0415 - 15 MB of library
        Cipher,
        algorithms,
        modes,
    )

    key = to_bytes(password)[:_KEY].ljust(_KEY, b"\0")
    return Cipher(algorithms.AES(key), modes.CBC(vector))


@_add("encryptAES", "string", "string")
def encrypt_aes(password: str, text: str) -> str:
    """Encrypt with AES-256-CBC; the result is base64, a random vector first."""
    if not text:
        return ""
    data = to_bytes(text)
    padding = _BLOCK - len(data) % _BLOCK
    vector = secrets.token_bytes(_BLOCK)
    encryptor = _cipher(password, vector).encryptor()
    sealed = encryptor.update(data + bytes([padding]) * padding) + encryptor.finalize()
    return base64.b64encode(vector + sealed).decode()


@_add("decryptAES", "string", "string", most=WRITTEN)
def decrypt_aes(password: str, text: str) -> str:
    """Decrypt what encryptAES made."""
    if not text:
        return ""
    data = decode_base64(text)
    if len(data) < 2 * _BLOCK or len(data) % _BLOCK:
        raise FunctionError("crypto/cipher: input not full blocks")
    decryptor = _cipher(password, data[:_BLOCK]).decryptor()
    plain: bytes = decryptor.update(data[_BLOCK:]) + decryptor.finalize()
    if plain[-1] > len(plain):
        raise FunctionError("runtime error: slice bounds out of range")
    return to_text(plain[: len(plain) - plain[-1]])
