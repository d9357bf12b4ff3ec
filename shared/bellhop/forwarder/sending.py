"""The sender: what readers found goes to ingest at once, or as soon as ingest is there again.

2xx                      taken: forget it
413, 400, 422            halve the batch; the item that is alone with it is dropped, and said
401                      to the token of our account: send that of the Secret, for a minute. To that
                         one: read the Secret again, it may have been changed
anything else, or no     keep everything and try again, for ever while nothing at all is taken. What
answer                   fails alone while others are taken is dropped in the end, and said: `trial`
                         has when

Beside items it says now and then that it is there, and how it is; and it asks for a look at the
whole cluster, where something may have been missed, until ingest has agreed. When an object rang
is told by ingest's clock where ours differs: nothing is refused for a time that only we believe in.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus
from typing import Any, NamedTuple

import urllib3

from bellhop import __version__
from bellhop.forwarder.account import Account
from bellhop.forwarder.backoff import pause
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.desk import Desk
from bellhop.forwarder.instructions import Instructions
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.logs import Log

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 15.0
PATIENCE_SECONDS = 60.0
"""The longest Retry-After that is honoured."""

ALIVE_SECONDS = 120.0
"""How often ingest hears that we are there, and how we are, whatever rings."""

DENIED_SECONDS = 60.0
"""For how long a token of our account is not tried again that ingest did not take."""

SKEW = timedelta(minutes=1)
"""From which difference on ingest's clock is believed more than ours."""

_MISSED = b'{"apiVersion":"bellhop.dev/v1","kind":"Missed"}'
_ALIVE = {"apiVersion": "bellhop.dev/v1", "kind": "Alive"}
_HEAD = b'{"apiVersion":"bellhop.dev/v1","kind":"Observations","items":['
_TAIL = b"]}"
_ABOUT_ITEMS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
_UNKNOWN = _ABOUT_ITEMS | {HTTPStatus.NOT_FOUND}
_SAY_SKEW_SECONDS = 3600.0
_SAY_EVERY = 20


class _Answer(NamedTuple):
    """How ingest answered, and by how much our clock is ahead of its; status 0 for no answer."""

    status: int
    why: str
    wait: float = 0.0
    ahead: timedelta | None = None


class Sender:
    """One thread that sends; while a batch is on its way, the next one gathers.

    `instructions` tells whom to send to at present; `refused` is called when the token is refused;
    `trouble` tells what keeps objects from being read back, empty for nothing. Without an `account`
    it is the token of the Secret alone that is sent.
    """

    def __init__(  # noqa: PLR0913 - the parts of one process, which know nothing of each other
        self,
        instructions: Callable[[], Instructions],
        refused: Callable[[], None],
        outbox: Outbox,
        desk: Desk,
        counts: Counts,
        log: Log,
        trouble: Callable[[], str] = lambda: "",
        *,
        account: Account | None = None,
    ) -> None:
        self._trouble = trouble
        self._account = account or Account()
        self._instructions = instructions
        self._refused = refused
        self._outbox = outbox
        self._desk = desk
        self._counts = counts
        self._log = log
        self._line: _Line | None = None
        self._failures = 0
        # Whether the last request was one that ingest took.
        self._taking = False
        self._waking = threading.Event()
        self._ending = False
        self._ahead = timedelta(0)
        self._said_ahead_at = float("-inf")
        # When to ask for a look at the cluster; None where there is no reason to.
        self._ask_at: float | None = None
        self._asked = 0
        self._alive_at = time.monotonic()
        self._unheard = 0
        self._thread = threading.Thread(target=self._work, name="sender", daemon=True)

    def start(self) -> None:
        """Begin to send; it ends once the outbox is closed."""
        self._thread.start()

    def alive(self) -> bool:
        """Say if it still works."""
        return self._thread.is_alive()

    def ask_for_a_look(self) -> None:
        """Have ingest look at the cluster, soon: something may have been missed."""
        if self._ask_at is None:
            self._ask_at = time.monotonic()
            self._outbox.wake()

    def nudge(self) -> None:
        """Try again at once, since something changed."""
        self._waking.set()

    def close(self, seconds: float) -> None:
        """End after the request that is under way, which may take as long as given."""
        self._ending = True
        self._outbox.close()
        self._waking.set()
        self._thread.join(seconds)

    def _work(self) -> None:
        while self._outbox.is_open:
            batch = self._outbox.take(self._until_speaking(), trying=self._taking)
            try:
                sent = not batch or self._send(batch)
                if sent and self._outbox.is_open:
                    self._speak()
            except Exception as error:  # noqa: BLE001 - nothing may end the only sender
                self._log.error("Failed to send a batch", error)
                self._failed(batch, [], _Answer(0, "internal"))

    def _until_speaking(self) -> float:
        ask_at = self._alive_at if self._ask_at is None else self._ask_at
        return max(0.0, min(ask_at, self._alive_at) - time.monotonic())

    def _speak(self) -> None:
        """Say what is to be said by now."""
        now = time.monotonic()
        if self._ask_at is not None and self._ask_at <= now:
            self._ask()
        if self._alive_at <= now:
            self._say_alive()

    def _say_alive(self) -> None:
        """Tell ingest that we are there; one of an earlier version does not know what that is."""
        owed, since = self._desk.owed()
        said = {"version": __version__, "owed": owed, "since": since, "problem": self._trouble()}
        answer = self._post(json.dumps({**_ALIVE, **said}).encode())
        taken = HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES
        self._unheard = 0 if taken or answer.status in _UNKNOWN else self._unheard + 1
        wait = pause(self._unheard, at_least=answer.wait) if self._unheard else ALIVE_SECONDS
        self._alive_at = time.monotonic() + wait
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._refused()

    def _ask(self) -> None:
        """Ask for a look at the cluster; who is told to wait asks again, since it may be later."""
        self._ask_at = None
        answer = self._post(_MISSED)
        if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            self._counts.add("looks_asked")
            self._asked = 0
        elif answer.status in _UNKNOWN:
            self._log.warning("Ingest does not look at clusters when asked", status=answer.status)
        else:
            self._asked += 1
            self._ask_at = time.monotonic() + pause(self._asked, at_least=answer.wait)
            if answer.status == HTTPStatus.UNAUTHORIZED:
                self._refused()

    def _send(self, batch: list[Item]) -> bool:
        """Send a batch, in halves where ingest refuses it for what is in it; say if it took it."""
        parts = [batch]
        corrected = False
        while parts:
            part = parts.pop()
            ahead = self._ahead
            answer = self._post(_HEAD + b",".join(map(self._text, part)) + _TAIL)
            if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                self._taken(part)
            elif answer.status not in _ABOUT_ITEMS:
                self._failed(part, [item for each in reversed(parts) for item in each], answer)
                return False
            elif not corrected and abs(self._ahead - ahead) > SKEW:
                # The times were wrong, perhaps, and nothing else.
                corrected = True
                parts.append(part)
            elif len(part) > 1:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
            else:
                self._dropped(part[0], answer)
        return True

    def _text(self, item: Item) -> bytes:
        rang = (datetime.fromisoformat(item.rang) - self._ahead).isoformat()
        own = b',"own":true' if item.own else b""
        return b'%s,"rang":"%s"%s}' % (item.body[:-1], rang.encode(), own)

    def _post(self, body: bytes) -> _Answer:
        instructions = self._instructions()
        if self._line is None or self._line.instructions is not instructions:
            self._line = _Line(instructions, self._account)
        answer = self._line.post(body)
        if answer.ahead is not None:
            self._reckon(answer.ahead)
        return answer

    def _reckon(self, ahead: timedelta) -> None:
        self._ahead = ahead if abs(ahead) > SKEW else timedelta(0)
        now = time.monotonic()
        if self._ahead and now - self._said_ahead_at >= _SAY_SKEW_SECONDS:
            self._said_ahead_at = now
            self._log.warning(
                "Our clock differs from ingest's; rings are told by its clock",
                ahead_seconds=round(self._ahead.total_seconds()),
            )

    def _failed(self, part: list[Item], rest: list[Item], answer: _Answer) -> None:
        """Keep what could not be sent; `part` is what was tried."""
        alone = part[0].trial if len(part) == 1 and part[0].trial.alone else None
        if answer.status == HTTPStatus.UNAUTHORIZED:
            alone = None  # It says something of us.
        for item in part:
            item.trial.failures += 1
        if alone and self._taking:
            self._blame(part[0], answer)
        self._taking = False
        if alone and alone.blamed:
            self._rest(part[0], answer)
            self._outbox.put_back(rest)
        else:
            self._outbox.put_back([*part, *rest])
            self._pause(answer)

    def _blame(self, item: Item, answer: _Answer) -> None:
        item.trial.refuse()
        if item.trial.refusals == 1:
            self._log.warning(
                "Ingest refuses an object and takes others; it is kept and sent alone",
                object=str(item.key),
                status=answer.status or None,
                why=answer.why,
            )

    def _rest(self, item: Item, answer: _Answer) -> None:
        """Have an item wait that ingest refuses while it takes others, or give it up."""
        if item.trial.over or self._outbox.is_crowded():
            self._dropped(item, answer)
            return
        self._counts.add("send_failures")
        item.trial.rest(answer.wait)
        self._outbox.put_back([item])

    def _taken(self, items: list[Item]) -> None:
        self._taking = True
        if self._failures:
            self._log.info("Ingest takes items again", failures=self._failures)
            self._failures = 0
        self._counts.add("batches")
        self._counts.add("sent", len(items))
        now = datetime.now(UTC)
        for item in items:
            self._counts.took((now - datetime.fromisoformat(item.rang)).total_seconds())
        self._desk.forget(self._outbox.settle(items))

    def _dropped(self, item: Item, answer: _Answer) -> None:
        self._counts.add("send_failures")
        self._counts.add("dropped")
        self._log.warning(
            "Dropped what ingest refuses; sweeps look at it",
            object=str(item.key),
            status=answer.status or None,
            bytes=len(item.body),
            refusals=item.trial.refusals or None,
        )
        self._desk.forget(self._outbox.settle([item]))

    def _pause(self, answer: _Answer) -> None:
        self._counts.add("send_failures")
        self._failures += 1
        if self._failures % _SAY_EVERY == 1:
            self._log.warning(
                "Ingest takes nothing; everything is kept and tried again",
                status=answer.status or None,
                why=answer.why,
                failures=self._failures,
            )
        self._waking.clear()
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._refused()
        if not self._ending:
            self._waking.wait(pause(self._failures, at_least=answer.wait))


class _Line:
    """The connection to ingest as one set of instructions has it."""

    def __init__(self, instructions: Instructions, account: Account) -> None:
        self.instructions = instructions
        self._account = account
        self._denied, self._again_at = "", 0.0
        options: dict[str, Any] = {}
        if instructions.ingest_url.startswith("https:"):
            authority = instructions.ingest_ca or None
            options["ssl_context"] = ssl.create_default_context(cadata=authority)
        self._pool = urllib3.PoolManager(
            num_pools=1,
            maxsize=1,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS),
            **options,
        )
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": "bellhop-forwarder",
        }

    def post(self, body: bytes) -> _Answer:
        """Send, as our account or, where ingest does not take that one, by the Secret."""
        token = self._account.token(self.instructions.audience)
        now = time.monotonic()
        if token and (token != self._denied or now >= self._again_at):
            answer = self._post(body, token)
            if answer.status != HTTPStatus.UNAUTHORIZED:
                return answer
            # Its key may be a new one, which is soon known; or accounts do not count at all.
            self._denied, self._again_at = token, now + DENIED_SECONDS
        return self._post(body, self.instructions.token)

    def _post(self, body: bytes, token: str) -> _Answer:
        headers = {"Authorization": f"Bearer {token}", "Date": formatdate(usegmt=True)}
        try:
            response = self._pool.request(
                "POST",
                self.instructions.ingest_url,
                body=body,
                headers={**self._headers, **headers},
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            return _Answer(0, type(error).__name__)
        wait = response.headers.get("Retry-After", "")
        seconds = float(wait) if wait.isascii() and wait.isdigit() else 0.0
        wait_at_most = min(seconds, PATIENCE_SECONDS)
        ahead = _ahead(response.headers.get("Date", ""))
        return _Answer(response.status, response.reason or "", wait_at_most, ahead)


def _ahead(date: str) -> timedelta | None:
    try:
        there = parsedate_to_datetime(date)
    except (TypeError, ValueError, OverflowError):
        return None
    return datetime.now(UTC) - there if there.tzinfo else None
