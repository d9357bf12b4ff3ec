"""Artifacts of Flux: where the status of a source says that one is, and the digest it must have.

Flux serves them by a Service of its cluster. Such an address means nothing outside of the cluster,
or something else: only the cluster's API server leads there.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

from bellhop.adapters.egress.download import shown
from bellhop.core.printable import visible
from bellhop.errors import InvalidError

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"/(?P<path>(?!\.{1,2}(?:/|$))[\w.~+=@:-]+(?:/(?!\.{1,2}(?:/|$))[\w.~+=@:-]+)*)",
    re.ASCII,
)
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_SERVICE = re.compile(rf"(?![0-9])({_LABEL})\.({_LABEL})(?:\.svc(?:\.{_LABEL})*)?\.?")
_OF_CLUSTERS = re.compile(r".*\.(?:svc|cluster\.local)\.*")
_PORTS = {"http": 80, "https": 443}
_MOST_PORT = 65_535
_DIGEST = re.compile(r"(?:(sha256|sha384|sha512):)?([0-9a-f]+)")
_DIGITS = {"sha256": 64, "sha384": 96, "sha512": 128}


class Service(Struct, frozen=True):
    """A file that a Service of a cluster serves; `name` is as the API server's proxy takes it."""

    namespace: str
    name: str
    path: str


class Digest(Struct, frozen=True):
    """A digest in lower-case hexadecimal, and the algorithm of it."""

    algorithm: str
    value: str

    def fits(self, content: bytes) -> bool:
        """Return whether a content has this digest."""
        return hashlib.new(self.algorithm, content).hexdigest() == self.value


def service_of(url: str) -> Service | None:
    """Return the Service of a cluster that has an address; None if it is another host.

    Raises:
        InvalidError: it is no plain address of a file.
    """
    found = _URL.fullmatch(url)
    if not found:
        raise _odd(url)
    host, port = found["host"].lower(), int(found["port"] or _PORTS[found["scheme"]])
    service = _SERVICE.fullmatch(host)
    if not 0 < port <= _MOST_PORT or (not service and _OF_CLUSTERS.fullmatch(host)):
        raise _odd(url)
    if not service:
        return None
    return Service(service[2], f"{found['scheme']}:{service[1]}:{port}", found["path"])


def digest_of(text: str, url: str) -> Digest:
    """Return the digest that a status says; a SHA-256 may stand there without its algorithm.

    Raises:
        InvalidError: it is none, or of another algorithm.
    """
    found = _DIGEST.fullmatch(text.lower())
    digest = Digest(found[1] or "sha256", found[2]) if found else None
    if not digest or len(digest.value) != _DIGITS[digest.algorithm]:
        raise InvalidError(
            f"{task_of(url)}: its digest is not a sha256, sha384 or sha512; start source-controller"
            " without another --artifact-digest-algo"
        )
    return digest


def task_of(url: str) -> str:
    """Return the beginning of errors about an artifact."""
    return f"cannot download {visible(shown(url))}"


def _odd(url: str) -> InvalidError:
    return InvalidError(
        f"{task_of(url)}: no artifact has such an address; it is http://HOST/PATH or"
        " https://HOST/PATH in plain letters, without '..', escapes, a query and a login, where the"
        " host of a Service is NAME.NAMESPACE.svc.cluster.local"
    )
