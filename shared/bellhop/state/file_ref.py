"""Where the files of an add-on are that no ConfigMap or Secret holds: a Flux source, or a URL.

A profile reads a Flux source as it reads any object of the cluster `mgmt/mgmt`, whose forwarder
reports a new revision. Of a URL it reads a digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

FLUX = "source.toolkit.fluxcd.io/v1"
FLUX_KINDS = frozenset({"GitRepository", "OCIRepository", "Bucket"})
FLUX_SCHEMES = tuple(f"{each.lower()}://" for each in sorted(FLUX_KINDS))
REMOTE = "RemoteURL"
"""The kind that the files of a URL are called by."""


class FileRef(Struct, frozen=True):
    """The files of an add-on: those of `path` in what a profile reads by the identifier `field`.

    The path is a template of deploy time unless it is `plain`. By `template` the files are, too.
    """

    field: str
    path: str = ""
    plain: bool = False
    template: bool = False


class Address(Struct, frozen=True):
    """A URL, which may be a template, and how it is downloaded: see `bellhop.state.remote_url`.

    Its credentials are in a Secret, if it names one; without a namespace in that of the cluster.
    """

    url: str
    seconds: float
    secret: str = ""
    namespace: str = ""
    insecure: bool = False
    plain: bool = False


class FluxPath(NamedTuple):
    """A path in a Flux source."""

    kind: str
    namespace: str
    name: str
    path: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def flux_path(url: str) -> FluxPath | None:
    """Read `gitrepository://NAMESPACE/NAME/PATH` or the like; None for any other URL."""
    scheme, _, place = url.partition("://")
    for kind in FLUX_KINDS:
        if scheme.lower() == kind.lower():
            namespace, _, rest = place.partition("/")
            name, _, path = rest.partition("/")
            return FluxPath(kind, namespace, name, path)
    return None


def artifact_of(source: Mapping[str, Any]) -> tuple[str, str]:
    """Return the URL and the digest of what a Flux source has fetched; empty before it has."""
    artifact = (source.get("status") or {}).get("artifact") or {}
    digest = artifact.get("digest") or artifact.get("checksum")
    return str(artifact.get("url") or ""), str(digest or "")


def ref_name(kind: str, namespace: str, name: str) -> str:
    """Return what a ref is called in text and records; a URL by itself."""
    return name if kind == REMOTE else f"{kind} {namespace}/{name}"


def ref_parts(ref: str) -> tuple[str, str, str]:
    """Return kind, namespace and name of a ref by what it is called."""
    kind, _, place = ref.partition(" ")
    if "://" in kind:
        return REMOTE, "", ref
    namespace, _, name = place.partition("/")
    return kind, namespace, name


def shown_url(url: str) -> str:
    """Return a URL as everybody may see it: without what may be secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
