"""The configuration of the forwarder: a Secret in its own cluster that registration wrote."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import ssl
from collections.abc import Collection
from typing import Any, ClassVar
from urllib.parse import urlsplit

from bellhop.core.gvk import GVK
from bellhop.core.structs import Redacted
from bellhop.errors import InvalidError
from bellhop.ports.kube import Kube
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE

PLACE = f"{NAMESPACE}/{NAME}"
"""The Secret, as messages name it."""

_SECRET = GVK("", "v1", "Secret")
_NEEDED = ("ingest-url", "cluster", "token", "path", "tls.crt", "tls.key")


class Instructions(Redacted, frozen=True):
    """The path and certificate of the webhook, and the address and token of ingest."""

    secret_fields: ClassVar[Collection[str]] = (
        "ingest_ca",
        "token",
        "path",
        "former_path",
        "certificate",
        "key",
    )
    ingest_url: str
    """Of this very cluster: `…/clusters/<namespace>/<name>`."""

    audience: str
    """Ingest, as the audience of tokens that are only for it."""

    ingest_ca: str
    """PEM; empty to trust what the system trusts."""

    cluster: str
    token: str
    path: str
    former_path: str
    """A second path, until the webhook configuration has changed; empty for none."""

    certificate: bytes
    key: bytes


def read(kube: Kube) -> Instructions | None:
    """Read the Secret; None if it is not there.

    Raises:
        InvalidError: an entry is missing or malformed; the message quotes no value.
        BellhopError: as reading an object does.
    """
    secret = kube.get(_SECRET, NAMESPACE, NAME)
    return None if secret is None else parse(secret)


def parse(secret: dict[str, Any]) -> Instructions:
    """Read the entries of the Secret.

    Raises:
        InvalidError: an entry is missing or malformed; the message quotes no value.
    """
    entries = {key: _decode(key, value) for key, value in (secret.get("data") or {}).items()}
    missing = [key for key in _NEEDED if not entries.get(key)]
    if missing:
        raise InvalidError(
            f"the Secret '{PLACE}' has no {', '.join(missing)}; register the cluster again"
        )
    path, cluster = entries["path"], entries["cluster"]
    if not path.startswith("/") or len(path) < 2:  # noqa: PLR2004 - a slash and a secret
        raise _malformed_error("path", "a path that begins with '/'")
    if cluster.count("/") != 1:
        raise _malformed_error("cluster", "of the form namespace/name")
    if not (entries["token"].isascii() and entries["token"].isprintable()):
        raise _malformed_error("token", "something that can stand in a header")
    _check_authority(entries.get("ingest-ca", ""))
    address = _address(entries["ingest-url"])
    return Instructions(
        ingest_url=f"{address}/clusters/{cluster}",
        audience=address,
        ingest_ca=entries.get("ingest-ca", ""),
        cluster=cluster,
        token=entries["token"],
        path=path,
        former_path=entries.get("former-path", ""),
        certificate=entries["tls.crt"].encode(),
        key=entries["tls.key"].encode(),
    )


def _decode(key: str, value: Any) -> str:
    try:
        return base64.b64decode(value, validate=True).decode().strip()
    except (binascii.Error, TypeError, ValueError):
        pass
    # Outside of the handler: a chained decoding error would hold the value.
    raise _malformed_error(key, "base64 of a text")


def _check_authority(pem: str) -> None:
    try:
        ssl.create_default_context(cadata=pem or None)
    except (ssl.SSLError, ValueError) as error:
        raise _malformed_error("ingest-ca", "PEM, or nothing") from error


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = None, ""
    if parts is None or not host or parts.scheme not in {"https", "http"}:
        raise _malformed_error("ingest-url", "an address such as 'https://bellhop.example.com'")
    if parts.scheme == "http" and not _is_loopback(host):
        raise _malformed_error("ingest-url", "https: over http anybody could read the token")
    # A scheme is written in any case; the client compares it in lower case.
    return f"{parts.scheme}:{url.partition(':')[2]}".rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _malformed_error(key: str, expected: str) -> InvalidError:
    return InvalidError(
        f"the entry '{key}' of the Secret '{PLACE}' is not {expected}; register the cluster again"
    )
