"""Tokens of a cluster's service accounts, verified offline by the keys of its API server.

A token is three parts of base64, `head.claims.signature`. None of its content is trusted before its
signature fits a known key: the key decides the algorithm, and only those of API servers are
accepted. Anything else is refused.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from bellhop.errors import DeniedError, InvalidError
from bellhop.state.ingest_policy import Issuer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

FORWARDER = "system:serviceaccount:bellhop-system:bellhop-forwarder"
"""Service account of a forwarder; `forwarder_manifests` has both names, and is slow to import."""

LEEWAY = timedelta(minutes=1)
"""By how much the API server's clock and ours may differ."""

MOST_KEYS = 16
_LONGEST = 8192
_LONGEST_KEY = 2048
"""Characters of a token, and of one key: far more than any has."""

_PARTS = 3
_CURVES = {"P-256": ("ES256", 32), "P-384": ("ES384", 48), "P-521": ("ES512", 66)}
_RSA = "RS256"
_RSA_BITS = (2048, 8192)
_NAMES = ("kid", "kty", "alg", "n", "e", "crv", "x", "y")


class UnknownKeyError(DeniedError):
    """A token names an unknown key: it may be a new one, or an unauthenticated client's."""


def may_be_one(token: str) -> bool:
    """Return whether a token looks like one of a service account."""
    return token.count(".") == _PARTS - 1 and len(token) <= _LONGEST


def read_keys(published: Any) -> tuple[Mapping[str, str], ...]:
    """Read a JSON Web Key Set as an API server publishes it; keys of no use are passed over.

    Raises:
        InvalidError: it is none, or has very many keys.
    """
    keys = published.get("keys") if isinstance(published, Mapping) else None
    if not isinstance(keys, Sequence) or isinstance(keys, str) or len(keys) > MOST_KEYS:
        raise InvalidError("cannot read the keys of the cluster's accounts: they are not a key set")
    return tuple(
        {name: each[name] for name in _NAMES if name in each} for each in keys if _is_usable(each)
    )


def verify(token: str, issuer: Issuer, now: datetime) -> None:
    """See that a token is one of the cluster's forwarder, for us, and in force.

    Raises:
        UnknownKeyError: it names a key that is not among those we have.
        DeniedError: it is anything else than that; the sentence says what.
    """
    if not may_be_one(token):
        raise DeniedError("it is not a token of a service account")
    signed, _, signature = token.rpartition(".")
    head, claims = (_object(part) for part in signed.split("."))
    key = next((each for each in issuer.keys if each["kid"] == head.get("kid")), None)
    if key is None:
        raise UnknownKeyError("it is signed with a key that is not known")
    if head.get("alg") != _algorithm(key) or "crit" in head:
        raise DeniedError("it is not signed as its key signs")
    if not _fits(key, signed.encode("ascii"), _decoded(signature)):
        raise DeniedError("its signature is not that of its key")
    _verify_claims(claims, issuer, now)


def audience_of(token: str) -> Sequence[str]:
    """Return the audiences that a token claims; none if it is no token."""
    try:
        return _listed(_object(token.split(".")[1]).get("aud")) if may_be_one(token) else ()
    except DeniedError:
        return ()


def _verify_claims(claims: Mapping[str, Any], issuer: Issuer, now: datetime) -> None:
    if claims.get("iss") != issuer.issuer:
        raise DeniedError("another issuer than the cluster's has made it")
    if issuer.audience not in _listed(claims.get("aud")):
        raise DeniedError("it is for somebody else")
    if claims.get("sub") != FORWARDER:
        raise DeniedError("it is another account's than the forwarder's")
    ends, begins = _time(claims.get("exp")), _time(claims.get("nbf", 0))
    if ends is None or begins is None:
        raise DeniedError("it does not say until when it is in force")
    if ends <= (now - LEEWAY).timestamp():
        raise DeniedError("it has expired")
    if begins > (now + LEEWAY).timestamp():
        raise DeniedError("it is not in force yet")


def _fits(key: Mapping[str, str], signed: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - import budget
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, padding, utils  # noqa: PLC0415

    try:
        if key["kty"] == "RSA":
            _rsa(key).verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
            return True
        size = _CURVES[key["crv"]][1]
        if len(signature) != 2 * size:
            return False
        halves = (int.from_bytes(part) for part in (signature[:size], signature[size:]))
        by = {32: hashes.SHA256(), 48: hashes.SHA384(), 66: hashes.SHA512()}[size]
        _curve(key).verify(utils.encode_dss_signature(*halves), signed, ec.ECDSA(by))
    except (InvalidSignature, ValueError):
        # A number that no such key has is found here, too.
        return False
    return True


def _rsa(key: Mapping[str, str]) -> RSAPublicKey:
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - import budget

    return rsa.RSAPublicNumbers(_number(key["e"]), _number(key["n"])).public_key()


def _curve(key: Mapping[str, str]) -> EllipticCurvePublicKey:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - import budget

    curves = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
    numbers = (_number(key["x"]), _number(key["y"]))
    return ec.EllipticCurvePublicNumbers(*numbers, curves[key["crv"]]).public_key()


def _is_usable(key: Any) -> bool:
    """Return whether a key is one that service accounts' tokens are signed with, and no weaker."""
    if not isinstance(key, Mapping) or key.get("use", "sig") != "sig":
        return False
    found = {name: key[name] for name in _NAMES if name in key}
    if not all(isinstance(each, str) for each in found.values()) or not found.get("kid"):
        return False
    if sum(map(len, found.values())) > _LONGEST_KEY or not _algorithm(found):
        return False
    try:
        if found["kty"] == "RSA":
            return _RSA_BITS[0] <= _number(found["n"]).bit_length() <= _RSA_BITS[1] and bool(
                _number(found["e"])
            )
        return _number(found["x"]) >= 0 and _number(found["y"]) >= 0
    except (KeyError, DeniedError):
        return False


def _algorithm(key: Mapping[str, str]) -> str:
    """Return the algorithm by which a key signs; empty if it has none of the accepted ones."""
    own = _RSA if key.get("kty") == "RSA" else ""
    if key.get("kty") == "EC":
        own = _CURVES.get(key.get("crv", ""), ("", 0))[0]
    return own if key.get("alg", own) == own else ""


def _object(part: str) -> Mapping[str, Any]:
    try:
        found = json.loads(_decoded(part))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise DeniedError("it is not a token of a service account")
    return found


def _decoded(part: str) -> bytes:
    try:
        padded = part.encode("ascii") + b"=" * (-len(part) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise DeniedError("it is not a token of a service account") from error


def _number(text: str) -> int:
    return int.from_bytes(_decoded(text))


def _listed(audience: Any) -> Sequence[str]:
    """Return an audience as a list: a token may have a single one as a string."""
    found = [audience] if isinstance(audience, str) else audience
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _time(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e12 else None  # noqa: PLR2004 - a far day
