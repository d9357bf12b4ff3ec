"""What becomes of messages of a real NATS server: core, JetStream, and all that goes wrong."""

from __future__ import annotations

import socketserver
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nats.js.api import ConsumerConfig

from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.errors import UnreachableError
from infra.lab.processes import Nursery
from tests.infra.nats_rig import SECRET, Bridge, configuration, happened
from tests.waiting import eventually

HOUR = timedelta(hours=1)


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Bridge]:
    with Nursery() as nursery:
        bridge = Bridge(tmp_path, nursery)
        bridge.nats.start()
        yield bridge
        bridge.close()


def test_sends_the_messages_of_core_subjects(bridge: Bridge) -> None:
    """Each message is one CloudEvent with the subject that it came by, and the pattern asked."""
    bridge.subscribe(bridge.core("logins", "shop.>"))
    bridge.publish(happened(1))
    bridge.publish(happened(2), subject="shop.eu.sold")
    bridge.publish(happened(3), subject="elsewhere")
    eventually("both are there", lambda: len(bridge.ingest.taken) == 2)

    found = {each["id"]: each for each in bridge.ingest.taken}
    assert found["1"]["messagingsubject"] == "logins"
    assert "messagingasked" not in found["1"]
    assert found["1"]["data"] == {"n": 1}
    assert found["2"]["messagingsubject"] == "shop.eu.sold"
    assert found["2"]["messagingasked"] == "shop.>"
    eventually("nothing is kept", lambda: bridge.messaging.kept() == 0)


def test_keeps_core_messages_while_ingest_is_away_and_over_a_restart(bridge: Bridge) -> None:
    """NATS keeps none: what came is on disk, and is sent by the next process in its order."""
    bridge.ingest.status = 503
    bridge.subscribe(bridge.core())
    bridge.publish(*map(happened, range(150)))
    eventually("all are kept", lambda: bridge.messaging.kept() == 150)
    bridge.end(0.0)
    bridge.ingest.status = 200
    bridge.messaging = bridge._make()
    bridge.messaging.start()
    eventually("all were taken", lambda: len(bridge.ingest.taken) == 150)

    assert bridge.ingest.ids == [f"{number}" for number in range(150)]
    assert bridge.count("events_dropped") == 0


def test_sends_each_message_to_one_of_two_forwarders(
    bridge: Bridge, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two replicas share the core subjects, so that ingest is not asked twice."""
    bridge.subscribe(bridge.core())
    with Nursery() as nursery:
        other = Bridge(tmp_path_factory.mktemp("other"), nursery)
        other.subscribe(bridge.core())
        bridge.publish(*map(happened, range(40)))
        eventually("all are there", lambda: len(bridge.ingest.taken + other.ingest.taken) >= 40)
        found = sorted(map(int, bridge.ingest.ids + other.ingest.ids))
        shares = len(bridge.ingest.taken), len(other.ingest.taken)
        other.close()

    assert found == [*range(40)]
    assert all(shares)


def test_acknowledges_what_ingest_has_taken_and_not_before(bridge: Bridge) -> None:
    """What is published before anybody consumes comes too; while ingest is away all is owed."""
    bridge.make_stream()
    bridge.publish(*map(happened, range(250)))
    bridge.ingest.status = 503
    bridge.subscribe(bridge.stream())
    eventually("it was tried", lambda: bridge.ingest.requests > 1)
    owed = bridge.owed()
    bridge.ingest.status = 200
    eventually("all were taken", lambda: len(set(bridge.ingest.ids)) == 250)
    eventually("all are acknowledged", lambda: bridge.owed() == 0)

    assert owed == 250
    assert bridge.ingest.taken[0]["messagingasked"] == "S"
    assert len(bridge.ingest.taken) == 250


def test_goes_on_with_the_consumer_that_is_there(bridge: Bridge) -> None:
    """Who comes from Sveltos has one: it is used as it is, from where it stands."""
    bridge.make_stream()
    config = ConsumerConfig(durable_name="sveltos-agent", max_deliver=7)

    async def consume(client: Any) -> None:
        stream = client.jetstream()
        await stream.add_consumer("S", config)
        await stream.publish("logins", happened("seen"))
        bound = await stream.pull_subscribe_bind("sveltos-agent", "S")
        for each in await bound.fetch(1):
            await each.ack_sync()

    bridge.do(consume)
    bridge.subscribe(bridge.stream())
    bridge.publish(happened("new"))
    eventually("it is there", lambda: bridge.ingest.ids == ["new"])

    assert bridge.consumer().config.max_deliver == 7


@pytest.mark.clocked
def test_uses_up_no_delivery_while_ingest_is_away(bridge: Bridge) -> None:
    """A consumer that delivers twice at most, and waits for a second, loses nothing in four."""
    bridge.make_stream()
    config = ConsumerConfig(durable_name="sveltos-agent", max_deliver=2, ack_wait=1)
    bridge.do(lambda client: client.jetstream().add_consumer("S", config))
    bridge.ingest.status = 503
    bridge.subscribe(bridge.stream())
    bridge.publish(*map(happened, range(3)))
    time.sleep(4)
    delivered = bridge.consumer().delivered.consumer_seq
    bridge.ingest.status = 200
    eventually("all were taken", lambda: len(set(bridge.ingest.ids)) == 3)
    eventually("all are acknowledged", lambda: bridge.owed() == 0)

    assert delivered == 3


def test_returns_unsent_messages_when_it_ends(bridge: Bridge) -> None:
    """The next forwarder has it at once, but for one: the server has 30 seconds for each."""
    bridge.make_stream()
    bridge.ingest.status = 503
    bridge.subscribe(bridge.stream())
    bridge.publish(*map(happened, range(30)))
    eventually("it was tried", lambda: bridge.ingest.requests > 1)
    bridge.end(0.2)
    bridge.ingest.status = 200
    bridge.messaging = bridge._make()
    bridge.messaging.start()

    eventually("it was taken", lambda: len(set(bridge.ingest.ids)) >= 29, patience=25)


def test_takes_only_the_subjects_of_a_stream_that_are_named(bridge: Bridge) -> None:
    """One or several, with wildcards; the others are acknowledged, and sent to nobody."""
    bridge.make_stream("S", "a.>", "b.>", "c.>")
    bridge.make_stream("T", "t.>")
    streams = [{"name": "S", "subjects": ["a.*", "b.>"]}, {"name": "T", "subjects": ["t.x"]}]
    bridge.subscribe(configuration("jetstream", url=bridge.nats.url, streams=streams))
    for subject in ("a.1", "a.1.2", "b.1.2", "c.1", "t.x", "t.y"):
        bridge.publish(happened(subject), subject=subject)
    eventually("they are there", lambda: len(bridge.ingest.taken) == 3)
    eventually("nothing is owed", lambda: bridge.owed("S") + bridge.owed("T") == 0)

    assert set(bridge.ingest.ids) == {"a.1", "b.1.2", "t.x"}


def test_waits_for_a_stream_that_is_not_there_yet(bridge: Bridge) -> None:
    """It is said, with the stream's name; another one of the same server is consumed meanwhile."""
    bridge.make_stream("T", "t")
    bridge.subscribe(bridge.stream("S", "T"))
    bridge.publish(happened("t"), subject="t")
    eventually("the other is consumed", lambda: bridge.ingest.ids == ["t"])
    bridge.make_stream("S", "s")
    bridge.publish(happened("s"), subject="s")
    eventually("it is there", lambda: bridge.ingest.ids == ["t", "s"])

    assert bridge.logged("Cannot consume a stream of JetStream") == 1
    assert '"stream": "S"' in bridge.written.getvalue()


@pytest.mark.parametrize("kind", ["core", "stream"])
def test_passes_over_what_is_no_cloud_event(bridge: Bridge, kind: str) -> None:
    """It is counted, said once with its subject, never quoted, and does not come again."""
    bridge.make_stream()
    bridge.subscribe(bridge.core() if kind == "core" else bridge.stream())
    odd = (b"", b"hunter2", b'{"password": "hunter2"}', b"\xff", happened(1)[:-5])
    bridge.publish(*odd, happened("good"))
    eventually("the good one is there", lambda: bridge.ingest.ids == ["good"])

    assert bridge.count("events_malformed") == len(odd)
    assert bridge.logged("Passed over a message of NATS") == 1
    assert '"subject": "logins"' in bridge.written.getvalue()
    assert "hunter2" not in bridge.written.getvalue()
    if kind == "stream":
        eventually("nothing is owed", lambda: bridge.owed() == 0)


@pytest.mark.parametrize("kind", ["core", "stream"])
def test_drops_only_the_event_that_ingest_refuses(bridge: Bridge, kind: str) -> None:
    """Others of its batch are taken; it is said, counted, and does not come again."""
    bridge.ingest.fails = lambda event: 400 if event["id"] == "3" else 0
    bridge.make_stream()
    bridge.subscribe(bridge.core() if kind == "core" else bridge.stream())
    bridge.publish(*map(happened, range(8)))
    eventually("the others are there", lambda: len(bridge.ingest.taken) == 7)
    eventually("it is given up", lambda: bridge.count("events_dropped") == 1)

    assert "3" not in bridge.ingest.ids
    eventually("nothing is kept", lambda: bridge.messaging.kept() == 0)
    if kind == "stream":
        eventually("nothing is owed", lambda: bridge.owed() == 0)


def test_one_event_on_which_ingest_stumbles_keeps_no_other(bridge: Bridge) -> None:
    """It is tried again by itself, and is owed until it is taken."""
    bridge.ingest.fails = lambda event: 500 if event["id"] == "3" else 0
    bridge.make_stream()
    bridge.subscribe(bridge.stream())
    bridge.publish(*map(happened, range(8)))
    eventually("the others are there", lambda: len(set(bridge.ingest.ids)) == 7)
    bridge.publish(happened("late"))
    eventually("a later one, too", lambda: "late" in bridge.ingest.ids)
    owed = bridge.owed()
    bridge.ingest.fails = lambda _: 0
    eventually("it is taken in the end", lambda: "3" in bridge.ingest.ids)

    assert owed >= 1


def test_follows_the_secret(bridge: Bridge) -> None:
    """Absent, there, another, removed: a subject that is not named any more is sent no more."""
    bridge.messaging.start()
    bridge.publish(happened("early"))
    bridge.subscribe(bridge.core("logins"))
    bridge.publish(happened("one"))
    eventually("it is there", lambda: bridge.ingest.ids == ["one"])
    bridge.subscribe(bridge.core("logouts"))
    bridge.publish(happened("other"))
    bridge.publish(happened("two"), subject="logouts")
    eventually("it is there", lambda: bridge.ingest.ids == ["one", "two"])
    bridge.kube.remove(SECRET, "projectsveltos", "sveltos-nats")
    bridge.messaging.look()
    bridge.publish(happened("three"), subject="logouts")
    time.sleep(0.2)

    assert bridge.ingest.ids == ["one", "two"]
    assert bridge.logged("Unsubscribed from NATS") == 1


def test_keeps_to_what_it_knows_while_the_secret_cannot_be_read(bridge: Bridge) -> None:
    """An error is not an empty answer, nor is what somebody has just misspelt."""
    bridge.subscribe(bridge.core())
    bridge.kube.fail_with(UnreachableError("the API server is away"))
    bridge.messaging.look()
    bridge.publish(happened("one"))
    eventually("it is there", lambda: bridge.ingest.ids == ["one"])
    bridge.kube.fail_with(None)
    bridge.configure("{")
    bridge.messaging.look()
    bridge.messaging.look()
    bridge.publish(happened("two"))
    eventually("it is there", lambda: bridge.ingest.ids == ["one", "two"])
    reported = bridge.messaging.trouble()
    bridge.configure(bridge.core())
    bridge.messaging.look()
    assert "sveltos-nats" in reported
    assert bridge.messaging.trouble() == ""

    assert bridge.logged("Keep to what the Secret of NATS said before") == 2


def test_a_damaged_store_ends_nothing_else(bridge: Bridge) -> None:
    """It is said; once the file is out of the way, the Secret is followed as ever."""
    (bridge.spool / "events.db").write_bytes(b"no database" * 1000)
    bridge.configure(bridge.core())
    bridge.messaging.start()
    bridge.messaging.look()
    said = bridge.written.getvalue()
    (bridge.spool / "events.db").unlink()
    bridge.subscribe(bridge.core())
    bridge.publish(happened("one"))
    eventually("it is there", lambda: bridge.ingest.ids == ["one"])

    assert said.count("Keep to what the Secret of NATS said before") == 1
    assert "events.db" in said


@pytest.mark.parametrize("kind", ["core", "stream"])
def test_outlives_the_server(bridge: Bridge, kind: str) -> None:
    """Killed, away for a while and back: subscribed again, and of a stream nothing is lost."""
    bridge.make_stream()
    bridge.subscribe(bridge.core() if kind == "core" else bridge.stream())
    bridge.publish(happened("one"))
    eventually("it is there", lambda: bridge.ingest.ids == ["one"])
    bridge.nats.stop()
    time.sleep(0.5)
    bridge.nats.start()
    if kind == "core":
        eventually("it is subscribed again", lambda: bridge.logged("Subscribed to NATS") == 2)
    bridge.publish(happened("two"))

    eventually("it is there", lambda: "two" in bridge.ingest.ids)
    assert bridge.messaging.alive()


def test_subscribes_when_the_server_comes_later(tmp_path: Path) -> None:
    """A server that is not there is tried again; a wrong name is logged once, and then no more."""
    with Nursery() as nursery:
        bridge = Bridge(tmp_path, nursery)
        bridge.configure(bridge.core())
        bridge.messaging.start()
        eventually("it is in trouble", bridge.messaging.trouble)
        reported = bridge.messaging.trouble()
        bridge.nats.start()
        eventually("it is subscribed", lambda: bridge.logged("Subscribed to NATS"))
        trouble = bridge.messaging.trouble()
        bridge.close()

    assert reported.startswith(f"cannot subscribe to NATS at '127.0.0.1:{bridge.nats.port}': ")
    assert trouble == ""


class Slow(socketserver.StreamRequestHandler):
    """A server of NATS that reads of a subscription, and is slow to know it."""

    asked = threading.Event()
    knows = threading.Event()

    def handle(self) -> None:
        self.wfile.write(b'INFO {"server_id":"slow","version":"2.10.0","max_payload":1048576}\r\n')
        for line in self.rfile:
            if line.startswith(b"SUB"):
                self.asked.set()
            if line.startswith(b"PING"):
                if self.asked.is_set():
                    self.knows.wait(30)
                self.wfile.write(b"PONG\r\n")


def test_is_subscribed_once_the_server_knows_of_it(bridge: Bridge) -> None:
    """What is published before comes to nobody: core NATS keeps nothing."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever).start()
        place = f"nats://127.0.0.1:{server.server_address[1]}"
        bridge.configure(configuration(url=place, subjects=["logins"]))
        bridge.messaging.start()
        assert Slow.asked.wait(30)
        time.sleep(0.2)
        early = bridge.logged("Subscribed to NATS")
        Slow.knows.set()
        eventually("it is subscribed", lambda: bridge.logged("Subscribed to NATS") == 1)
        bridge.end(0.0)
        server.shutdown()

    assert early == 0


def test_takes_a_password_or_a_token_and_shows_neither(bridge: Bridge) -> None:
    """A wrong one is said without being quoted, and the right one in the Secret is followed."""
    bridge.nats.stop()
    bridge.nats.configure('authorization: {user: "admin", password: "right-9f2"}')
    bridge.nats.start()
    wrong = bridge.core(authorization={"user": {"user": "admin", "password": "wrong-9f2"}})
    bridge.configure(wrong)
    bridge.messaging.start()
    reported = eventually("it is in trouble", bridge.messaging.trouble)
    right = {"user": "admin", "password": "right-9f2"}
    bridge.subscribe(bridge.core(authorization={"user": right}))
    bridge.publish(happened("one"), **right)
    eventually("it is there", lambda: bridge.ingest.ids == ["one"])
    bridge.nats.stop()
    bridge.nats.configure('authorization: {token: "token-9f2"}')
    bridge.nats.start()
    bridge.subscribe(bridge.core(authorization={"token": "token-9f2"}))
    bridge.publish(happened("two"), token="token-9f2")
    eventually("it is there", lambda: "two" in bridge.ingest.ids)

    assert "authorization violation" in reported.lower()
    assert "9f2" not in reported + bridge.written.getvalue()


def test_a_flood_is_bounded(bridge: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the disk limit core messages are dropped, counted and logged; the first are sent."""
    monkeypatch.setattr("bellhop.forwarder.nats.sender.MOST_EVENTS", 300)
    bridge.ingest.status = 503
    bridge.subscribe(bridge.core())
    bridge.publish(*map(happened, range(2000)))
    eventually("all came", lambda: bridge.messaging.kept() + bridge.count("events_dropped") >= 2000)
    bridge.ingest.status = 200
    eventually("what was kept is sent", lambda: len(bridge.ingest.taken) == 300)

    assert bridge.count("events_dropped") == 1700
    assert bridge.logged("Dropped CloudEvents of NATS") == 1
    assert bridge.ingest.ids == [f"{number}" for number in range(300)]


def test_authenticates_by_certificate_and_shows_no_secret(bridge: Bridge, tmp_path: Path) -> None:
    """By the Secret's authority and pair; a server that would have it in the open hears nothing."""
    now = datetime.now(UTC)
    authority = make_authority("a test's", now=now, validity=HOUR)
    certificate, key = issue(authority, ["127.0.0.1"], now=now, validity=HOUR)
    # One that is trusted for itself: those that we issue are for servers.
    client = make_authority("a client's", now=now, validity=HOUR)
    pem = {"ca": client.certificate_pem, "tls": certificate, "key": key, "ckey": client.key_pem}
    for name, content in pem.items():
        (tmp_path / name).write_bytes(content)
    files = f'cert_file: "{tmp_path}/tls", key_file: "{tmp_path}/key", ca_file: "{tmp_path}/ca"'
    pair = {"certPem": client.certificate_pem.decode(), "keyPem": client.key_pem.decode()}
    trusted = authority.certificate_pem.decode()
    proof = {"rootCA": trusted, "clientCert": pair, "token": "t-9f2"}
    bridge.configure(bridge.core(authorization=proof))
    bridge.messaging.start()
    reported = eventually("it is in trouble", bridge.messaging.trouble)
    bridge.nats.stop()
    bridge.nats.configure(f'tls: {{{files}, verify: true}}\nauthorization: {{token: "t-9f2"}}')
    bridge.nats.start()
    eventually("it is subscribed", lambda: bridge.logged("Subscribed to NATS"))
    context = ssl.create_default_context(cadata=trusted)
    context.load_cert_chain(tmp_path / "ca", tmp_path / "ckey")
    bridge.publish(happened("one"), tls=context, token="t-9f2")
    eventually("it is there", lambda: bridge.ingest.ids == ["one"])

    assert "the Secret asks for TLS, and the server does not require it" in reported
    assert "9f2" not in bridge.written.getvalue() + bridge.nats.log_path.read_text()
