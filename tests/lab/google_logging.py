"""Serve Cloud Logging's `entries:list` on this machine, with the filters that are asked of it.

    with Logging() as logging:
        logging.write("prod-deploy", line, at=now)      # as Cloud Run takes it from a function
        Services("a-project", emulators={"LOGGING_EMULATOR_HOST": logging.address})

Of the language of filters it reads comparisons of fields (`=`, `!=`, `<`, `<=`, `>`, `>=`, and `:`
for a part of a text, or with `*` for a field that is there), values in parentheses with OR between
them, AND, OR, NOT and parentheses. It refuses the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from tests.lab.http_server import HttpServer, Request, Response

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[()]|<=|>=|!=|[=<>:]|[^\s()=<>:!"]+)')
_SEVERITIES = (
    *("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING"),
    *("ERROR", "CRITICAL", "ALERT", "EMERGENCY"),
)
_SPECIAL = "logging.googleapis.com/"
_MOST = 1000

Entry = Mapping[str, Any]
Test = Callable[[Entry], bool]


class Logging(HttpServer):
    """The logs of one project."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[dict[str, Any]] = []
        self._refusals: list[int] = []
        self.places: set[str] = set()

    def write(
        self, service: str, text: str, *, at: datetime, severity: str = "DEFAULT"
    ) -> dict[str, Any]:
        """Take a line of a function's output, as Cloud Run does, and return its entry."""
        entry: dict[str, Any] = {
            "insertId": uuid4().hex,
            "severity": severity,
            "timestamp": at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "resource": {"type": "cloud_run_revision", "labels": {"service_name": service}},
            "labels": {},
        }
        try:
            line = json.loads(text)
        except ValueError:
            entry["textPayload"] = text
        else:
            _structured(entry, line)
        self._entries.append(entry)
        return entry

    def refuse(self, status: int, times: int = 1) -> None:
        """Answer the next requests with an HTTP status."""
        self._refusals += [status] * times

    def respond(self, request: Request) -> Response:
        """Answer a request."""
        if (request.method, request.target) != ("POST", "/v2/entries:list"):
            return Response.of(404, {})
        return Response.of(*self._listed(json.loads(request.body)))

    def _listed(self, asked: Mapping[str, Any]) -> tuple[int, Any]:
        if self._refusals:
            status = self._refusals.pop(0)
            return status, {"error": {"code": status}}
        if not set(asked["resourceNames"]) <= self.places:
            return 404, {"error": {"code": 404, "status": "NOT_FOUND"}}
        try:
            found = self.chosen(asked.get("filter", ""))
        except ValueError as error:
            return 400, {"error": {"code": 400, "message": str(error)}}
        size, first = min(int(asked.get("pageSize") or 50), _MOST), int(asked.get("pageToken") or 0)
        last = first + size
        answer: dict[str, Any] = {"entries": found[first:last]}
        return 200, {**answer, "nextPageToken": str(last)} if last < len(found) else answer

    def chosen(self, text: str) -> Sequence[Entry]:
        """Return the entries that a filter takes, by time.

        Raises:
            ValueError: it is no such filter.
        """
        query = Filter(text)
        found = [entry for entry in self._entries if query(entry)]
        return sorted(found, key=lambda entry: str(entry["timestamp"]))


def _structured(entry: dict[str, Any], line: dict[str, Any]) -> None:
    """Take out of a line what makes fields of the entry."""
    entry["severity"] = line.pop("severity", entry["severity"])
    entry["timestamp"] = line.pop("time", entry["timestamp"]).replace("+00:00", "Z")
    for field in ("labels", "trace", "insertId"):
        if (value := line.pop(_SPECIAL + field, None)) is not None:
            entry[field] = value
    entry["jsonPayload"] = line


class Filter:
    """A filter of Cloud Logging's, read from its text."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(re.sub(r"--.*", "", text)))
        self._at = 0
        self._test: Test = self._either() if self._tokens else lambda _: True
        if self._at < len(self._tokens):
            raise ValueError(f"cannot read the filter at {self._tokens[self._at]!r}")

    def __call__(self, entry: Entry) -> bool:
        """Say whether it takes an entry."""
        return self._test(entry)

    def _either(self) -> Test:
        tests = [self._both()]
        while self._next("OR"):
            tests.append(self._both())
        return lambda entry: any(test(entry) for test in tests)

    def _both(self) -> Test:
        tests = [self._one()]
        # A line's end is as good as AND.
        while self._next("AND") or self._peek() not in {"OR", ")", ""}:
            tests.append(self._one())
        return lambda entry: all(test(entry) for test in tests)

    def _one(self) -> Test:
        if self._next("NOT"):
            test = self._one()
            return lambda entry: not test(entry)
        if self._next("("):
            test = self._either()
            self._need(")")
            return test
        path, operator = _path(self._take()), self._take()
        if operator not in _OPERATORS:
            raise ValueError(f"cannot read the filter: {operator!r} is not a comparison")
        values = self._values()
        return lambda entry: any(_compared(entry, path, operator, value) for value in values)

    def _values(self) -> list[str]:
        if not self._next("("):
            return [_plain(self._take())]
        values = [_plain(self._take())]
        while self._next("OR"):
            values.append(_plain(self._take()))
        self._need(")")
        return values

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self, token: str) -> bool:
        found = self._peek() == token
        self._at += found
        return found

    def _need(self, token: str) -> None:
        if not self._next(token):
            raise ValueError(f"cannot read the filter: {token!r} is missing")

    def _take(self) -> str:
        token = self._peek()
        if not token or token in {"(", ")"}:
            raise ValueError("cannot read the filter: it ends too early")
        self._at += 1
        return token


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda found, value: bool(found == value),
    "!=": lambda found, value: bool(found != value),
    "<": lambda found, value: bool(found < value),
    "<=": lambda found, value: bool(found <= value),
    ">": lambda found, value: bool(found > value),
    ">=": lambda found, value: bool(found >= value),
    ":": lambda found, value: str(value) in str(found),
}


def _tokens(text: str) -> Iterator[str]:
    at, text = 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"cannot read the filter at {text[at : at + 20]!r}")
        yield match[1]
        at = match.end()


def _plain(token: str) -> str:
    return str(json.loads(token)) if token.startswith('"') else token


def _path(token: str) -> list[str]:
    return token.split(".")


def _compared(entry: Entry, path: Sequence[str], operator: str, value: str) -> bool:
    found: Any = entry
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if operator == ":" and value == "*":
        return found is not None
    if found is None:
        return operator == "!="
    if path == ["severity"]:
        return _OPERATORS[operator](_SEVERITIES.index(found), _SEVERITIES.index(value))
    if path == ["timestamp"]:
        return _OPERATORS[operator](datetime.fromisoformat(found), datetime.fromisoformat(value))
    if isinstance(found, int | float):
        return _OPERATORS[operator](float(found), float(value))
    return _OPERATORS[operator](str(found), value)
