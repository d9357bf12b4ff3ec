"""Charts in OCI registries, where each chart is a repository whose tags are its versions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, NoReturn
from urllib.parse import urljoin, urlsplit

from msgspec.structs import replace

from bellhop.adapters.charts.client import ChartClient, Limits, json_object
from bellhop.adapters.charts.descriptor import Descriptor, digest_of
from bellhop.adapters.charts.tokens import authorization
from bellhop.adapters.charts.versions import choose, is_exact, newest_first
from bellhop.egress.client import Answer
from bellhop.egress.download import origin, shown
from bellhop.errors import InvalidError, MissingError, TooLargeError, UnreachableError
from bellhop.model.chart import Login
from bellhop.model.reach import Reach

SCHEME = "oci://"
MOST_PAGES = 50
MOST_SECONDS = 120.0
"""For all pages of tags."""

MANIFEST = Limits(4 << 20, 30.0)
TAGS = Limits(4 << 20, 30.0)
ARCHIVE = Limits(32 << 20, 120.0)

_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CHART_TYPE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_NAME = re.compile(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_NEXT = re.compile(r'<([^<>]+)>\s*;\s*rel="?next"?', re.IGNORECASE)
_ALIASES = {"docker.io": "registry-1.docker.io", "index.docker.io": "registry-1.docker.io"}


class Registry:
    """A chart at an address of its own in a registry."""

    def __init__(self, address: str, login: Login, reach: Reach) -> None:
        host, name = _split(address)
        self._of = f"chart {name.rpartition('/')[2]!r} in {shown(address)}"
        self._chart = name.rpartition("/")[2]
        self._base = f"{'http' if login.plain else 'https'}://{host}/v2/{name}"
        origin(self._base)
        # Registries redirect to storage, which refuses credentials beside its signed addresses.
        login = replace(login, everywhere=False)
        self._client = ChartClient(f"cannot find {self._of}", login, reach)
        self._headers: dict[str, str] = {}

    def versions(self) -> Sequence[str]:
        """Return all versions, the newest one first."""
        return newest_first(each.replace("_", "+") for each in self._tags())

    def find(self, version: str) -> Descriptor:
        """Return the archive of a version or range; an exact one needs no list of tags."""
        if is_exact(version):
            answer = self._get(self._manifest(version.strip()), MANIFEST)
            if answer.status != HTTPStatus.NOT_FOUND:
                return self._descriptor(version.strip(), answer)
        chosen = choose(self.versions(), version, of=self._of)
        return self._descriptor(chosen, self._get(self._manifest(chosen), MANIFEST))

    def fetch(self, found: Descriptor) -> bytes:
        """Download an archive.

        Raises:
            InvalidError: its digest is not that of the manifest.
        """
        answer = self._get(found.url, ARCHIVE)
        content = self._success(answer, found.url).data
        if digest_of(content) != found.digest:
            self._refuse("the digest of the archive is not that of the manifest")
        return content

    def _manifest(self, version: str) -> str:
        tag = version.replace("+", "_")
        if not _TAG.fullmatch(tag):
            raise InvalidError(f"{self._client.task}: {version!r} is no version")
        return f"{self._base}/manifests/{tag}"

    def _descriptor(self, version: str, answer: Answer) -> Descriptor:
        """Return the descriptor in a manifest."""
        content = self._success(answer, self._manifest(version)).data
        said = _DIGEST.fullmatch(answer.headers.get("docker-content-digest", ""))
        if said and said[1] != digest_of(content):
            self._refuse("the digest of the manifest is not that of the registry's answer")
        layers = json_object(content).get("layers")
        for layer in layers if isinstance(layers, list) else ():
            if isinstance(layer, dict) and layer.get("mediaType") == _CHART_TYPE:
                return self._layer(version, layer)
        raise InvalidError(
            f"{self._client.task}: version {version!r} is no Helm chart; check the address"
        )

    def _layer(self, version: str, layer: dict[str, Any]) -> Descriptor:
        digest, size = _DIGEST.fullmatch(str(layer.get("digest"))), layer.get("size")
        if not digest:
            self._refuse("the manifest has no SHA-256 of the chart")
        if isinstance(size, int) and size > ARCHIVE.largest:
            raise TooLargeError(
                f"{self._client.task}: the archive has more than {ARCHIVE.largest >> 20} MiB"
            )
        return Descriptor(self._chart, version, f"{self._base}/blobs/{digest[0]}", digest[1])

    def _tags(self) -> Iterator[str]:
        """Yield all tags, page by page."""
        url, until = f"{self._base}/tags/list?n=1000", time.monotonic() + MOST_SECONDS
        for _ in range(MOST_PAGES):
            answer = self._success(self._get(url, TAGS), url)
            tags = json_object(answer.data).get("tags")
            yield from map(str, tags if isinstance(tags, list) else ())
            following = _NEXT.search(answer.headers.get("link", ""))
            if not following:
                return
            url = urljoin(url, following[1])
            if origin(url) != origin(self._base):
                self._refuse("the next page of its tags is on another server")
            if time.monotonic() > until:
                raise UnreachableError(
                    f"{self._client.task}: listing its tags took longer than {MOST_SECONDS:.0f} s;"
                    " name an exact version"
                )
        raise TooLargeError(
            f"{self._client.task}: its list of tags has more than {MOST_PAGES} pages; name an exact"
            " version"
        )

    def _get(self, url: str, limits: Limits) -> Answer:
        """Send a request, and again with credentials if the registry demands them."""
        # Without it, registries may return manifests of other types.
        accepted = {"Accept": f"{_MANIFEST_TYPE}, */*;q=0.1"}
        answer = self._client.get(url, limits, {**accepted, **self._headers})
        if answer.status != HTTPStatus.UNAUTHORIZED:
            return answer
        challenge = answer.headers.get("www-authenticate", "")
        self._headers = authorization(self._client, url, challenge)
        if not self._headers:
            return answer
        return self._client.get(url, limits, {**accepted, **self._headers})

    def _success(self, answer: Answer, url: str) -> Answer:
        if answer.succeeded:
            return answer
        if answer.status == HTTPStatus.NOT_FOUND:
            raise MissingError(
                f"{self._client.task}: the registry does not have it; check its address"
            )
        raise self._client.refusal(answer.status, url)

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidError(f"{self._client.task}: {why}; do not trust this registry")


def _split(address: str) -> tuple[str, str]:
    """Return the host of a registry, and the name of a repository in it."""
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise InvalidError("cannot find a chart: the registry's address is none") from error
    host, name = parts.netloc.rpartition("@")[2], parts.path.strip("/")
    if not host or not _NAME.fullmatch(name):
        raise InvalidError(
            f"cannot find the chart {shown(address)}: no registry has such an address; write"
            " oci://HOST/PATH in lower case"
        )
    return _ALIASES.get(host, host), name
