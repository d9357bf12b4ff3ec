"""How a cluster's forwarder gets its instructions, and gets new ones without a gap.

              record, here           webhook configuration      Secret, and what the forwarder does
  before      token A                rings at a, trusts A       token A, certificate A, path a
  begun       tokens A and B         rings at a, trusts A, B    as before
  told        A ends in minutes      as above                   token B, certificate B, paths b, a
  settled     token B                rings at b, trusts B       token B, certificate B, path b

From each line to the next one thing changes at a time, and what it changes fits the other two
columns both before and after, for as long as somebody takes to notice: API servers follow their
configuration within SPREAD_SECONDS, a forwarder its Secret within a minute, and when its token is
refused at once. So it does not matter where the way down is interrupted: everything that is in
use goes on. `registration/renewal.py` walks the rest of the way later.

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
from bellhop.clusters.records.installations import InstallationId
from bellhop.core.gvk import GVK, Resource
from bellhop.core.redaction import Redacted
from bellhop.errors import DeniedError, InvalidError, PermanentError
from bellhop.installation.installation import Inbound
from bellhop.ports.kube import Kube
from bellhop.registration.forwarder_manifests import (
    NAME,
    NAMESPACE,
    concealed,
    forwarder_secret,
    is_callable,
    webhook_configuration,
)
from bellhop.state.record import Cluster

OVERLAP = timedelta(minutes=5)
"""For how long old and new count together once the forwarder's Secret is the new one."""

AUDIT_OVERLAP = timedelta(days=1)
"""The same where API servers have the token in a file, which each reads when it starts again."""

SPREAD_SECONDS = 2.0
"""After which time API servers have taken notice of a webhook configuration."""

VALIDITY = timedelta(days=730)
"""How long the forwarder's certificate lasts; it is renewed when half of that has passed."""

SECRET = GVK("", "v1", "Secret")

_TOKEN_BYTES = 32
_PATH_BYTES = 24
_TRUSTED = 3
_SERVICE_NAMES = (f"{NAME}.{NAMESPACE}.svc", f"{NAME}.{NAMESPACE}.svc.cluster.local")


class Instructions(Redacted, frozen=True):
    """What a forwarder is to be told: the record's side of it, and the Secret's entries."""

    secret_fields: ClassVar[Collection[str]] = ("record", "entries")
    digest: str
    record: Mapping[str, str]
    entries: Mapping[str, str]

    @property
    def secret(self) -> dict[str, Any]:
        """Return the Secret for the cluster."""
        return forwarder_secret(self.entries)


class Former(Redacted, frozen=True):
    """A forwarder that rings already: what the record says of it, and its Secret's entries."""

    secret_fields: ClassVar[Collection[str]] = ("record", "entries")
    record: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, str] = field(default_factory=dict)

    def trusted(self, beside: str) -> str:
        """Return the authorities to trust beside a new one: that of the Secret's first."""
        present = issuers(self.record["ca"], self.entries.get("tls.crt", ""))
        return together([beside, present, self.record["ca"]], at_most=_TRUSTED)


def draw_up(key: str, url: str, inbound: Inbound, now: datetime, former: Former) -> Instructions:
    """Make new instructions for a forwarder.

    The record keeps in force what rings now, beside which it trusts the new authority, and names
    as `next-` what it will be.

    Raises:
        InvalidError: the forwarder's URL is none that an API server calls.
    """
    rings = former.record
    names = [*_names(url), *(_names_before(rings.get("url", "")) if rings else ())]
    authority = make_authority(NAME, now=now, validity=VALIDITY)
    certificate, private = issue(authority, [*dict.fromkeys(names)], now=now, validity=VALIDITY)
    token = entropy.token_urlsafe(_TOKEN_BYTES)
    # Hexadecimal: of a Service's path, API servers take lower-case names alone.
    path = f"/ring/{entropy.token_hex(_PATH_BYTES)}"
    trusted = authority.certificate_pem.decode()
    record = {
        "url": url.rstrip("/"),
        "ca": trusted,
        "path": path,
        "begun": now.isoformat(),
        "audience": inbound.url.rstrip("/"),
    }
    if rings:
        record |= {
            "ca": former.trusted(beside=trusted),
            "path": rings["path"],
            "next-ca": trusted,
            "next-path": path,
        }
        if not is_callable(record):
            # Nothing rings there, as no API server takes it: the new one need not wait.
            record["path"] = path
    entries = {
        "ingest-url": inbound.url.rstrip("/"),
        "ingest-ca": inbound.ca,
        "cluster": key,
        "token": token,
        "path": path,
        "tls.crt": certificate.decode(),
        "tls.key": private.decode(),
        **({"former-path": rings["path"]} if rings else {}),
    }
    return Instructions(digest_of(token), record, entries)


def draw_up_direct(
    way: str, key: str, inbound: Inbound, now: datetime, token: str = ""
) -> Instructions:
    """Instruct an API server that calls ingest itself, `direct` or for its `audit`, with a token.

    It is a new one where none is given. The record says where it calls, but for the token: that is
    kept apart, sealed, or is nowhere but in the API server's file.

    Raises:
        InvalidError: API servers call no such address.
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
    return Instructions(digest_of(token), record, {"token": token})


def wire(
    kube: Kube, resources: Sequence[Resource], record: Mapping[str, str], mine: InstallationId
) -> None:
    """Have the API server ring as the record says, for one installation.

    Raises:
        PermanentError: the API server refuses the configuration; its words without the path.
    """
    refusal: PermanentError | None = None
    try:
        kube.apply(marked(webhook_configuration(resources, record), mine))
    except PermanentError as error:
        refusal = type(error)(concealed(str(error), record))
    if refusal:
        # Outside of the handler: the error that was caught holds the path.
        raise refusal


def told(record: Mapping[str, str], now: datetime, overlap: timedelta = OVERLAP) -> dict[str, str]:
    """Return the record of a forwarder whose Secret is written."""
    rest = {key: value for key, value in record.items() if key != "begun"}
    return rest | {"settle": (now + overlap).isoformat()}


def switched(record: Mapping[str, str]) -> dict[str, str]:
    """Return the record of a forwarder that is to ring in the new way alone; not settled yet."""
    rest = {key: value for key, value in record.items() if not key.startswith("next-")}
    path, authority = record.get("next-path"), record.get("next-ca")
    return rest | ({"path": path, "ca": authority} if path and authority else {})


def settled(record: Mapping[str, str]) -> dict[str, str]:
    """Return the record of a forwarder that nothing is left to be done for."""
    return {key: value for key, value in record.items() if key != "settle"}


def entries_in(kube: Kube) -> dict[str, str]:
    """Read the forwarder's Secret in a cluster; empty if it is not there or may not be read."""
    try:
        return entries_of(kube)
    except DeniedError:
        return {}


def entries_of(kube: Kube) -> dict[str, str]:
    """Read the forwarder's Secret in a cluster; empty if it is not there.

    Raises:
        DeniedError: it may not be read.
    """
    secret = kube.get(SECRET, NAMESPACE, NAME)
    return {key: _decoded(value) for key, value in ((secret or {}).get("data") or {}).items()}


def digest_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def in_use(cluster: Cluster, entries: Mapping[str, str]) -> str:
    """Return the digest of the token that the forwarder has, or is about to read.

    That is what its Secret says, as long as it is a token that was given to this cluster.
    """
    found = digest_of(entries.get("token", ""))
    return found if found == cluster.former_digest else cluster.token_digest


def _decoded(value: Any) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, TypeError, ValueError):
        return ""


def _names_before(url: str) -> Sequence[str]:
    """Return the names by which API servers call still; what was taken once is not judged anew."""
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
