"""Which tokens of service accounts count: those of the forwarder, for us, signed and in force."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest

from bellhop.errors import DeniedError, InvalidError
from bellhop.ingest.account_tokens import (
    LEEWAY,
    MOST_KEYS,
    UnknownKeyError,
    audience_of,
    may_be_one,
    read_keys,
    verify,
)
from bellhop.state.ingest_policy import Issuer
from tests.fakes.clock import START as NOW
from tests.fakes.tokens import AUDIENCE, ISSUER, Signer

RSA = Signer("one")
CURVES = [Signer(curve, curve) for curve in ("P-256", "P-384", "P-521")]
OTHER = Signer("one")
"""A foreign key of the same name."""

KEYS = read_keys({"keys": [each.published() for each in (RSA, *CURVES)]})
CLUSTER = Issuer(ISSUER, AUDIENCE, KEYS, NOW)


def encoded(part: Any) -> str:
    text = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def parts(token: str) -> list[str]:
    return token.split(".")


GOOD = RSA.token(NOW)
HEAD, CLAIMS, SIGNATURE = parts(GOOD)


@pytest.mark.parametrize("signer", [RSA, *CURVES], ids=lambda each: each.algorithm)
def test_takes_what_an_api_server_signs(signer: Signer) -> None:
    """By every algorithm that API servers sign with, and for several audiences at once."""
    verify(signer.token(NOW), CLUSTER, NOW)
    verify(signer.token(NOW, aud=["https://other", AUDIENCE]), CLUSTER, NOW)
    verify(signer.token(NOW, aud=AUDIENCE, nbf=None), CLUSTER, NOW)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        pytest.param({"aud": ["https://other"]}, "it is for somebody else", id="another audience"),
        pytest.param({"aud": None}, "it is for somebody else", id="no audience"),
        pytest.param({"aud": [[AUDIENCE]]}, "it is for somebody else", id="an odd audience"),
        pytest.param({"aud": f"{AUDIENCE}/x"}, "it is for somebody else", id="one that begins so"),
        pytest.param({"iss": "https://other"}, "another issuer", id="another issuer"),
        pytest.param({"sub": "system:serviceaccount:default:a"}, "another account", id="account"),
        pytest.param({"sub": "admin"}, "another account", id="a user"),
        pytest.param({"exp": NOW.timestamp() - 60}, "it has expired", id="expired"),
        pytest.param({"nbf": NOW.timestamp() + 61}, "it is not in force yet", id="not yet valid"),
        pytest.param({"exp": None}, "until when", id="no end"),
        pytest.param({"exp": "9999999999"}, "until when", id="an end that is no number"),
        pytest.param({"exp": True}, "until when", id="an end that is a flag"),
        pytest.param({"exp": 10**30}, "until when", id="an end that is no day"),
        pytest.param({"nbf": "now"}, "until when", id="a beginning that is no number"),
    ],
)
def test_refuses_what_a_token_says(claims: dict[str, Any], why: str) -> None:
    """Well signed, and not for us, not the forwarder's, or not in force."""
    with pytest.raises(DeniedError, match=why):
        verify(RSA.token(NOW, **claims), CLUSTER, NOW)


def test_bears_with_clocks_that_are_a_little_apart() -> None:
    """A minute on both sides, and no more."""
    token = RSA.token(NOW)
    end = NOW + timedelta(hours=1) + LEEWAY

    verify(token, CLUSTER, NOW - LEEWAY)
    verify(token, CLUSTER, end - timedelta(seconds=1))
    for at in (NOW - LEEWAY - timedelta(seconds=1), end):
        with pytest.raises(DeniedError):
            verify(token, CLUSTER, at)


def keyed_with_what_is_public() -> str:
    """Sign with the public key as a secret, as some libraries could be made to believe."""
    head = encoded({"alg": "HS256", "kid": "one"})
    secret = RSA.key.as_pem(private=False)
    signature = hmac.new(secret, f"{head}.{CLAIMS}".encode(), hashlib.sha256).digest()
    return f"{head}.{CLAIMS}.{encoded(signature)}"


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("", id="nothing"),
        pytest.param("..", id="empty parts"),
        pytest.param("a.b.c", id="no base64"),
        pytest.param(f"{HEAD}.{CLAIMS}", id="two parts"),
        pytest.param(f"{HEAD}.{CLAIMS}.", id="no signature"),
        pytest.param(f"{GOOD}.x", id="four parts"),
        pytest.param(f"{HEAD}.{CLAIMS}.{SIGNATURE[:-4]}", id="a signature cut off"),
        pytest.param(f"{HEAD}.{CLAIMS}.{'A' * len(SIGNATURE)}", id="a signature of zeros"),
        pytest.param(f"{HEAD}.{CLAIMS}. {SIGNATURE}", id="a blank within"),
        pytest.param(f"{HEAD}.{CLAIMS}é.{SIGNATURE}", id="no ASCII"),
        pytest.param(f"{HEAD}.{encoded({'exp': 9999999999})}.{SIGNATURE}", id="other claims"),
        pytest.param(f"{encoded([])}.{CLAIMS}.{SIGNATURE}", id="a head that is a list"),
        pytest.param(f"{encoded(b'{' * 5000)}.{CLAIMS}.{SIGNATURE}", id="a head that is deep"),
        pytest.param(OTHER.token(NOW), id="a stranger's key of that name"),
        pytest.param(keyed_with_what_is_public(), id="the public key as a secret"),
        pytest.param(
            f"{encoded({'alg': 'none', 'kid': 'one'})}.{CLAIMS}.", id="no algorithm at all"
        ),
        pytest.param(
            f"{encoded({'alg': 'RS256', 'kid': 'P-256'})}.{CLAIMS}.{SIGNATURE}", id="mixed kinds"
        ),
        pytest.param(
            f"{encoded({'alg': 'ES256', 'kid': 'P-256'})}.{CLAIMS}.{encoded(bytes(64))}",
            id="a curve's signature of zeros",
        ),
        pytest.param(
            f"{encoded({'alg': 'ES256', 'kid': 'P-256'})}.{CLAIMS}.{encoded(bytes(63))}",
            id="a curve's signature that is short",
        ),
        pytest.param("a" * 9000 + f".{CLAIMS}.{SIGNATURE}", id="very long"),
    ],
)
def test_refuses_what_is_not_signed(token: str) -> None:
    """Foreign tokens, and every token that was changed on the way."""
    with pytest.raises(DeniedError):
        verify(token, CLUSTER, NOW)


def test_asks_for_nothing_critical() -> None:
    """What a head says has to be understood is not."""
    head = encoded({"alg": "RS256", "kid": "one", "crit": ["exp"]})
    with pytest.raises(DeniedError, match="not signed as its key signs"):
        verify(f"{head}.{CLAIMS}.{SIGNATURE}", CLUSTER, NOW)


def test_names_a_key_that_is_not_known() -> None:
    """It may be a new one; no key counts that is not named."""
    for token in (Signer("two").token(NOW), f"{encoded({'alg': 'RS256'})}.{CLAIMS}.{SIGNATURE}"):
        with pytest.raises(UnknownKeyError):
            verify(token, CLUSTER, NOW)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("text", id="no object"),
        pytest.param({"kty": "oct", "kid": "a", "k": "c2VjcmV0"}, id="a secret"),
        pytest.param(RSA.published(use="enc"), id="for encryption"),
        pytest.param(RSA.published(alg="PS256"), id="another algorithm"),
        pytest.param(RSA.published(kid=""), id="without a name"),
        pytest.param(RSA.published(kid=7), id="a name that is a number"),
        pytest.param(RSA.published(n="AQAB"), id="far too short"),
        pytest.param(RSA.published(n="A" * 3000), id="far too long"),
        pytest.param(RSA.published(n="*"), id="no base64"),
        pytest.param({"kty": "RSA", "kid": "a"}, id="no numbers"),
        pytest.param(CURVES[0].published(crv="secp256k1"), id="another curve"),
    ],
)
def test_passes_over_keys_of_no_use(key: Any) -> None:
    """Nothing weak, and nothing that API servers do not sign with; others beside it count."""
    assert read_keys({"keys": [key, RSA.published()]}) == KEYS[:1]


@pytest.mark.parametrize(
    "published", [None, [], {}, {"keys": "x"}, {"keys": [{}] * (MOST_KEYS + 1)}]
)
def test_refuses_what_is_no_key_set(published: Any) -> None:
    """In one sentence."""
    with pytest.raises(InvalidError, match="they are not a key set"):
        read_keys(published)


def test_a_point_off_its_curve_is_no_key() -> None:
    """It is found when a token is checked, and refuses it."""
    [key] = read_keys({"keys": [CURVES[0].published(x=encoded(bytes(31) + b"\1"))]})
    with pytest.raises(DeniedError):
        verify(CURVES[0].token(NOW), Issuer(ISSUER, AUDIENCE, (key,), NOW), NOW)


def test_keeps_only_the_public_part() -> None:
    """What an API server would publish by mistake is not kept."""
    private = {**RSA.published(), "d": "secret", "x5c": ["a chain"]}

    assert read_keys({"keys": [private]}) == KEYS[:1]
    assert set(KEYS[0]) == {"kid", "kty", "alg", "n", "e"}


def test_reads_the_account_of_a_token() -> None:
    """Without checking it; of anything else nothing."""
    assert audience_of(GOOD) == [AUDIENCE]
    assert audience_of("token-of-the-source") == ()
    assert audience_of("a.b.c") == ()
    assert may_be_one(GOOD)
    assert not may_be_one("token-of-the-source")
