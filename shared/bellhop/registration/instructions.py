"""Instructions of a cluster's forwarder, and their renewal without a gap.

              record, here           webhook configuration      Secret, and what the forwarder does
  before      token A                calls a, trusts A       token A, certificate A, path a
  begun       tokens A and B         calls a, trusts A, B    as before
  installed   A ends in minutes      as above                   token B, certificate B, paths b, a
  settled     token B                calls b, trusts B       token B, certificate B, path b

From each line to the next one thing changes at a time, and what it changes fits the other two
columns both before and after, for as long as somebody takes to notice: API servers follow their
configuration within SPREAD_SECONDS, a forwarder its Secret within a minute, and when its token is
refused at once. So it does not matter where the way down is interrupted: everything that is in
use goes on. `registration/renewal.py` takes the other steps later.

The former token ends by time and not at the first use of the new one: of two forwarders one may
have read the Secret and the other not. Authorities' keys are thrown away once they have signed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets as entropy
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import urlsplit

from msgspec import field

from bellhop.adapters.local.certificates import issue, issuers, make_authority, together
from bellhop.clusters.installation_mark import marked
from bellhop.clusters.records import InstallationId
from bellhop.core.gvk import GVK, Resource
from bellhop.core.structs import Redacted
from bellhop.errors import DeniedError, InvalidError, PermanentError
from bellhop.installation import Inbound
from bellhop.ports.kube import Kube
from bellhop.registration.forwarder_manifests import (
    NAME,
    NAMESPACE,
    forwarder_secret,
    is_callable,
    redact_paths,
    webhook_configuration,
)
from bellhop.state.cluster import Cluster

OVERLAP = timedelta(minutes=5)
"""For how long old and new count together once the forwarder's Secret is the new one."""

AUDIT_OVERLAP = timedelta(days=1)
"""The same where API servers have the token in a file, which each reads when it starts again."""

SPREAD_SECONDS = 2.0
"""After which time API servers have taken notice of a webhook configuration."""

VALIDITY = timedelta(days=730)
"""The life of the forwarder's certificate; it is renewed after half of it."""

SECRET = GVK("", "v1", "Secret")

_TOKEN_BYTES = 32
_PATH_BYTES = 24
_TRUSTED = 3
_SERVICE_NAMES = (f"{NAME}.{NAMESPACE}.svc", f"{NAME}.{NAMESPACE}.svc.cluster.local")


class Instructions(Redacted, frozen=True):
    """Instructions to a forwarder: the record, and the entries of its Secret."""

    secret_fields: ClassVar[Collection[str]] = ("record", "entries")
    digest: str
    record: Mapping[str, str]
    entries: Mapping[str, str]

    @property
    def secret(self) -> dict[str, Any]:
        """The Secret for the cluster."""
        return forwarder_secret(self.entries)


class Former(Redacted, frozen=True):
    """The former instructions of a forwarder: its record, and the entries of its Secret."""

    secret_fields: ClassVar[Collection[str]] = ("record", "entries")
    record: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, str] = field(default_factory=dict)

    def trusted(self, beside: str) -> str:
        """The authorities to trust beside a new one, that of the Secret first."""
        present = issuers(self.record["ca"], self.entries.get("tls.crt", ""))
        return together([beside, present, self.record["ca"]], at_most=_TRUSTED)


def make_instructions(
    key: str, url: str, inbound: Inbound, now: datetime, former: Former
) -> Instructions:
    """Return new instructions for a forwarder.

    The record keeps the address that is called now, with the new authority trusted besides, and has
    the new values as `next-`.

    Raises:
        InvalidError: API servers do not call the forwarder's URL.
    """
    webhook = former.record
    names = [*_names(url), *(_list_former_names(webhook.get("url", "")) if webhook else ())]
    authority = make_authority(NAME, now=now, validity=VALIDITY)
    certificate, private = issue(authority, [*dict.fromkeys(names)], now=now, validity=VALIDITY)
    token = entropy.token_urlsafe(_TOKEN_BYTES)
    # Hexadecimal: of a Service's path, API servers take only lower-case names.
    path = f"/ring/{entropy.token_hex(_PATH_BYTES)}"
    trusted = authority.certificate_pem.decode()
    record = {
        "url": url.rstrip("/"),
        "ca": trusted,
        "path": path,
        "begun": now.isoformat(),
        "audience": inbound.url.rstrip("/"),
    }
    if webhook:
        record |= {
            "ca": former.trusted(beside=trusted),
            "path": webhook["path"],
            "next-ca": trusted,
            "next-path": path,
        }
        if not is_callable(record):
            # No API server calls this path: the new one need not wait.
            record["path"] = path
    entries = {
        "ingest-url": inbound.url.rstrip("/"),
        "ingest-ca": inbound.ca,
        "cluster": key,
        "token": token,
        "path": path,
        "tls.crt": certificate.decode(),
        "tls.key": private.decode(),
        **({"former-path": webhook["path"]} if webhook else {}),
    }
    return Instructions(digest_token(token), record, entries)


def make_direct_instructions(
    way: str, key: str, inbound: Inbound, now: datetime, token: str = ""
) -> Instructions:
    """Return instructions to an API server that calls ingest itself, or sends its `audit` log.

    The token is new where none is given. The record has the address without the token, which is
    stored sealed, or only in the API server's file.

    Raises:
        InvalidError: API servers do not call such an address.
    """
    url = inbound.url.rstrip("/")
    if not url.startswith("https://"):
        raise InvalidError(
            f"cannot have API servers call '{url}': they only call https; give --ingest-url"
        )
    token = token or entropy.token_urlsafe(_TOKEN_BYTES)
    record = {
        way: "yes",
        "url": f"{url}/clusters/{key}",
        "ca": inbound.ca,
        "begun": now.isoformat(),
    }
    return Instructions(digest_token(token), record, {"token": token})


def configure_webhook(
    kube: Kube, resources: Sequence[Resource], record: Mapping[str, str], mine: InstallationId
) -> None:
    """Configure the webhook as the record says, for one installation.

    Raises:
        PermanentError: the API server refuses the configuration; its message without the path.
    """
    refusal: PermanentError | None = None
    try:
        kube.apply(marked(webhook_configuration(resources, record), mine))
    except PermanentError as error:
        refusal = type(error)(redact_paths(str(error), record))
    if refusal:
        # Outside of the handler: the error that was caught holds the path.
        raise refusal


def mark_secret_written(
    record: Mapping[str, str], now: datetime, overlap: timedelta = OVERLAP
) -> dict[str, str]:
    """Return the record after the forwarder's Secret was written."""
    rest = {key: value for key, value in record.items() if key != "begun"}
    return rest | {"settle": (now + overlap).isoformat()}


def mark_switched(record: Mapping[str, str]) -> dict[str, str]:
    """Return the record after the webhook was switched to the new values only."""
    rest = {key: value for key, value in record.items() if not key.startswith("next-")}
    path, authority = record.get("next-path"), record.get("next-ca")
    return rest | ({"path": path, "ca": authority} if path and authority else {})


def mark_settled(record: Mapping[str, str]) -> dict[str, str]:
    """Return the record without former and next values."""
    return {key: value for key, value in record.items() if key != "settle"}


def find_entries(kube: Kube) -> dict[str, str]:
    """Return the entries of the forwarder's Secret; none if it is missing or may not be read."""
    try:
        return read_entries(kube)
    except DeniedError:
        return {}


def read_entries(kube: Kube) -> dict[str, str]:
    """Return the entries of the forwarder's Secret; none if it is missing.

    Raises:
        DeniedError: it may not be read.
    """
    secret = kube.get(SECRET, NAMESPACE, NAME)
    return {key: _decoded(value) for key, value in ((secret or {}).get("data") or {}).items()}


def digest_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def find_token_digest(cluster: Cluster, entries: Mapping[str, str]) -> str:
    """Return the digest of the token that the forwarder has, or is about to read.

    It is that in its Secret, if it was given to this cluster.
    """
    found = digest_token(entries.get("token", ""))
    return found if found == cluster.former_digest else cluster.token_digest


def _decoded(value: Any) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, TypeError, ValueError):
        return ""


def _list_former_names(url: str) -> Sequence[str]:
    """Return the names by which API servers still call; accepted names are not checked again."""
    host = urlsplit(url).hostname
    return [host] if host else _SERVICE_NAMES


def _names(url: str) -> Sequence[str]:
    if not url:
        return _SERVICE_NAMES
    parts = urlsplit(url)
    odd = parts.username or parts.password or parts.query or parts.fragment
    if parts.scheme != "https" or not parts.hostname or odd:
        raise InvalidError(
            "cannot use the forwarder's URL: API servers only call https, without user, query or"
            " fragment, as in 'https://10.0.0.5:9443'"
        )
    return [parts.hostname]
