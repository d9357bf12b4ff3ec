"""The way to ingest: one connection, as the Secret has it, with the proof that is taken.

401 to the token of our account   send that of the Secret, for a minute
401 to that one                   read the Secret again, it may have been changed
a certificate of another          the same: a restored installation has a new authority
authority

Times are those of ingest's clock, where this machine's differs.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import urllib3

from bellhop.adapters.egress.answer import LimitError, happened
from bellhop.adapters.egress.client import HttpClient, HttpError
from bellhop.adapters.egress.dialer import Dialer
from bellhop.core.address_policy import LOCAL
from bellhop.forwarder.instructions import Instructions
from bellhop.ingest.account_tokens import audience_of
from bellhop.logs import Log

_LARGEST = 8192


class Account:
    """The token of the forwarder's account, read for each use; a pod may have none."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def token(self, audience: str) -> str:
        """Return the token, if it is for just this ingest: another one could use it as we do.

        Empty if there is none.
        """
        if self._path is None:
            return ""
        try:
            with self._path.open("rb") as file:
                token = file.read(_LARGEST).decode("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return token if token.isprintable() and audience in audience_of(token) else ""


CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 15.0
_TIMEOUT = urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS)
PATIENCE_SECONDS = 60.0
"""The longest Retry-After that is honoured."""

DENIED_SECONDS = 60.0
"""For how long a token of our account is not tried again that ingest did not take."""

SKEW = timedelta(minutes=1)
"""From which difference on ingest's clock is believed more than ours."""

_SAY_SKEW_SECONDS = 3600.0


class Answer(NamedTuple):
    """How ingest answered, and by how much our clock is ahead of its; status 0 for no answer.

    One is `distrusted` whose certificate the authority of the Secret has not issued.
    """

    status: int
    why: str
    wait: float = 0.0
    ahead: timedelta | None = None
    body: bytes = b""
    distrusted: bool = False

    @property
    def taken(self) -> bool:
        """Say if ingest took what was sent."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


class IngestClient:
    """The connection of one thread to the ingest that the Secret names at present.

    `refused` is called when the token of the Secret is refused, or its authority is the wrong one.
    """

    def __init__(
        self,
        instructions: Callable[[], Instructions],
        refused: Callable[[], None],
        account: Account,
        log: Log,
    ) -> None:
        self._instructions = instructions
        self._refused = refused
        self._account = account
        self._log = log
        self._connection: _Connection | None = None
        self.ahead = timedelta(0)
        """By how much our clock is ahead of ingest's, where it is much."""
        self._said_ahead_at = float("-inf")

    def post(self, body: bytes) -> Answer:
        """Send one request."""
        instructions = self._instructions()
        if self._connection is None or self._connection.instructions is not instructions:
            self._connection = _Connection(instructions, self._account)
        answer = self._connection.post(body)
        if answer.ahead is not None:
            self._reckon(answer.ahead)
        if answer.status == HTTPStatus.UNAUTHORIZED or answer.distrusted:
            self._refused()
        return answer

    def _reckon(self, ahead: timedelta) -> None:
        self.ahead = ahead if abs(ahead) > SKEW else timedelta(0)
        now = time.monotonic()
        if self.ahead and now - self._said_ahead_at >= _SAY_SKEW_SECONDS:
            self._said_ahead_at = now
            self._log.warning(
                "Our clock differs from ingest's; events are sent with its time",
                ahead_seconds=round(self.ahead.total_seconds()),
            )


class _Connection:
    """The connection to ingest as one set of instructions has it."""

    def __init__(self, instructions: Instructions, account: Account) -> None:
        self.instructions = instructions
        self._account = account
        self._denied, self._again_at = "", 0.0
        options: dict[str, Any] = {}
        if instructions.ingest_url.startswith("https:"):
            authority = instructions.ingest_ca or None
            options["ssl_context"] = ssl.create_default_context(cadata=authority)
        # The Secret names the address of ingest; on one machine that is loopback.
        self._client = HttpClient(
            instructions.ingest_url, dialer=Dialer(LOCAL), threads=1, **options
        )

    def post(self, body: bytes) -> Answer:
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

    def _post(self, body: bytes, token: str) -> Answer:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "bellhop-forwarder",
            "Authorization": f"Bearer {token}",
            "Date": formatdate(usegmt=True),
        }
        try:
            response = self._client.request("POST", body=body, headers=headers, timeout=_TIMEOUT)
        except LimitError as error:
            return Answer(0, error.words)
        except (HttpError, OSError) as error:
            distrusted = isinstance(error, urllib3.exceptions.SSLError)
            return Answer(0, happened(error), distrusted=distrusted)
        wait = response.headers.get("Retry-After", "")
        seconds = float(wait) if wait.isascii() and wait.isdigit() else 0.0
        wait_at_most = min(seconds, PATIENCE_SECONDS)
        ahead = _ahead(response.headers.get("Date", ""))
        return Answer(response.status, response.reason, wait_at_most, ahead, response.data)


def _ahead(date: str) -> timedelta | None:
    try:
        there = parsedate_to_datetime(date)
    except (TypeError, ValueError, OverflowError):
        return None
    return datetime.now(UTC) - there if there.tzinfo else None
