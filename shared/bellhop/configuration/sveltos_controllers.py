"""Controllers of Sveltos in a cluster: with Bellhop beside them two would write the same objects.

The names are those of Sveltos' Helm chart. All controllers are programs of one name, `manager`, by
which an API server notes their writes; one of a shard, or of another namespace, is found by these.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from bellhop.configuration.definitions import DEFINITIONS
from bellhop.core.gvk import GVK
from bellhop.ports.kube import Kube, Manifest

RECENT = timedelta(minutes=10)
"""A status that was written in this time has a controller that runs."""

_NAMESPACE = "projectsveltos"
_NAMES = (
    "access-manager",
    "addon-controller",
    "classifier-manager",
    "event-manager",
    "hc-manager",
    "sc-manager",
    "shard-controller",
)
_MANAGER = "manager"
_DEPLOYMENT = GVK("apps", "v1", "Deployment")
_PAGE = 500


def find_controller(kube: Kube, now: datetime) -> str:
    """Return a clause that says by what controllers of Sveltos are known to run; empty for none.

    Raises:
        DeniedError: the credentials may not read Deployments, or objects of Sveltos' kinds.
        TemporaryError: the cluster does not answer.
    """
    for name in _NAMES:
        found = kube.get(_DEPLOYMENT, _NAMESPACE, name)
        if found and (found.get("status") or {}).get("readyReplicas"):
            return f"the Deployment '{_NAMESPACE}/{name}' has pods that are ready"
    since = now + (kube.skew or timedelta(0)) - RECENT
    for each in DEFINITIONS:
        gvk = GVK.parse(each.api_version, each.kind)
        if not each.status or not kube.resource(gvk):
            continue
        for manifest in _list(kube, gvk):
            if _has_recent_status(manifest, since):
                name = manifest["metadata"]["name"]
                return f"the status of {each.kind} '{name}' was written within ten minutes"
    return ""


def _list(kube: Kube, gvk: GVK) -> Iterator[Manifest]:
    after = ""
    while True:
        page = kube.page(gvk, limit=_PAGE, after=after)
        yield from page.items
        if not page.after:
            return
        after = page.after


def _has_recent_status(manifest: Manifest, since: datetime) -> bool:
    return any(
        each.get("manager") == _MANAGER
        and "f:status" in (each.get("fieldsV1") or {})
        and datetime.fromisoformat(each["time"]) > since
        for each in manifest["metadata"].get("managedFields") or ()
        if each.get("time")
    )
