"""Reads the files of add-ons that no ConfigMap or Secret holds: artifacts of Flux, and URLs.

A profile reads of a Flux source the object in `mgmt/mgmt`, and of a URL the digest of its
contents. When either changes, the profile is deployed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from bellhop.deploy.frozen_sources import FoundSource, FrozenSources
from bellhop.errors import (
    DeniedError,
    MissingError,
    SourceUnavailableError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.ports.kube import Access
from bellhop.ports.tools import Downloaded, Files
from bellhop.profiles.names import NameReservations
from bellhop.rendering.inputs import MissingInputError, entries_of
from bellhop.rendering.references import place_readings
from bellhop.rendering.templates import RenderContext
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.content import (
    REMOTE,
    Address,
    Content,
    Reading,
    Remote,
    artifact_of,
    ref_name,
    shown_url,
)
from bellhop.state.profile import Profile
from bellhop.state.records import Records

if TYPE_CHECKING:
    from bellhop.documents.tarball import Folder

_KEYS = ("token", "username", "password", "caFile")


@contextmanager
def not_of_cluster(doing: str = "") -> Iterator[None]:
    """Have what others answer not count as what the cluster answers that is applied to.

    That one is not to be taken for away, nor its credentials for refused.

    Raises:
        DeniedError, SourceUnavailableError: they refuse credentials, or do not answer.
    """
    try:
        yield
    except UnauthorizedError as error:
        raise DeniedError(f"{doing}{error}") from error
    except UnreachableError as error:
        raise SourceUnavailableError(f"{doing}{error}", delay=error.delay) from error


def pack_folder(files: Folder) -> bytes:
    """Return files as one text, to be stored."""
    return msgspec.msgpack.encode(dict(files))


def unpack_folder(content: bytes) -> Folder:
    """Return the files that `pack_folder` packed."""
    return msgspec.msgpack.decode(content, type=dict[str, bytes])


class Found(NamedTuple):
    """Files at one revision; `annotations` are those of their Flux source, which is the `ref`."""

    ref: str
    revision: str
    files: Folder
    annotations: Mapping[str, str]


class _AbsentError(MissingInputError):
    """A source does not exist; its reader knows whether it is optional."""


class FilesReader:
    """Reads files for profiles; without a port it says what is missing."""

    def __init__(
        self,
        records: Records,
        access: Access,
        names: NameReservations,
        files: Files | None,
    ) -> None:
        self._records = records
        self._access = access
        self._names = names
        self._files = files
        self.frozen = FrozenSources(records)

    def freeze(
        self, profile: Profile, reading: Reading, read: Callable[[], Mapping[str, Any] | None]
    ) -> Mapping[str, Any] | None:
        """Return what is read of the source of files as the release of a promotion has it.

        `read` reads the source as it is now. One that is missing is None, and read each time.

        Raises:
            BellhopError: it cannot be read, or downloaded, and no deployment of the release did.
        """

        def find() -> FoundSource:
            source = read()
            if source is None:
                raise _AbsentError(f"there is no {reading.kind} '{reading.name}'")
            mark = source.get("digest") or artifact_of(source)[1]
            described = {"digest": mark, "source": source}
            return FoundSource(described, lambda: self._fetch(reading, source))

        name = ref_name(reading.kind, reading.namespace, reading.name)
        try:
            pin = self.frozen.pin(profile, shown_url(name) if reading.address else name, find)
        except MissingInputError as error:
            if reading.optional or isinstance(error, _AbsentError):
                return None
            raise
        found: Mapping[str, Any] = pin["source"]
        return found

    def _fetch(self, reading: Reading, source: Mapping[str, Any]) -> bytes:
        if reading.address:
            return pack_folder(self._download(reading.address).files)
        ref = ref_name(reading.kind, reading.namespace, reading.name)
        return pack_folder(self._download_artifact(ref, source))

    def revision(self, reading: Reading) -> dict[str, Any] | None:
        """Return what is read of a URL: its digest; None if nothing is there and it is optional.

        Raises:
            PermanentError: it cannot be downloaded.
            TemporaryError: it cannot be downloaded now.
        """
        assert reading.address
        try:
            found = self._download(reading.address)
        except MissingError:
            if reading.optional:
                return None
            raise
        return {"kind": REMOTE, "url": reading.name, "digest": found.digest}

    def read(self, profile: Profile, content: Content, context: RenderContext) -> Found | None:
        """Return the files of a content for a cluster; None if they are optional and not there.

        Raises:
            PermanentError: they cannot be downloaded.
            TemporaryError: they cannot be downloaded now.
        """
        assert content.files
        field = content.files.field
        readings = [each for each in profile.reads if each.field == field]
        reading = next(iter(place_readings(readings, context.cluster, context.limits)), None)
        source = context.resources.get(field)
        if reading is None or source is None:
            return None
        ref = ref_name(reading.kind, reading.namespace, reading.name)
        if reading.address and profile.rollout.promotion:
            mark = source["digest"]
            return Found(ref, mark, unpack_folder(self.frozen.content(profile, mark)), {})
        if reading.address:
            digest, files = self._download(reading.address)
            return Found(ref, digest, files, {})
        return self.artifact(ref, source, profile)

    def artifact(self, ref: str, source: Mapping[str, Any], profile: Profile) -> Found:
        """Return what a Flux source has fetched, or had fetched for a release of a promotion.

        Raises:
            PermanentError: it cannot be downloaded, or Flux has not fetched anything.
            TemporaryError: it cannot be downloaded now.
        """
        digest = artifact_of(source)[1]
        if digest and profile.rollout.promotion:
            files = unpack_folder(self.frozen.content(profile, digest))
        else:
            files = self._download_artifact(ref, source)
        annotations = (source.get("metadata") or {}).get("annotations") or {}
        return Found(ref, digest, files, annotations)

    def _download_artifact(self, ref: str, source: Mapping[str, Any]) -> Folder:
        url, digest = artifact_of(source)
        if not url or not digest:
            raise MissingInputError(
                f"cannot read {ref}: Flux has no artifact of it yet; see its status in cluster"
                f" '{MANAGEMENT}'"
            )
        kept = self._records.clusters.get(MANAGEMENT)
        if kept is None:
            raise MissingInputError(
                f"cannot read {ref}: no cluster is registered as '{MANAGEMENT}'; register the one"
                " where Flux runs by that name"
            )
        with not_of_cluster(f"cannot read {ref}: "):
            # Who may read a source may have what it says: accounts need no right to call Flux.
            kube = self._access.open(MANAGEMENT, version=kept.value.credentials)
            return self._port().artifact(kube, url, digest)

    def _download(self, address: Address) -> Downloaded:
        place = Remote(
            address.url,
            address.seconds,
            insecure=address.insecure,
            plain=address.plain,
            **self._login(address),
        )
        with not_of_cluster():
            return self._port().remote(place)

    def _login(self, address: Address) -> dict[str, str]:
        """Return the credentials of a Secret, by the keys that Sveltos has."""
        if not address.secret:
            return {}
        where = f"{address.namespace}/{address.secret}"
        holder = self._names.holder("Secret", address.namespace, address.secret)
        if holder is None:
            raise MissingInputError(
                f"cannot find Secret '{where}' that remoteURL.secretRef names; apply it"
            )
        entries = entries_of(holder, "remoteURL.secretRef")
        token, username, password, authority = (entries.get(key, "").strip() for key in _KEYS)
        return {
            "token": token,
            "username": username,
            "password": password,
            "authority": authority,
        }

    def _port(self) -> Files:
        if self._files is None:
            raise MissingError("cannot download files: nothing here can")
        return self._files
