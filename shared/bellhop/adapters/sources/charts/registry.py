"""Charts in OCI registries, where each chart is a repository whose tags are its versions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin

import msgspec

from bellhop.adapters.egress.answer import Answer
from bellhop.adapters.egress.download import origin, shown
from bellhop.adapters.egress.registry import MANIFEST, OciRepository, is_tag, layers, split
from bellhop.adapters.egress.source_client import Limits
from bellhop.adapters.sources.charts.client import ChartClient, Descriptor
from bellhop.adapters.sources.charts.versions import choose, is_exact, newest_first
from bellhop.core.address_policy import AddressPolicy
from bellhop.core.structs import decode_struct
from bellhop.errors import InvalidError, TooLargeError, UnreachableError
from bellhop.state.chart import Login

MOST_PAGES = 50
MOST_TAGS = 50_000
MOST_SECONDS = 120.0
"""For all pages of tags."""

TAGS = Limits(4 << 20, 30.0)
ARCHIVE = Limits(32 << 20, 120.0)

_CHART_TYPE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_NEXT = re.compile(r'<([^<>]+)>\s*;\s*rel="?next"?', re.IGNORECASE)


class Registry:
    """A chart at an address of its own in a registry."""

    def __init__(self, address: str, login: Login, reach: AddressPolicy) -> None:
        host, name = split(address, "chart")
        self._chart = name.rpartition("/")[2]
        self._of = f"chart {self._chart!r} in {shown(address)}"
        self._task = f"cannot find {self._of}"
        self._repository = OciRepository(ChartClient(self._task, login, reach), host, name)
        self._base = self._repository.base

    def versions(self) -> Sequence[str]:
        return newest_first(each.replace("_", "+") for each in self._tags())

    def find(self, version: str) -> Descriptor:
        """Return the archive of a version or range; an exact version needs no list of tags."""
        if is_exact(version):
            answer = self._get(version.strip())
            if answer.status != HTTPStatus.NOT_FOUND:
                return self._descriptor(version.strip(), answer)
        chosen = choose(self.versions(), version, of=self._of)
        return self._descriptor(chosen, self._get(chosen))

    def fetch(self, found: Descriptor) -> bytes:
        """Download an archive.

        Raises:
            InvalidError: its digest is not that of the manifest.
        """
        return self._repository.blob(found.digest, ARCHIVE, "archive")

    def _get(self, version: str) -> Answer:
        return self._repository.get(self._manifest(version), MANIFEST)

    def _manifest(self, version: str) -> str:
        tag = version.replace("+", "_")
        if not is_tag(tag):
            raise InvalidError(f"{self._task}: {version!r} is not a version")
        return self._repository.manifest_url(tag)

    def _descriptor(self, version: str, answer: Answer) -> Descriptor:
        for layer in layers(self._repository.manifest(answer, self._manifest(version))):
            if layer.get("mediaType") == _CHART_TYPE:
                return self._layer(version, layer)
        raise InvalidError(
            f"{self._task}: version {version!r} is not a Helm chart; check the address"
        )

    def _layer(self, version: str, layer: Mapping[str, Any]) -> Descriptor:
        digest, size = self._repository.digest(layer, "chart"), layer.get("size")
        if isinstance(size, int) and size > ARCHIVE.largest:
            raise TooLargeError(
                f"{self._task}: the archive has more than {ARCHIVE.largest >> 20} MiB"
            )
        return Descriptor(self._chart, version, self._repository.blob_url(digest), digest)

    def _tags(self) -> Iterator[str]:
        """Yield all tags, page by page."""
        url, until = f"{self._base}/tags/list?n=1000", time.monotonic() + MOST_SECONDS
        left = MOST_TAGS
        for _ in range(MOST_PAGES):
            answer = self._repository.success(self._repository.get(url, TAGS), url)
            for tag in _tags_of(answer.data):
                left -= 1
                if left < 0:
                    raise self._too_many(f"{MOST_TAGS:,} tags")
                yield tag
            following = _NEXT.search(answer.headers.get("link", ""))
            if not following:
                return
            url = urljoin(url, following[1])
            if origin(url) != origin(self._base):
                self._repository.refuse("the next page of its tags is on another server")
            if time.monotonic() > until:
                raise UnreachableError(
                    f"{self._task}: listing its tags took longer than {MOST_SECONDS:.0f} s;"
                    " name an exact version"
                )
        raise self._too_many(f"{MOST_PAGES} pages")

    def _too_many(self, most: str) -> TooLargeError:
        return TooLargeError(
            f"{self._task}: its list of tags has more than {most}; name an exact version"
        )


class _Page(msgspec.Struct, frozen=True):
    """A page of tags, of which nothing else is built."""

    tags: list[str] | None = None


def _tags_of(page: bytes) -> Sequence[str]:
    """Return the tags of a page; none if it is no such page."""
    try:
        return decode_struct(page, _Page).tags or ()
    except (msgspec.DecodeError, RecursionError):
        return ()
