"""Tools that deploy features of profiles, beside API servers: as many as a process has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bellhop.ports.charts import Helm
from bellhop.ports.kube import Kube
from bellhop.state.content import Remote

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


class Kustomizations(Protocol):
    """Builds kustomizations, of nothing but the files of their folder."""

    def build(
        self,
        folder: Folder,
        path: str = "",
        *,
        components: Sequence[str] = (),
        namespace: str = "",
    ) -> str:
        """Return all objects of the kustomization at a path of a folder, as YAML.

        Args:
            folder: the files, as `bellhop.documents.tarball.unpack` returns them.
            path: the folder of the kustomization; the topmost one if it is empty.
            components: more components, by paths from there, after its own.
            namespace: the namespace of its objects, instead of its own.

        Raises:
            InvalidError: the kustomization is wrong, or reads what is not in the folder.
            MissingError: there is no such path, or no program that builds it.
            TooLargeError: it takes more memory, or makes more output, than it may.
            TemporaryError: it takes longer than it may.
            TemporaryError: it cannot be run now.
        """
        ...


class Tools(NamedTuple):
    """Tools that deploy charts, build kustomizations and download files.

    A profile that needs a tool that the process does not have fails with a message.
    """

    helm: Helm | None = None
    kustomizations: Kustomizations | None = None
    files: Files | None = None


NONE = Tools()
