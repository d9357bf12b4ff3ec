"""The port `Files`: downloads what URLs and Flux serve, and keeps it in memory for a while.

Each of a fleet's clusters asks for the same files again and again, several at once.
"""

from __future__ import annotations

import hashlib
import re
from functools import partial
from typing import ClassVar
from urllib.parse import urlsplit

from msgspec import Struct

from bellhop.adapters.egress.download import shown
from bellhop.adapters.egress.registry import SCHEME
from bellhop.adapters.egress.source_client import Limits, SourceClient
from bellhop.adapters.sources.files.oci import GZIP, pull
from bellhop.core.address_policy import AddressPolicy
from bellhop.core.printable import visible
from bellhop.documents.tarball import Folder, unpack
from bellhop.errors import InvalidError, MissingError, UnreachableError
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Kube
from bellhop.ports.tools import Downloaded
from bellhop.state.chart import ANONYMOUS, Login
from bellhop.state.content import Remote
from bellhop.state.ttl_cache import TtlCache

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
        return hashlib.new(self.algorithm, content).hexdigest() == self.value


def service_of(url: str) -> Service | None:
    """Return the Service of a cluster that has an address; None if it is another host.

    Flux serves artifacts by a Service of its cluster. Such an address means nothing outside of the
    cluster, or something else: only the cluster's API server leads there.

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


class RemoteClient(SourceClient, frozen=True):
    """Requests for the files of one `remoteURL`."""

    login_source: ClassVar[str] = "the Secret that remoteURL names"
    address: ClassVar[str] = "the address in remoteURL"


class ArtifactClient(SourceClient, frozen=True):
    """Requests for one artifact of Flux; there are no credentials for any."""

    login_source: ClassVar[str] = "none"
    address: ClassVar[str] = "the address that Flux gives its artifacts"
    anonymous: ClassVar[str] = "have artifacts served without any"


LIMITS = Limits(16 << 20, 60.0)
MOST_BYTES = 64 << 20
"""Of all files that are cached."""

ARTIFACT_SECONDS = 3600.0
"""How long an artifact is cached: it never changes, but the next one takes its place."""

_ENTRY = 256
_NAME = re.compile(r"\w[\w.+~-]{0,200}", re.ASCII)
_ENDINGS = (".yaml", ".yml", ".json")
_USUAL_NAME = "manifests.yaml"


class FileDownloads:
    """Downloads files by HTTP, from OCI registries and from Flux; shared between threads."""

    def __init__(self, reach: AddressPolicy, clock: Clock, limits: Limits = LIMITS) -> None:
        self._reach = reach
        self._limits = limits
        self._cache: TtlCache[Remote | Digest, Downloaded] = TtlCache(
            clock, ARTIFACT_SECONDS, MOST_BYTES, _weight
        )

    def remote(self, place: Remote) -> Downloaded:
        return self._cache.get(place, partial(self._download, place), place.seconds)

    def artifact(self, kube: Kube, url: str, digest: str) -> Folder:
        expected = digest_of(digest, url)
        return self._cache.get(expected, partial(self._artifact, kube, url, expected)).files

    def _download(self, place: Remote) -> Downloaded:
        task = f"cannot download {shown(place.url)}"
        login = Login(
            username=place.username,
            password=place.password,
            authority=place.authority,
            insecure=place.insecure,
            plain=place.plain,
        )
        client = RemoteClient(task, login, self._reach, place.token)
        if place.url.startswith(SCHEME):
            found = pull(client, place.url, self._limits)
        else:
            content = client.content(place.url, self._limits, client.credentials())
            found = _downloaded(content, _files(place.url, content))
        if not any(found.files.values()):
            raise InvalidError(f"{task}: it is empty; have it serve what is to be deployed")
        return found

    def _artifact(self, kube: Kube, url: str, expected: Digest) -> Downloaded:
        try:
            content = self._artifact_content(kube, url)
        except MissingError as error:
            # Flux deletes an artifact soon after it has a newer one, and its status says so then.
            raise UnreachableError(
                f"{task_of(url)}: there is no such file; Flux may have replaced it, so Bellhop"
                " tries again"
            ) from error
        if not expected.fits(content):
            raise InvalidError(
                f"{task_of(url)}: its digest is not that of the source's status; Flux has replaced"
                " it meanwhile, or it is not Flux that answers"
            )
        return _downloaded(content, unpack({_name_of(url): content}))

    def _artifact_content(self, kube: Kube, url: str) -> bytes:
        if service := service_of(url):
            return kube.proxied(service.namespace, service.name, service.path)
        client = ArtifactClient(task_of(url), ANONYMOUS, self._reach)
        return client.content(url, self._limits, {})


def _files(url: str, content: bytes) -> Folder:
    """Return what a body has: the files of a tarball, or one file."""
    if content.startswith(GZIP):
        return unpack({_name_of(url): content})
    name = urlsplit(url).path.rpartition("/")[2]
    if not _NAME.fullmatch(name):
        name = _USUAL_NAME
    return {name if name.endswith(_ENDINGS) else f"{name}.yaml": content}


def _name_of(url: str) -> str:
    """Return an address as errors of a tarball name it, between quotes of their own."""
    return shown(url).strip("'")


def _downloaded(content: bytes, files: Folder) -> Downloaded:
    return Downloaded(hashlib.sha256(content).hexdigest(), files)


def _weight(found: Downloaded) -> int:
    """Return about how many bytes files take in memory."""
    sizes = (_ENTRY + len(path) + len(content) for path, content in found.files.items())
    return _ENTRY + sum(sizes)
