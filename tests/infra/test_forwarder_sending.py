"""What the sender does with ingest's answers: over HTTP, to an ingest that does as it is told."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from bellhop import __version__
from bellhop.adapters.local.server import Server
from bellhop.engine.hints import Hint
from bellhop.errors import TemporaryError
from bellhop.forwarder import backoff, outbox, trial
from bellhop.forwarder.account import Account
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.debt import Debt
from bellhop.forwarder.desk import Desk
from bellhop.forwarder.instructions import Instructions
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.forwarder.sending import Sender
from bellhop.forwarder.spool import Spool
from bellhop.logs import Log
from bellhop.model.gvk import GVK, ObjectKey
from tests.fakes.clock import START
from tests.fakes.tokens import Signer

CONFIG = GVK("", "v1", "ConfigMap")


class Ingest:
    """Answers by a rule, and keeps what it took."""

    def __init__(self) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self.asked: list[float] = []
        self.alive: list[dict[str, Any]] = []
        self.taken: list[dict[str, Any]] = []
        self.ahead = timedelta(0)
        self.rule: Callable[[dict[str, Any]], int] = lambda _: 200
        self.wait = ""
        self.body = b"{}"
        self.tokens: list[str] = []
        """By what items came; what is asked besides comes when it comes."""
        self.denied: set[str] = set()
        self.server = Server(self, host="127.0.0.1", port=0)
        self.server.start()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        body = json.loads(environ["wsgi.input"].read())
        token = environ["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
        status = 401 if token in self.denied else self.rule(body)
        if body["kind"] == "Missed":
            self.asked.append(time.monotonic())
        elif body["kind"] == "Alive":
            self.alive.append(body)
        else:
            self.tokens.append(token)
            self.batches.append(body["items"])
            self.taken += body["items"] if status == 200 else []
        date = format_datetime(datetime.now(UTC) + self.ahead, usegmt=True)
        headers = [("Date", date), ("Content-Length", str(len(self.body)))]
        headers += [("Retry-After", self.wait)] if self.wait else []
        start_response(f"{status} x", headers)
        return [self.body]


class Office:
    """A sender with its outbox and desk."""

    def __init__(self, folder: Path) -> None:
        self.ingest = Ingest()
        self.written = io.StringIO()
        log = Log(self.written)
        self.counts = Counts()
        self.refused: list[bool] = []
        self.unreadable: dict[str, str] = {}
        self.released: list[tuple[list[str], int]] = []
        self.unsubscribed = ""
        self.outbox = Outbox()
        self.spool = Spool(folder)
        self.desk = Desk(self.spool, log)
        instructions = Instructions(
            f"{self.ingest.server.url}/clusters/fleet/east",
            self.ingest.server.url,
            "",
            "fleet/east",
            "t",
            "/p",
            "",
            b"",
            b"",
        )
        self.sender = Sender(
            lambda: instructions,
            lambda: self.refused.append(True),
            self.outbox,
            self.desk,
            self.counts,
            log,
            unreadable=lambda: self.unreadable,
            release=lambda kinds, serial: self.released.append((list(kinds), serial)),
            messaging=lambda: self.unsubscribed,
        )

    def put(
        self, name: str, rang: datetime | None = None, content: str = "", *, own: bool = False
    ) -> None:
        """Have an object owed, and read already."""
        key = ObjectKey(CONFIG, "default", name)
        when = (rang or datetime.now(UTC)).isoformat()
        self.desk.ring(Hint(key, "", 0), when)
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        manifest |= {"data": content} if content else {}
        body = json.dumps({"object": manifest}).encode()
        self.outbox.put(Item(key, self.desk._serial, when, body, own=own))

    def names(self) -> set[str]:
        return {item["object"]["metadata"]["name"] for item in self.ingest.taken}

    def count(self, name: str) -> int:
        [line] = [
            each
            for each in self.counts.text({}).splitlines()
            if each.startswith(f"bellhop_forwarder_{name}_total ")
        ]
        return int(line.rsplit(" ", 1)[1])

    def close(self) -> None:
        self.sender.close(10)
        self.ingest.server.stop()
        self.spool.close()


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path)
    yield office
    office.close()


def until(done: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.005)


def test_sets_aside_the_one_item_that_is_refused(office: Office) -> None:
    """Others of its batch, and those behind it, arrive; the log names it and a metric counts it."""

    def rule(body: dict[str, Any]) -> int:
        names = {item["object"]["metadata"]["name"] for item in body["items"]}
        return 400 if "evil" in names else 200

    office.ingest.rule = rule
    for number in range(20):
        office.put(f"good-{number}")
    office.put("evil")
    office.put("last")
    office.sender.start()

    until(lambda: office.desk.owed()[0] == 0)
    assert office.names() == {f"good-{number}" for number in range(20)} | {"last"}
    assert office.count("dropped") == 1
    assert "/v1/ConfigMap/default/evil" in office.written.getvalue()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge within a second what takes an hour."""
    monkeypatch.setattr(trial, "ALONE_AFTER", 2)
    monkeypatch.setattr(trial, "REFUSALS", 3)
    monkeypatch.setattr(trial, "SPAN_SECONDS", 0.3)
    monkeypatch.setattr(trial, "LONGEST_SECONDS", 0.05)


def failing_for(*names: str, status: int = 500) -> Callable[[dict[str, Any]], int]:
    """Fail where some objects are in a batch."""

    def rule(body: dict[str, Any]) -> int:
        found = {item["object"]["metadata"]["name"] for item in body["items"]}
        return status if found & set(names) else 200

    return rule


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("status", [500, 503, 502])
def test_takes_a_batch_apart_that_keeps_failing(
    office: Office, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are taken alone arrive; the others are kept, and said."""
    monkeypatch.setattr(trial, "SPAN_SECONDS", 3600.0)
    office.ingest.rule = failing_for("evil", "worse", status=status)
    office.put("evil")
    office.put("worse")
    for number in range(20):
        office.put(f"good-{number}")
    office.sender.start()

    until(lambda: len(office.names()) == 20)
    office.put("later")
    until(lambda: office.outbox.blamed() == 2)
    assert office.names() == {"later", *(f"good-{number}" for number in range(20))}
    assert office.desk.owed()[0] == 2
    assert office.count("dropped") == 0
    said = [each for each in office.written.getvalue().splitlines() if "takes others" in each]
    assert ["default/evil" in "".join(said), "default/worse" in "".join(said)] == [True, True]
    assert len(said) == 2


@pytest.mark.usefixtures("hasty")
def test_drops_in_the_end_what_fails_among_others_that_are_taken(office: Office) -> None:
    """So often and for so long: the log names it, and a metric counts it."""
    office.ingest.rule = failing_for("evil")
    office.put("evil")
    office.sender.start()
    numbers = iter(range(1000))

    def dropped() -> bool:
        office.put(f"good-{next(numbers)}")
        time.sleep(0.02)
        return office.count("dropped") == 1

    until(dropped)
    until(lambda: office.desk.owed()[0] == 0)
    assert len(office.names()) == next(numbers)
    assert len(office.ingest.batches) - office.count("batches") > 5
    [line] = [each for each in office.written.getvalue().splitlines() if "Dropped" in each]
    assert "/v1/ConfigMap/default/evil" in line


def test_drops_nothing_while_nothing_is_taken(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage may be as long as it likes: nothing is held against an item."""
    monkeypatch.setattr(trial, "ALONE_AFTER", 1)
    monkeypatch.setattr(trial, "REFUSALS", 1)
    monkeypatch.setattr(trial, "SPAN_SECONDS", 0.0)
    monkeypatch.setattr(backoff, "LONGEST_SECONDS", 0.01)
    office.put("before")
    office.sender.start()
    until(lambda: office.names() == {"before"})
    office.ingest.rule = lambda _: 500
    for number in range(20):
        office.put(f"object-{number}")
    until(lambda: len(office.ingest.batches) > 100)
    office.ingest.rule = lambda _: 200

    until(lambda: office.desk.owed()[0] == 0)
    assert len(office.names()) == 21
    assert office.count("dropped") == 0


@pytest.mark.usefixtures("hasty")
def test_what_is_refused_holds_up_nobody(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it rests, others go at once, and are not taken for what comes after an outage."""
    monkeypatch.setattr(trial, "LONGEST_SECONDS", 60.0)
    monkeypatch.setattr(trial, "REFUSALS", 99)
    office.ingest.rule = failing_for("evil")
    office.put("evil")
    office.put("good")
    office.sender.start()
    until(lambda: office.outbox.blamed() == 1)

    for number in range(5):
        begun = time.monotonic()
        office.put(f"later-{number}")
        until(lambda: office.desk.owed()[0] == 1)
        assert time.monotonic() - begun < 1.0
    assert office.count("batches") == 6


@pytest.mark.usefixtures("hasty")
def test_an_object_that_was_refused_is_taken_once_it_is_another(office: Office) -> None:
    """What goes alone goes on with its newest state."""
    office.ingest.rule = lambda body: 500 if "bad" in json.dumps(body) else 200
    office.put("object", content="bad")
    office.put("good")
    office.sender.start()
    until(lambda: office.outbox.blamed() == 1)
    office.put("object")

    until(lambda: office.desk.owed()[0] == 0)
    assert office.names() == {"good", "object"}
    assert office.outbox.blamed() == 0


@pytest.mark.usefixtures("hasty")
def test_what_is_refused_takes_half_of_the_room_at_most(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many objects ingest cannot take: reading goes on."""
    monkeypatch.setattr(outbox, "ROOM_ITEMS", 6)
    monkeypatch.setattr(trial, "SPAN_SECONDS", 3600.0)
    evil = [f"evil-{number}" for number in range(6)]
    office.ingest.rule = failing_for(*evil)
    for name in evil:
        office.put(name)
    office.sender.start()
    numbers = iter(range(10000))

    def settled() -> bool:
        office.put(f"good-{next(numbers)}")
        time.sleep(0.02)
        return office.count("dropped") == 2 and office.outbox.blamed() == 4

    until(settled)
    assert office.outbox.wait_for_room()


def test_tells_when_it_rang_by_the_clock_of_ingest(office: Office) -> None:
    """Where our clock is far ahead, nothing is lost for it: the time is told as ingest has it."""
    office.ingest.ahead = timedelta(hours=-1)

    def rule(body: dict[str, Any]) -> int:
        latest = datetime.now(UTC) - timedelta(minutes=45)
        return (
            400 if any(datetime.fromisoformat(i["rang"]) > latest for i in body["items"]) else 200
        )

    office.ingest.rule = rule
    for number in range(10):
        office.put(f"object-{number}")
    office.sender.start()

    until(lambda: office.desk.owed()[0] == 0)
    assert len(office.names()) == 10
    assert len(office.ingest.batches) == 2
    assert office.count("dropped") == 0
    assert office.written.getvalue().count("Our clock differs from ingest's") == 1


def test_tells_which_objects_bellhop_wrote_itself(office: Office) -> None:
    """Of the others it says nothing, as forwarders of earlier versions do."""
    office.put("theirs")
    office.put("ours", own=True)
    office.sender.start()
    until(lambda: len(office.ingest.taken) == 2)

    told = {each["object"]["metadata"]["name"]: each.get("own") for each in office.ingest.taken}
    assert told == {"theirs": None, "ours": True}


def test_believes_its_own_clock_where_little_differs(office: Office) -> None:
    """Seconds are the network's."""
    office.ingest.ahead = timedelta(seconds=-30)
    rang = datetime.now(UTC)
    office.put("first", rang)
    office.sender.start()
    until(lambda: office.desk.owed()[0] == 0)
    office.put("second", rang)
    until(lambda: office.desk.owed()[0] == 0)

    assert [item["rang"] for item in office.ingest.taken] == [rang.isoformat()] * 2


def test_asks_for_a_look_until_ingest_agrees(office: Office) -> None:
    """Who is told to wait asks again, and items do not wait for that."""
    answers = iter([503, 429, 200])
    office.ingest.rule = lambda body: next(answers) if body["kind"] == "Missed" else 200
    office.sender.ask_for_a_look()
    office.sender.start()
    office.put("meanwhile")

    until(lambda: office.count("looks_asked") == 1)
    until(lambda: office.names() == {"meanwhile"})
    assert len(office.ingest.asked) == 3


def test_waits_as_long_as_it_is_told_to_ask(office: Office) -> None:
    """`Retry-After` is honoured."""
    answers = iter([429, 200])
    office.ingest.rule = lambda body: next(answers) if body["kind"] == "Missed" else 200
    office.ingest.wait = "1"
    office.sender.ask_for_a_look()
    office.sender.start()

    until(lambda: office.count("looks_asked") == 1)
    first, second = office.ingest.asked
    assert second - first >= 1.0


def test_does_not_insist_where_ingest_knows_no_looks(office: Office) -> None:
    """An older ingest refuses the question; it is not put again, and items go on."""
    office.ingest.rule = lambda body: 400 if body["kind"] == "Missed" else 200
    office.sender.ask_for_a_look()
    office.sender.start()
    until(lambda: len(office.ingest.asked) == 1)
    for number in range(3):
        office.put(f"object-{number}")

    until(lambda: office.desk.owed()[0] == 0)
    assert len(office.ingest.asked) == 1


def test_says_that_it_is_there_and_how_it_is(office: Office) -> None:
    """At once and then now and then, though nothing rings; and until ingest has heard it."""
    answers = iter([503, 401, 200])
    office.ingest.rule = lambda body: next(answers) if body["kind"] == "Alive" else 200
    office.unreadable["v1/Service"] = "cannot read Service: forbidden"
    office.unsubscribed = "cannot subscribe to NATS"
    office.sender.start()
    until(lambda: len(office.ingest.alive) == 3)
    time.sleep(0.5)

    said = {"owed": 0, "since": "", "problem": "cannot read Service: forbidden"}
    said["messaging"] = "cannot subscribe to NATS"
    kind = {"apiVersion": "bellhop.dev/v1", "kind": "Alive"}
    said["refused"] = {"v1/Service": "cannot read Service: forbidden"}
    assert office.ingest.alive == [{**kind, **said, "version": __version__}] * 3
    assert len(office.refused) == 1


def test_releases_kinds_that_nobody_asks_for(office: Office) -> None:
    """Up to the last hint before ingest was asked: what rings later is asked for again."""
    office.unreadable["v1/Service"] = "cannot read Service: forbidden"
    office.ingest.body = b'{"heard": true, "unasked": ["v1/Service"]}'
    office.put("first")
    serial = office.desk.serial
    office.sender.start()
    until(lambda: office.released)

    assert office.released == [(["v1/Service"], serial)]


def test_an_older_ingest_is_not_told_more_often(office: Office) -> None:
    """It does not know what that is, and items go on."""
    office.ingest.rule = lambda body: 400 if body["kind"] == "Alive" else 200
    office.sender.start()
    until(lambda: len(office.ingest.alive) == 1)
    office.put("object")
    until(lambda: office.names() == {"object"})
    time.sleep(0.5)

    assert len(office.ingest.alive) == 1


def test_asks_for_a_look_when_it_cannot_spool(tmp_path: Path) -> None:
    """What is in memory alone may be lost by a kill: somebody should look."""
    called: list[bool] = []
    spool = Spool(tmp_path)
    desk = Desk(spool, Log(io.StringIO()), lambda: called.append(True))
    key = ObjectKey(CONFIG, "default", "a")
    desk.ring(Hint(key, "", 0), datetime.now(UTC).isoformat())
    assert called == []

    def full(debt: Debt) -> None:
        raise TemporaryError(f"the disk is full of {debt.key}")

    spool.put = full  # type: ignore[method-assign]
    desk.ring(Hint(key, "", 0), datetime.now(UTC).isoformat())

    assert called == [True]
    spool.close()


def test_sends_as_its_account(office: Office, tmp_path: Path) -> None:
    """As the file says it each time; by the Secret, for a minute, if ingest does not take that."""
    mounted = tmp_path / "token"
    office.sender._uplink._account = Account(mounted)
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
        until(lambda: f"a{number}" in office.names())  # noqa: B023 - it is asked at once
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
    """It would be good for whoever gets it there."""
    if token is not None:
        (tmp_path / "token").write_text(token)

    assert Account(tmp_path / "token").token("https://ingest.other") == ""
