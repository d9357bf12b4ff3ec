"""Signatures by Standard Webhooks, beside the specification's own example."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bellhop.errors import InvalidError
from bellhop.ingest import signatures

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NAME, AT, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
HEADERS = {"webhook-id": NAME, "webhook-timestamp": str(AT), "webhook-signature": SIGNATURE}


def test_signs_as_the_specification_does() -> None:
    """Its example has this signature, and nothing of it may be changed."""
    signed = signatures.read(HEADERS)
    assert signed is not None

    assert signatures.sign(KEY, NAME, AT, BODY) == SIGNATURE
    assert signatures.fits([KEY], signed, BODY)
    assert not signatures.fits([KEY], signed, BODY + b" ")
    assert not signatures.fits([signatures.new_key()], signed, BODY)
    for name, other in (("webhook-id", "msg_other"), ("webhook-timestamp", str(AT + 1))):
        changed = signatures.read({**HEADERS, name: other})
        assert changed is not None
        assert not signatures.fits([KEY], changed, BODY)


def test_any_key_and_any_signature_will_do() -> None:
    """Sender and receiver change their keys at different times, and other versions are passed."""
    other = signatures.sign(signatures.new_key(), NAME, AT, BODY)
    signed = signatures.read({**HEADERS, "webhook-signature": f"v1a,abc {other} {SIGNATURE}"})
    assert signed is not None

    assert signatures.fits([signatures.new_key(), KEY], signed, BODY)
    assert len(signed.signatures) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("webhook-id", "", id="no id"),
        pytest.param("webhook-id", "x" * 257, id="an endless id"),
        pytest.param("webhook-timestamp", "", id="no time"),
        pytest.param("webhook-timestamp", "1e9", id="a time that is no number of seconds"),
        pytest.param("webhook-timestamp", "-1", id="before all times"),
        pytest.param("webhook-timestamp", "1" * 13, id="after all times"),
        pytest.param("webhook-timestamp", "١٢٣", id="digits of another script"),
        pytest.param("webhook-signature", "", id="no signature"),
        pytest.param("webhook-signature", "v2,abc", id="another version alone"),
        pytest.param("webhook-signature", " ".join([SIGNATURE] * 9), id="very many"),
    ],
)
def test_reads_nothing_else(name: str, value: str) -> None:
    """What is not as the specification has it is no signature."""
    assert signatures.read({**HEADERS, name: value}) is None


def test_what_is_no_signature_fits_no_key() -> None:
    """Bytes of any kind in the header are compared, and differ."""
    for text in ("v1,", "v1,é", "v1,\udcff", "v1,!!!"):
        signed = signatures.read({**HEADERS, "webhook-signature": text})
        assert signed is None or not signatures.fits([KEY], signed, BODY)
    signed = signatures.read({**HEADERS, "webhook-id": "\udcff\u20ac"})
    assert signed is not None
    assert not signatures.fits([KEY], signed, BODY)
    assert len(signed.digest) == 32


@pytest.mark.parametrize(
    ("seconds", "counts"), [(-301, False), (-300, True), (300, True), (301, False)]
)
def test_counts_five_minutes_either_way(seconds: int, counts: bool) -> None:  # noqa: FBT001 - a case
    """A request that is older, or of a time to come, is not from now."""
    signed = signatures.read(HEADERS)
    assert signed is not None

    now = datetime.fromtimestamp(AT, UTC) - timedelta(seconds=seconds)
    assert signed.in_time(now) is counts


def test_an_attempt_is_known_by_its_id_and_time() -> None:
    """The same message at another time is another attempt; other signatures make none."""
    digests = {
        signed.digest
        for headers in (
            HEADERS,
            {**HEADERS, "webhook-signature": "v1,x"},
            {**HEADERS, "webhook-timestamp": str(AT + 1)},
        )
        if (signed := signatures.read(headers))
    }

    assert len(digests) == 2


def test_a_key_that_is_none_is_said_to_be_so() -> None:
    """Nobody signs with what is no base64."""
    with pytest.raises(InvalidError, match="not base64"):
        signatures.sign("whsec_!", NAME, AT, BODY)
    assert signatures.new_key() != signatures.new_key()
