"""CloudEvents 1.0 as they come over HTTP: read strictly, named, and put in an order.

Of one `source` and `subject` only the newest event counts, which is by its `time`, and of those
without one, or with one far in the future, the last to come. It is kept as an object is: named
after both, with its place in the order as its version. The requirements are those of
the specification, its JSON format and its HTTP binding:
https://github.com/cloudevents/spec/tree/v1.0.2/cloudevents.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.core.identity import LARGEST_VERSION
from bellhop.documents.json import read_json, read_value
from bellhop.errors import InvalidError, TooLargeError

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"

CHANNEL = "messagingsubject"
"""The extension attribute with which a bridge names the subject of the messaging system."""

SUBSCRIPTION = "messagingasked"
"""The one with its subscription, where that is not the subject itself."""

ACCEPTED = "accepted"
"""The field of what is kept of an event that counts whatever its attributes are."""

MOST_EVENTS = 200
"""Events of one batch: each is written before the sender has its answer."""

LONGEST = 1024
"""Characters of an attribute; they become parts of keys, and of lines on terminals."""

_AHEAD = timedelta(minutes=15)
"""By how much an event may be ahead of us. Where it is more, its sender's clock is wrong, or ours:
it takes its place as it comes, so that no event after it waits for that time."""

_PREFIX = "ce-"
_FAMILY = "application/cloudevents"
_REQUIRED = ("specversion", "id", "source", "type")
_TEXTS = (*_REQUIRED, "subject", "time", "datacontenttype", "dataschema")
_NAME = re.compile(r"[a-z0-9]{1,64}\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d*)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII
)
_SLUG = re.compile(r"[^a-z0-9]+")
_READABLE, _DIGEST, _UID = 40, 12, 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICKS = 1024
"""Places in the order for one microsecond: senders write times in seconds, and several in one."""


class CloudEvent(Struct, frozen=True, dict=True):
    """One event: its attributes by name, with `data` or `data_base64` beside them, as in JSON.

    By `accepted` it is one for its EventSource whatever attributes that asks for.
    """

    content: Mapping[str, Any]
    accepted: bool = False

    def text(self, name: str) -> str:
        """Return an attribute, which is empty where the event has none."""
        return str(self.content.get(name, ""))

    @cached_property
    def time(self) -> datetime | None:
        """Say when it happened; None where it does not say."""
        return _time(self.text("time")) if "time" in self.content else None

    @property
    def uid(self) -> str:
        """Digest source and id: two events that have both in common are the same one."""
        return _digest(self.text("source"), self.text("id"))[:_UID]

    @property
    def name(self) -> str:
        """Name what it is about: its source and subject, readable, and of both a digest."""
        source, subject = self.text("source"), self.text("subject")
        readable = _SLUG.sub("-", (subject or source).lower())[:_READABLE].strip("-")
        return f"{readable}-{_digest(source, subject)[:_DIGEST]}".lstrip("-")

    def key(self, listener: str = "") -> ObjectKey:
        """Return the key under which an EventSource keeps it."""
        return ObjectKey(CLOUD_EVENT, listener, self.name)

    def manifest(self, listener: str = "") -> dict[str, Any]:
        """Return it as an object, as it is kept."""
        return {
            "apiVersion": CLOUD_EVENT.api_version,
            "kind": CLOUD_EVENT.kind,
            "metadata": {"namespace": listener, "name": self.name},
            "event": dict(self.content),
            **({ACCEPTED: True} if self.accepted else {}),
        }

    def order(self, now: datetime, last: int) -> int:
        """Return its place beside the `last` of its source and subject; 0 is for none.

        Where the two happened in the same moment, or it does not say when, who comes later counts;
        so it is where its time is too far ahead to be believed.
        """
        if self.time is None or self.time - now > _AHEAD:
            return max(_tick(now), last + 1)
        tick = _tick(self.time)
        return min(last + 1, tick + _TICKS - 1) if last // _TICKS == tick // _TICKS else tick


def event_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the event in what is kept of one, as templates and scripts see it."""
    event: Mapping[str, Any] = manifest["event"]
    return event


def attributes(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of headers, by name; header names are in small letters."""
    return {
        name.removeprefix(_PREFIX): value
        for name, value in headers.items()
        if name.startswith(_PREFIX)
    }


def has_cloud_events(media: str, attributes: Mapping[str, str]) -> bool:
    """Return whether a request has CloudEvents, by its Content-Type or its headers."""
    return _essence(media).startswith(_FAMILY) or bool(attributes.keys() & {*_REQUIRED})


def read(media: str, attributes: Mapping[str, str], body: bytes) -> list[CloudEvent]:
    """Read the events of a request in whichever mode: all of them, or none.

    Raises:
        InvalidError: one is none; in a batch it says which.
        TooLargeError: there are too many.
    """
    essence = _essence(media)
    if essence == BATCH:
        return list(_batch(body))
    if essence == STRUCTURED:
        return [parse(read_json(body))]
    if essence.startswith(_FAMILY):
        raise InvalidError(
            f"cannot read CloudEvents in {essence[:64]!a}; send them as {STRUCTURED}, as {BATCH},"
            " or by headers that begin with ce-"
        )
    content: dict[str, Any] = {name: _decoded(value) for name, value in attributes.items()}
    content |= {"datacontenttype": media} if media else {}
    # A header may not be what the body is.
    content = {name: each for name, each in content.items() if not name.startswith("data_")}
    content.pop("data", None)
    return [parse({**content, **_data(essence, body)})]


def parse(given: Any) -> CloudEvent:
    """Read one event of the JSON format.

    Raises:
        InvalidError: it is none.
    """
    if not isinstance(given, Mapping):
        raise _wrong("it is not a JSON object")
    content = {name: each for name, each in given.items() if each is not None}
    for name in _REQUIRED:
        if name not in content:
            raise _wrong(f"it has no {name}")
    for name, each in content.items():
        if name not in {"data", "data_base64"}:
            _check(name, each)
    if content["specversion"] != "1.0":
        raise _wrong(f"its specversion is {content['specversion'][:16]!a}, and 1.0 is read here")
    return CloudEvent(_with_data(content))


def _batch(body: bytes) -> Iterator[CloudEvent]:
    given = read_value(body)
    if not isinstance(given, list):
        raise InvalidError("cannot read a batch of CloudEvents: the body is not a JSON array")
    if len(given) > MOST_EVENTS:
        raise TooLargeError(
            f"cannot take {len(given)} CloudEvents at once: the limit is {MOST_EVENTS}; send less"
        )
    for number, each in enumerate(given, 1):
        try:
            yield parse(each)
        except InvalidError as error:
            raise InvalidError(
                f"{error}; it is number {number} of {len(given)}, and none of them is taken"
            ) from error


def _check(name: str, value: Any) -> None:
    """Check the name and the value of one attribute.

    Raises:
        InvalidError: the specification has no such.
    """
    if not _NAME.match(name):
        raise _wrong(
            f"{name[:64]!a} is not the name of an attribute: it takes small letters and digits"
        )
    if name not in _TEXTS and isinstance(value, (bool, int)):
        return
    if not isinstance(value, str):
        raise _wrong(f"its {name} must be a string")
    if not value and name in _TEXTS:
        raise _wrong(f"its {name} is empty")
    if len(value) > LONGEST:
        raise _wrong(f"its {name} has {len(value)} characters, and {LONGEST} are taken")
    if _CONTROL.search(value):
        raise _wrong(f"its {name} has a control character")
    if name == "time":
        _time(value)


def _with_data(content: dict[str, Any]) -> dict[str, Any]:
    """Read data that is JSON in base64: senders write it either way."""
    if "data_base64" not in content:
        return content
    if "data" in content:
        raise _wrong("it has both data and data_base64")
    try:
        body = base64.b64decode(content["data_base64"], validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise _wrong("its data_base64 is not base64") from error
    if not _is_json(_essence(content.get("datacontenttype", ""))):
        return content
    rest = {name: each for name, each in content.items() if name != "data_base64"}
    return {**rest, **_data("application/json", body)}


def _data(essence: str, body: bytes) -> dict[str, Any]:
    """Return the data of a body: JSON as what it says, text as text, all else in base64."""
    if not body:
        return {}
    if _is_json(essence):
        return {"data": read_value(body)}
    if essence.startswith("text/"):
        try:
            return {"data": body.decode()}
        except UnicodeDecodeError:
            pass
    return {"data_base64": base64.b64encode(body).decode()}


def _decoded(value: str) -> str:
    """Read the value of a header, in which all but plain letters is percent-encoded."""
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError as error:
        raise _wrong("the percent-encoding of a header is not UTF-8") from error


def _time(text: str) -> datetime:
    found = _TIME.match(text)
    day, hour, fraction, zone = found.groups() if found else ("", "", "", "")
    zone = "+00:00" if zone in {"Z", "z"} else zone
    try:
        return datetime.fromisoformat(f"{day}T{hour}.{(fraction or '').ljust(6, '0')}{zone}")
    except ValueError as error:
        raise _wrong(
            "its time is not in the form of RFC 3339, as in 2026-01-31T12:00:00Z"
        ) from error


def _tick(at: datetime) -> int:
    try:
        micros = (at - _EPOCH) // timedelta(microseconds=1)
    except OverflowError:
        return 0
    return min(max(0, micros * _TICKS), LARGEST_VERSION)


def _essence(media: str) -> str:
    return media.partition(";")[0].strip().lower()


def _is_json(essence: str) -> bool:
    """Say whether data is JSON; where nothing is said, it is."""
    return essence in {"", "application/json", "text/json"} or essence.endswith("+json")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _wrong(why: str) -> InvalidError:
    return InvalidError(f"cannot take a CloudEvent: {why}")
