"""API servers: how to open a registered cluster, and the client of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from bellhop.core.gvk import GVK, ObjectKey, Resource


class Access(Protocol):
    """Clients for registered clusters."""

    def open(self, cluster: str, *, version: str = "", account: str = "") -> Kube:
        """Return a client for the cluster `namespace/name`; clients are shared between threads.

        `version` is that of the credentials, as the cluster's record has it: a client of other
        credentials is closed. Without it a change of credentials is noticed later. With an
        `account`, a service account `namespace/name`, requests about objects have its rights only;
        they are denied if Bellhop may not impersonate it.

        Raises:
            MissingError: the cluster has no stored credentials.
            InvalidError: what is stored cannot be used, or leads where no call may go.
        """
        ...

    def kubeconfig(self, cluster: str, *, version: str = "", account: str = "") -> bytes:
        """Return how another program gets into a cluster, as `open` would: JSON, and secret.

        That program's calls need the guard of our own.

        Raises:
            MissingError: the cluster has no stored credentials.
            InvalidError: what is stored cannot be used, or leads where no call may go.
        """
        ...


Manifest = dict[str, Any]
"""A Kubernetes object as JSON; integers are int, as in Go's unstructured int64."""


Check = tuple[str, ...]
"""A right to ask for: verb, group, resource, subresource, namespace and, if it is one, object."""


class Unread(NamedTuple):
    """An object that is there and is not read: it is larger, or nested deeper, than is taken."""

    key: ObjectKey
    why: str

    def __str__(self) -> str:
        place = "/".join(filter(None, self.key[1:]))
        return f"{self.key.gvk.kind} '{place}' is left out: {self.why}"


class Page(NamedTuple):
    """A part of a list; `after` asks for the next one and is empty on the last.

    `size` says how many bytes of JSON it came in.
    """

    items: Sequence[Manifest]
    after: str = ""
    unread: Sequence[Unread] = ()
    size: int = 0


class Kube(Protocol):
    """Objects of one cluster.

    An object is its group, kind, namespace and name: every version that is served shows the same
    one. `get`, `merge` and `remove` therefore take any version, also one that is no longer served.

    Every method raises DeniedError (401, 403), UnreachableError (no answer, 5xx, or one that goes
    on and on), ThrottledError (429), and names the cluster and the object.
    """

    @property
    def skew(self) -> timedelta | None:
        """Say how far the API server's clock is ahead of ours, by its latest answer.

        None if it has not answered yet, or does not report the time; precise to a second or two.
        """
        ...

    @property
    def ends_at(self) -> datetime | None:
        """Say when our credentials end, as far as they say so themselves."""
        ...

    def version(self) -> str:
        """Read the API server's version, such as `v1.31.2`; `unknown` if it says something else."""
        ...

    def issuer(self) -> tuple[str, Manifest]:
        """Read who makes the tokens of its service accounts, and the key set that they fit."""
        ...

    def proxied(self, namespace: str, service: str, path: str) -> bytes:
        """Download a file from a Service by the API server's proxy.

        `service` is its name, or `SCHEME:NAME:PORT`; `path` begins without a slash.

        Raises:
            MissingError: there is no such Service, or no such file.
            TooLargeError: it has more bytes than are taken.
        """
        ...

    def resource(self, gvk: GVK) -> Resource | None:
        """Find the resource that serves a kind in just this version; None if there is none."""
        ...

    def served(self, group: str, kind: str) -> Resource | None:
        """Find the resource of a kind in the version that the cluster prefers.

        None if no version is served: with its definition went every object of the kind.
        """
        ...

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        """Name the versions in which a kind is served, the preferred one first."""
        ...

    def get(self, gvk: GVK, namespace: str, name: str) -> Manifest | None:
        """Read one object; None only if the API server says that this very object is not there.

        It comes in the version that is asked for, or in a served one where that is not served.

        Raises:
            MissingError: the cluster does not know the kind in any version.
            TooLargeError: it is larger, or nested deeper, than is taken.
        """
        ...

    def page(
        self, gvk: GVK, *, limit: int, after: str = "", namespace: str = "", labels: str = ""
    ) -> Page:
        """Read at most `limit` objects of a kind, with apiVersion and kind filled in.

        Pages that follow each other show one state of the list. There may be fewer objects than
        asked for, or none, on a page that is not the last: only an empty `after` ends a list.
        An object that is too large or nested too deep is only named in `unread`.

        Raises:
            MissingError: the cluster does not know the kind in this version.
            StaleError: that state is too old to be read on; begin again, without `after`.
            TooLargeError: a single object is too large, and the cluster does not report its name.
        """
        ...

    def list(self, gvk: GVK, *, namespace: str = "", labels: str = "") -> Iterator[Manifest]:
        """Yield the objects of a kind page by page; an object that changed may come twice.

        Raises:
            MissingError: the cluster does not know the kind in this version.
            StaleError: the list changes faster than it can be read.
            TooLargeError: an object is larger, or nested deeper, than is taken.
        """
        ...

    def apply(
        self,
        manifest: Manifest,
        *,
        uid: str | None = None,
        version: str = "",
        dry_run: bool = False,
    ) -> Manifest:
        """Apply one object by server-side apply as field manager `bellhop`, taking over fields.

        With a `uid` only the object with that uid is written, and with an empty one only a new
        object; without one any object of that name. With a `version` the object must have that
        one, too. Return the object as stored (or as a dry run would store it), with its
        `metadata.uid`.

        Raises:
            StaleError: something else is there than `uid` and `version` say, or nothing; nothing
                was written.
            MissingError: the cluster does not know the kind, or the namespace is not there.
            InvalidError: the API server refuses the object, in its words.
        """
        ...

    def merge_status(self, manifest: Manifest, *, uid: str) -> None:
        """Merge the status in a manifest into that of the object with a `uid`.

        Nothing else of the manifest is written: `apply` writes all but that.

        Raises:
            StaleError: another life of the object is there than `uid` says, or none.
            MissingError: the cluster does not know the kind.
            InvalidError: the kind has no status of its own, or the API server refuses this one.
        """
        ...

    def apply_status(self, manifest: Manifest, *, uid: str) -> None:
        """Apply the status in a manifest to the object with a `uid`, and nothing else of it.

        Fields that were applied before and not now are deleted, those of others stay.

        Raises:
            StaleError: another life of the object is there than `uid` says, or none.
            MissingError: the cluster does not know the kind.
            InvalidError: the kind has no status of its own, or the API server refuses this one.
        """
        ...

    def merge(self, gvk: GVK, namespace: str, name: str, patch: Manifest) -> bool:
        """Merge a patch into one object, in which None takes a field away; say if it was there.

        Raises:
            StaleError: it has another resourceVersion than the patch's metadata names.
            MissingError: the cluster does not know the kind in any version.
            InvalidError: the API server refuses what would become of it, in its words.
        """
        ...

    def rights(self, checks: Sequence[Check]) -> Sequence[Check]:
        """Return those rights that are missing, of who asks; an empty namespace means all."""
        ...

    def remove(self, gvk: GVK, namespace: str, name: str, *, uid: str = "") -> Manifest | None:
        """Delete one object (only if it still has `uid`, where given); return what is left of it.

        None says that there is nothing of ours: no such object, no such kind in any version, or
        an object of that name with another uid, which stays. An empty manifest says that it is
        deleted; any other is that of an object which finalizers or a grace period keep.
        """
        ...
