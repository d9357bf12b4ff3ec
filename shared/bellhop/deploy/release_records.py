"""Reads Helm's own records of a release by the API of its cluster, which takes no process.

Helm keeps a Secret for each revision, and writes what is asked here into its labels. Revisions that
a later one replaced are `superseded`: of a release with ten of them one Secret is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bellhop.core.gvk import GVK, Identity
from bellhop.errors import PermanentError
from bellhop.ports.charts import DEPLOYED, OUR_LABEL
from bellhop.ports.kube import Kube
from bellhop.state.chart import release_key
from bellhop.state.deployment import Held

_SECRET = GVK("", "v1", "Secret")
_FAILED = "failed"


class Revision(NamedTuple):
    """A revision of a release; `ours` is one that was deployed through the port `Charts`."""

    number: int
    status: str
    ours: bool

    @property
    def is_deployed(self) -> bool:
        """Say whether the revision is ours, and its operation succeeded."""
        return self.ours and self.status == DEPLOYED


def newest_revision(kube: Kube, namespace: str, name: str) -> Revision | None:
    """Return the newest revision of a release; None if Helm has no record of it.

    Raises:
        DeniedError: the Secrets of the namespace may not be listed.
    """
    return max(_revisions(kube, namespace, name), default=None)


def is_superseded(kube: Kube, held: Mapping[Identity, Held], place: str) -> bool:
    """Say whether another Helm made a revision of the release at a place, as by a rollback.

    It writes the same fields by the same name, so the objects do not show it. A revision that
    failed counts as none: the one of before is deployed still. False where it is unknown.
    """
    namespace, _, name = place.partition("/")
    known = held.get(release_key(namespace, name))
    if known is None or known.release is None or not known.digest:
        return False
    try:
        found = _revisions(kube, namespace, name)
    except PermanentError:
        return False
    return any(each.number > known.release.revision and each.status != _FAILED for each in found)


def _revisions(kube: Kube, namespace: str, name: str) -> list[Revision]:
    selector = f"owner=helm,name={name},status!=superseded"
    found = kube.list(_SECRET, namespace=namespace, labels=selector)
    records = [each["metadata"].get("labels") or {} for each in found]
    return [
        Revision(
            int(each["version"]),
            str(each.get("status")),
            ours=OUR_LABEL.items() <= each.items(),
        )
        for each in records
        if str(each.get("version")).isdecimal()
    ]
