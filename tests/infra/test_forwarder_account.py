"""Which token the forwarder sends: that of its account, or that of its Secret."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bellhop.forwarder.ingest_client import Account
from tests.fakes.clock import START
from tests.fakes.tokens import Signer
from tests.infra.sender_rig import Office
from tests.waiting import eventually


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path)
    yield office
    office.close()


def test_sends_as_its_account(office: Office, tmp_path: Path) -> None:
    """As the file says it each time; by the Secret, for a minute, if ingest does not take that."""
    mounted = tmp_path / "token"
    office.sender._ingest_client._account = Account(mounted)
    signer = Signer("a", "P-256")
    audience = office.ingest.server.url
    one, other = (signer.token(datetime.now(UTC), aud=audience, sub=each) for each in ("1", "2"))
    # It says at once that it is there.
    mounted.write_text(one)
    office.sender.start()
    said: list[list[str]] = []
    for number, token in enumerate((one, other, "", one, one, other)):
        # In one step, as a kubelet does it: the sender may be reading.
        fresh = tmp_path / "fresh"
        fresh.write_text(token)
        fresh.replace(mounted)
        if number == 3:
            office.ingest.denied = {one}
        office.ingest.tokens.clear()
        office.put(f"a{number}")
        eventually("it is taken", lambda name=f"a{number}": name in office.names())
        said.append([*dict.fromkeys(office.ingest.tokens)])

    assert said == [[one], [other], ["t"], [one, "t"], ["t"], [other]]
    assert office.refused == []


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(Signer("a", "P-256").token(START), id="for another ingest"),
        pytest.param("a.b.c", id="no token"),
        pytest.param("x" * 100_000, id="very long"),
        pytest.param("é.é.é", id="no ASCII"),
        pytest.param(None, id="no file"),
    ],
)
def test_sends_no_token_that_is_not_for_its_ingest(tmp_path: Path, token: str | None) -> None:
    """It would be valid for a client that gets it there."""
    if token is not None:
        (tmp_path / "token").write_text(token)

    assert Account(tmp_path / "token").token("https://ingest.other") == ""
