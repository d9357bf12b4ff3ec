"""Kustomizations in folders of users, built into objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bellhop.documents.tarball import Folder


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
