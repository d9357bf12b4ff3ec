"""The port `Files`: downloads what URLs and Flux serve, and keeps it in memory for a while.

Each of a fleet's clusters asks for the same files again and again, several at once.
"""

from __future__ import annotations

import hashlib
import re
from functools import partial
from urllib.parse import urlsplit

from bellhop.adapters.egress.download import shown
from bellhop.adapters.egress.registry import SCHEME
from bellhop.adapters.egress.source_client import Limits
from bellhop.adapters.sources.files.artifact import Digest, digest_of, service_of, task_of
from bellhop.adapters.sources.files.client import ArtifactClient, RemoteClient
from bellhop.adapters.sources.files.oci import GZIP, pull
from bellhop.core.address_policy import AddressPolicy
from bellhop.documents.tarball import Folder, unpack
from bellhop.errors import InvalidError, MissingError, UnreachableError
from bellhop.ports.clock import Clock
from bellhop.ports.files import Downloaded
from bellhop.ports.kube import Kube
from bellhop.state.chart import ANONYMOUS, Login
from bellhop.state.remote_url import Remote
from bellhop.state.ttl_cache import TtlCache

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
        """Return the files at a URL, downloaded at most `place.seconds` ago."""
        return self._cache.get(place, partial(self._download, place), place.seconds)

    def artifact(self, kube: Kube, url: str, digest: str) -> Folder:
        """Return the files of an artifact of Flux, whose digest is checked."""
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
