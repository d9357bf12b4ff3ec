"""The NATS servers to which a cluster's forwarder subscribes: the Secret of Sveltos' agent.

    Secret projectsveltos/sveltos-nats, entry sveltos-nats, JSON:
    {"nats":      {"configuration": {"url": …, "subjects": [subject …], "authorization": …}},
     "jetstream": {"configuration": {"url": …, "subjects": [stream …],
                                     "streams": [{"name": stream, "subjects": [subject …]} …],
                                     "authorization": …}}}

    authorization: {"user": {"user": …, "password": …}, "token": …,
                    "clientCert": {"certPem": …, "keyPem": …}, "rootCA": …}

The agent's subjects of JetStream are names of streams. PEM is in base64, as Go reads
bytes from JSON, or as it is, as the agent's documentation has it.
Source: https://projectsveltos.github.io/sveltos/main/events/nats/
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from msgspec import Struct

from bellhop.core.gvk import GVK
from bellhop.core.structs import Redacted
from bellhop.errors import InvalidError
from bellhop.ports.kube import Kube
from bellhop.registration.forwarder_manifests import MESSAGING_NAME, MESSAGING_NAMESPACE

PLACE = f"{MESSAGING_NAMESPACE}/{MESSAGING_NAME}"
"""The Secret, as messages name it."""

MOST = 200
"""Subjects and streams of one server: each may hold some memory."""

_SECRET = GVK("", "v1", "Secret")
_SCHEMES = {"nats", "tls"}
_PORT = 4222


class Stream(Struct, frozen=True):
    """A stream of JetStream, and which of its subjects count; none are all of them."""

    name: str
    subjects: tuple[str, ...] = ()


class Server(Redacted, frozen=True):
    """One server, what is subscribed to there, and how we prove ourselves."""

    secret_fields: ClassVar[Collection[str]] = (
        "urls",
        "user",
        "password",
        "token",
        "certificate",
        "key",
        "authority",
    )
    urls: tuple[str, ...]
    subjects: tuple[str, ...] = ()
    streams: tuple[Stream, ...] = ()
    user: str = ""
    password: str = ""
    token: str = ""
    certificate: str = ""
    key: str = ""
    authority: str = ""

    @property
    def place(self) -> str:
        """Name it without what its URLs may hold beside."""
        return ",".join(_host(url) for url in self.urls)

    def concealed(self, text: str) -> str:
        """Return a text without our credentials."""
        parts = (urlsplit(url) for url in self.urls)
        secrets = {self.password, self.token, *(each.password or "" for each in parts)}
        secrets |= {each.username or "" for each in map(urlsplit, self.urls) if not each.password}
        for each in sorted(filter(None, secrets), key=len, reverse=True):
            text = text.replace(each, "…")
        return text


def read(kube: Kube) -> tuple[Server, ...]:
    """Read the Secret; no servers if it is not there.

    Raises:
        InvalidError: it says nothing that can be followed; the message quotes no value.
        BellhopError: as reading an object does.
    """
    secret = kube.get(_SECRET, MESSAGING_NAMESPACE, MESSAGING_NAME)
    return () if secret is None else parse(secret)


def parse(secret: Mapping[str, Any]) -> tuple[Server, ...]:
    """Read the entry of the Secret.

    Raises:
        InvalidError: it says nothing that can be followed; the message quotes no value.
    """
    entry = (secret.get("data") or {}).get(MESSAGING_NAME)
    if entry is None:
        raise _wrong(f"it has no entry '{MESSAGING_NAME}'")
    given = _json(entry)
    found = [_server(kind, given[kind]) for kind in ("nats", "jetstream") if given.get(kind)]
    if not found:
        raise _wrong("it has neither 'nats' nor 'jetstream'")
    return tuple(found)


def _json(entry: Any) -> Mapping[str, Any]:
    try:
        given = json.loads(base64.b64decode(entry, validate=True))
    except (binascii.Error, TypeError, ValueError, RecursionError):
        given = None
    # Outside of the handler: a chained decoding error would hold the value.
    if not isinstance(given, Mapping):
        raise _wrong("its entry is not a JSON object in base64")
    return given


def _server(kind: str, given: Any) -> Server:
    where = f"{kind}.configuration"
    configuration = _mapping(_mapping(given, kind).get("configuration") or {}, where)
    subjects = _texts(configuration, "subjects", where)
    streams = tuple(Stream(name) for name in subjects) if kind == "jetstream" else ()
    streams += tuple(_stream(each, where) for each in _list(configuration, "streams", where))
    if kind == "nats":
        streams = ()
    else:
        subjects = ()
    if not (subjects or streams):
        raise _wrong(f"its {where} names nothing to subscribe to")
    if len(subjects) + len(streams) > MOST:
        raise _wrong(f"its {where} names more than {MOST} subjects or streams")
    urls = _urls(_text(configuration, "url", where), where)
    return Server(urls, subjects, streams, **_authorization(configuration, where))


def _stream(given: Any, where: str) -> Stream:
    each = _mapping(given, f"{where}.streams")
    name = _text(each, "name", f"{where}.streams")
    if not name:
        raise _wrong(f"a stream of its {where} has no name")
    return Stream(name, _texts(each, "subjects", f"{where}.streams"))


def _urls(text: str, where: str) -> tuple[str, ...]:
    urls = [each.strip() for each in text.split(",") if each.strip()]
    urls = [each if "://" in each else f"nats://{each}" for each in urls]
    for each in urls:
        try:
            parts = urlsplit(each)
            good = parts.scheme in _SCHEMES and parts.hostname and (parts.port or _PORT)
        except ValueError:
            good = False
        if not good:
            raise _wrong(f"its {where}.url is not an address such as 'nats://nats.nats.svc:4222'")
    if not urls:
        raise _wrong(f"its {where} has no url")
    return tuple(urls)


def _authorization(configuration: Mapping[str, Any], where: str) -> dict[str, str]:
    where = f"{where}.authorization"
    given = _mapping(configuration.get("authorization") or {}, where)
    user = _mapping(given.get("user") or {}, f"{where}.user")
    pair = _mapping(given.get("clientCert") or {}, f"{where}.clientCert")
    return {
        "user": _text(user, "user", f"{where}.user"),
        "password": _text(user, "password", f"{where}.user"),
        "token": _text(given, "token", where),
        "certificate": _pem(pair, "certPem", f"{where}.clientCert"),
        "key": _pem(pair, "keyPem", f"{where}.clientCert"),
        "authority": _pem(given, "rootCA", where),
    }


def _pem(given: Mapping[str, Any], name: str, where: str) -> str:
    text = _text(given, name, where).strip()
    if not text or text.startswith("-----BEGIN"):
        return text
    try:
        text = base64.b64decode(text).decode("ascii").strip()
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith("-----BEGIN"):
        raise _wrong(f"its {where}.{name} is not PEM")
    return text


def _mapping(given: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise _wrong(f"its {where} is not an object")
    return given


def _list(given: Mapping[str, Any], name: str, where: str) -> list[Any]:
    found = given.get(name) or []
    if not isinstance(found, list):
        raise _wrong(f"its {where}.{name} must be a list")
    return found


def _texts(given: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    found = _list(given, name, where)
    if not all(isinstance(each, str) and each for each in found):
        raise _wrong(f"its {where}.{name} is not a list of names")
    return tuple(dict.fromkeys(found))


def _text(given: Mapping[str, Any], name: str, where: str) -> str:
    found = given.get(name) or ""
    if not isinstance(found, str):
        raise _wrong(f"its {where}.{name} must be a string")
    return found


def _host(url: str) -> str:
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or _PORT}"


def _wrong(why: str) -> InvalidError:
    return InvalidError(f"cannot subscribe as the Secret '{PLACE}' says: {why}; correct it there")
