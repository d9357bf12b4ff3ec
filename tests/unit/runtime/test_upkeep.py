"""Certificates that renew themselves while the process runs on."""

from __future__ import annotations

import http.client
import io
import json
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from msgspec.structs import replace

from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.adapters.local.server import Server
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import InvalidError
from bellhop.installation import Inbound, Installation, Room
from bellhop.logs import Log
from bellhop.runtime.embedded.upkeep import ListenerIdentity, MountedIdentity, Upkeep
from tests.fakes.clock import FakeClock

DAY = timedelta(days=1)


class Listener:
    """A server with an identity, its upkeep, and a client that keeps its connection."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.log = io.StringIO()
        self.identity = ListenerIdentity(folder, ["127.0.0.1"], clock.now())
        certificate, key = self.identity.certificate(clock.now())
        self.server = Server(
            _respond, host="127.0.0.1", port=0, certificate_pem=certificate, key_pem=key, threads=2
        )
        self.server.start()
        self.room = Room(folder, 2**40, 2**41)
        self.upkeep = Upkeep(clock, self.identity, self.server, Log(self.log), lambda: self.room)

    @contextmanager
    def connected(self) -> Iterator[http.client.HTTPSConnection]:
        trust = ssl.create_default_context(cadata=self.identity.ca)
        # The test's clock is not the machine's.
        trust.verify_flags |= ssl.VerifyFlags(0x200000)  # X509_V_FLAG_NO_CHECK_TIME
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, context=trust)
        with closing(connection):
            yield connection


def _respond(environ: object, start_response: object) -> list[bytes]:
    del environ
    start_response("200 OK", [("Content-Length", "2")])  # type: ignore[operator]
    return [b"ok"]


@pytest.fixture
def listener(tmp_path: Path, clock: FakeClock) -> Iterator[Listener]:
    made = Listener(tmp_path / "tls", clock)
    yield made
    made.server.stop()


def shown(connection: http.client.HTTPSConnection) -> x509.Certificate:
    """Ask once, and return the certificate of the connection."""
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"ok"
    raw = connection.sock.getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(raw)


def test_a_process_that_runs_on_shows_a_new_certificate(
    listener: Listener, clock: FakeClock
) -> None:
    """Well before the first one ends; connections that are open stay so."""
    with listener.connected() as kept, listener.connected() as early:
        first = shown(kept)
        listener.upkeep.tick()
        assert shown(early) == first
        clock.advance((first.not_valid_after_utc - clock.now()) * 0.6)
        listener.upkeep.tick()
        with listener.connected() as fresh:
            second = shown(fresh)

        assert shown(kept) == first
        assert second != first
        assert second.not_valid_after_utc > first.not_valid_after_utc
        assert clock.now() < first.not_valid_after_utc - 20 * DAY


def test_an_authority_that_has_ended_ends_nothing_else(
    listener: Listener, clock: FakeClock
) -> None:
    """The listener goes on as it is, the log says why, and it is tried again later."""
    clock.advance(3651 * DAY)
    listener.upkeep.tick()
    listener.upkeep.tick()

    assert listener.log.getvalue().count("Cannot renew the listener's certificate") == 1
    with listener.connected() as connection:
        assert shown(connection)


def test_a_disk_that_fills_up_is_reported_once(listener: Listener) -> None:
    """Early enough to do something, once more when it is full, and when there is space again."""
    mebi = 1024 * 1024
    for free in (1024, 200, 150, 3, 2, 100, 1024, 1024):
        listener.room = Room(listener.room.folder, free * mebi, 10_240 * mebi)
        listener.upkeep.tick()
    lines = [json.loads(line) for line in listener.log.getvalue().splitlines()]

    assert [line["message"] for line in lines] == [
        "The disk of the state fills up",
        "The disk of the state is full",
        "The disk of the state fills up",
        "The disk of the state has free space again",
    ]
    assert lines[0]["problem"] == (
        "200 MiB are left of 10240 MiB; below 4 MiB nothing is written, and no event is taken in"
    )


def test_the_identity_outlives_restarts(tmp_path: Path, clock: FakeClock) -> None:
    """Clients go on trusting the certificate that they were given."""
    first = ListenerIdentity(tmp_path / "tls", ["127.0.0.1"], clock.now())
    second = ListenerIdentity(tmp_path / "tls", ["127.0.0.1"], clock.now())

    assert first.ca == second.ca
    assert (tmp_path / "tls" / "authority.json").stat().st_mode & 0o777 == 0o600


def test_a_damaged_authority_is_named(tmp_path: Path, clock: FakeClock) -> None:
    """One sentence, what to do, and nothing of the key."""
    ListenerIdentity(tmp_path / "tls", ["127.0.0.1"], clock.now())
    path = tmp_path / "tls" / "authority.json"
    path.write_text(json.dumps({"key": "secret-key"}))

    with pytest.raises(InvalidError, match=r"authority.json.*damaged") as caught:
        ListenerIdentity(tmp_path / "tls", ["127.0.0.1"], clock.now())
    assert "secret-key" not in str(caught.value)


def test_an_authority_near_its_end_is_named(here: Installation, clock: FakeClock) -> None:
    """`show failures` says so a year before, with what to do."""
    authority = make_authority("Bellhop", now=clock.now(), validity=3650 * DAY)
    inbound = Inbound("https://127.0.0.1", authority.certificate_pem.decode())
    served = replace(here, inbound=inbound)
    before = list(list_failures(served))
    clock.advance(3290 * DAY)
    (failure,) = list_failures(served)

    assert before == []
    assert failure.type == "certificate"
    assert "ends on 2035-12-30" in failure.message
    assert "register every cluster again" in failure.message


def test_a_mounted_certificate_is_read_again_each_hour(tmp_path: Path, clock: FakeClock) -> None:
    """The authority is the one of the start, and one without `ca.crt` is a public one."""
    authority = make_authority("Private", now=clock.now(), validity=DAY)

    def mount() -> bytes:
        made, key = issue(authority, ["bellhop"], now=clock.now(), validity=DAY)
        (tmp_path / "tls.crt").write_bytes(made)
        (tmp_path / "tls.key").write_bytes(key)
        return made

    first = mount()
    assert MountedIdentity(tmp_path, clock.now()).ca == ""
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    identity = MountedIdentity(tmp_path, clock.now())

    assert identity.ca == authority.certificate_pem.decode()
    assert identity.certificate(clock.now())[0] == first
    second = mount()
    assert identity.renew_at - clock.now() == timedelta(hours=1)
    assert identity.certificate(clock.now())[0] == second
    (tmp_path / "tls.key").unlink()
    with pytest.raises(InvalidError, match=r"'tls.key' cannot be read.*kubernetes.io/tls"):
        identity.certificate(clock.now())
