"""Files of add-ons that no ConfigMap holds: what a URL serves, and the artifacts of Flux."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from bellhop.ports.kube import Kube
from bellhop.state.remote_url import Remote

if TYPE_CHECKING:
    from bellhop.documents.tarball import Folder


class Downloaded(NamedTuple):
    """Files, and the SHA-256 of what was downloaded, in hexadecimal."""

    digest: str
    files: Folder


class Files(Protocol):
    """Downloads files; it is shared between threads.

    Every method raises MissingError where there is nothing at an address, UnauthorizedError and
    DeniedError where credentials or rights are missing, InvalidError for an address that may not be
    called or files that cannot be read, TooLargeError for what is larger than is taken, and
    UnreachableError where nobody answers, or not in time. No error quotes what was downloaded.
    """

    def remote(self, place: Remote) -> Downloaded:
        """Return the files at a URL, downloaded at most `place.seconds` ago.

        A tar.gz, or a tar in a registry, is unpacked; anything else is one file.
        """
        ...

    def artifact(self, kube: Kube, url: str, digest: str) -> Folder:
        """Return the files of an artifact, a tar.gz whose digest `sha256:HEX` is checked.

        A URL of a Service in a cluster is called through that cluster's API server: `kube`.
        """
        ...
