"""One Kubernetes cluster, as far as Bellhop talks to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Protocol

from bellhop.model.gvk import GVK, Resource

Manifest = dict[str, Any]
"""A Kubernetes object as JSON; integers are int, as in Go's unstructured int64."""


class Kube(Protocol):
    """Objects of one cluster.

    Every method raises DeniedError (401, 403), UnreachableError (no answer, 5xx), ThrottledError
    (429), and names the cluster and the object.
    """

    @property
    def skew(self) -> timedelta | None:
        """Say how far the API server's clock is ahead of ours, by its latest answer.

        None if it has not answered yet, or does not tell the time; precise to a second or two.
        """
        ...

    def resource(self, gvk: GVK) -> Resource | None:
        """Find the resource that serves a kind; None if the cluster does not know the kind."""
        ...

    def get(self, gvk: GVK, namespace: str, name: str) -> Manifest | None:
        """Read one object; None only if the API server says that this very object is not there.

        Raises:
            MissingError: the cluster does not know the kind.
        """
        ...

    def list(self, gvk: GVK, *, namespace: str = "", labels: str = "") -> Iterator[Manifest]:
        """Yield the objects of a kind in pages, with apiVersion and kind filled in.

        Raises:
            MissingError: the cluster does not know the kind.
        """
        ...

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Apply one object by server-side apply as field manager `bellhop`, taking over fields.

        Raises:
            MissingError: the cluster does not know the kind, or the namespace is not there.
            InvalidError: the API server refuses the object, in its words.
        """
        ...

    def remove(self, gvk: GVK, namespace: str, name: str, *, uid: str = "") -> bool:
        """Delete one object (only if it still has `uid`, where given); say if it was there."""
        ...
