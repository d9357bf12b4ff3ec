"""Reads what is there of a release before Helm deploys it.

Helm runs a chart's install hooks in an installation only. One that failed is therefore installed
again, over the objects that it left: an upgrade would succeed although no hook ever did.
"""

from __future__ import annotations

from contextlib import suppress

from bellhop.core.gvk import GVK
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.charts.definitions import define
from bellhop.deploy.features.charts.inputs import open_cluster
from bellhop.deploy.features.charts.ownership import remove_part
from bellhop.deploy.features.charts.release_objects import objects_in
from bellhop.deploy.release_records import newest_revision
from bellhop.errors import ConflictError, TemporaryError
from bellhop.ports.access import Access
from bellhop.ports.charts import Helm, Release, Wanted
from bellhop.rendering.charts.releases import Desired
from bellhop.settings import Settings
from bellhop.state.records import Records

_SECRET = GVK("", "v1", "Secret")


class Preflight:
    """Reads releases, and prepares those that are installed again."""

    def __init__(self, access: Access, settings: Settings) -> None:
        self._access = access
        self._settings = settings

    def find(self, helm: Helm, kubeconfig: bytes, wanted: Desired) -> Release | None:
        """Return the release that is there, and refuse one that no profile made.

        It may have taken the place of one that a profile had made.

        Raises:
            ConflictError: it is such a one, and nobody asked to take it over.
        """
        key = wanted.key
        found = helm.charts.release(kubeconfig, key.namespace, key.name)
        if found is None or found.status == "uninstalled":
            return None
        asked = wanted.chart.install.take_ownership or wanted.chart.upgrade.take_ownership
        if found.ours or asked or self._settings.adopt == "always":
            return found
        raise ConflictError(
            f"cannot deploy the release '{key.namespace}/{key.name}': it already exists, from"
            f" {found.chart} {found.version}, and no profile made it; to take it over, set"
            f" options.installOptions.takeOwnership in {wanted.ref}"
        )

    def check(
        self, work: ReconcileContext, helm: Helm, kubeconfig: bytes, wanted: Desired
    ) -> Release | None:
        """Do as `find`, which calls Helm, where the release is not simply ours and deployed.

        One that is has no chart and version in the answer.
        """
        key = wanted.key
        newest = newest_revision(open_cluster(self._access, work), key.namespace, key.name)
        if newest and not newest.is_deployed:
            return self.find(helm, kubeconfig, wanted)
        if newest is None:
            return None
        return Release(
            key.name, key.namespace, newest.number, newest.status, chart="", version="", ours=True
        )

    def clear(
        self,
        work: ReconcileContext,
        helm: Helm,
        kubeconfig: bytes,
        wanted: Wanted,
        found: Release | None,
    ) -> None:
        """Delete what failed installations left and the next one does not write.

        These are objects that the chart has no longer, and all of Helm's records but the newest:
        Helm limits their number in upgrades only.
        """
        if found is None or not found.failures:
            return
        kube, namespace = open_cluster(self._access, work), found.namespace
        left = helm.charts.manifest(kubeconfig, namespace, found.name)
        next_one = helm.charts.rehearse(kubeconfig, wanted)
        wants = {key.identity for key, _ in objects_in(next_one, namespace, kube.resource)}
        for key, _ in objects_in(left, namespace, kube.resource):
            if key.identity not in wants:
                remove_part(kube, key, place=f"{namespace}/{found.name}")
        for revision in range(found.revision - found.failures + 1, found.revision):
            kube.remove(_SECRET, namespace, f"sh.helm.release.v1.{found.name}.v{revision}")

    def define(self, work: ReconcileContext, helm: Helm, wanted: Wanted) -> bool:
        """Apply the definitions that a chart brings, where that is asked; say if any changed.

        A release that is new gets them by Helm itself.
        """
        if not wanted.options.upgrade_crds or not wanted.there:
            return False
        return define(open_cluster(self._access, work), helm, wanted)


def leaves(records: Records, work: ReconcileContext) -> bool:
    """Say whether a profile is to leave its cluster by now: no release of it is waited for."""
    profile = work.profile
    with suppress(TemporaryError):
        head = records.profiles.head(profile.trigger, profile.cluster, profile.name)
        return head is None or work.cluster.key not in head.value.destinations
    return False
