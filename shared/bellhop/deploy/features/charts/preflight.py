"""Reads and prepares a cluster before Helm deploys a release.

Helm runs a chart's install hooks in an installation only. One that failed is therefore installed
again, over the objects that it left: an upgrade would succeed although no hook ever did.

Helm installs the definitions that a chart contains, and changes none of them: this applies them. An
API server publishes a changed schema some seconds later, and Helm checks objects by what is
published. So what Helm refuses right after a change of definitions is tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.charts.inputs import open_cluster
from bellhop.deploy.features.charts.ownership import remove_part
from bellhop.deploy.features.charts.release_objects import documents, objects_in
from bellhop.deploy.release_records import newest_revision
from bellhop.errors import ConflictError, InvalidError, TemporaryError
from bellhop.ports.charts import DesiredRelease, Helm, Release
from bellhop.ports.kube import Access, Kube
from bellhop.rendering.charts.releases import Desired
from bellhop.settings import Settings
from bellhop.state.records import Records

_DEFINITION = "CustomResourceDefinition"
_SOON = timedelta(seconds=3)


def define(kube: Kube, helm: Helm, request: DesiredRelease) -> bool:
    """Apply the definitions of a chart; return whether that changed any of them."""
    changed = False
    for each in documents(helm.charts.definitions(request)):
        if each["kind"] == _DEFINITION:
            before = kube.get(*ObjectKey.of(each)) or {"metadata": {}}
            now = kube.apply(each)
            versions = [there["metadata"].get("resourceVersion") for there in (before, now)]
            changed = changed or versions[0] != versions[1]
    return changed


@contextmanager
def settling(*, changed: bool) -> Iterator[None]:
    """Have a refusal tried again soon if definitions were just changed.

    Raises:
        TemporaryError: in place of an InvalidError.
    """
    try:
        yield
    except InvalidError as error:
        if not changed:
            raise
        raise TemporaryError(
            f"{error}; it is tried again, since the definitions of the chart were just changed",
            delay=_SOON,
        ) from error


_SECRET = GVK("", "v1", "Secret")


class Preflight:
    """Reads releases, and prepares those that are installed again."""

    def __init__(self, access: Access, settings: Settings) -> None:
        self._access = access
        self._settings = settings

    def find(
        self, context: ReconcileContext, helm: Helm, kubeconfig: bytes, desired: Desired
    ) -> Release | None:
        """Return the release that is there, and refuse one that no profile made.

        It may have taken the place of one that a profile had made.

        Raises:
            ConflictError: it is such a one, and nobody asked to take it over.
        """
        key = desired.key
        found = helm.charts.release(kubeconfig, key.namespace, key.name)
        if found is None or found.status == "uninstalled":
            return None
        asked = desired.chart.install.take_ownership or desired.chart.upgrade.take_ownership
        asked = asked or context.profile.adopts_sveltos or self._settings.adopt == "always"
        if found.ours or asked:
            return found
        raise ConflictError(
            f"cannot deploy the release '{key.namespace}/{key.name}': it already exists, from"
            f" {found.chart} {found.version}, and no profile made it; to take it over, set"
            f" options.installOptions.takeOwnership in {desired.ref}"
        )

    def check(
        self, context: ReconcileContext, helm: Helm, kubeconfig: bytes, desired: Desired
    ) -> Release | None:
        """Do as `find`, which calls Helm, where the release is not simply ours and deployed.

        One that is has no chart and version in the answer.
        """
        key = desired.key
        newest = newest_revision(open_cluster(self._access, context), key.namespace, key.name)
        if newest and not newest.is_deployed:
            return self.find(context, helm, kubeconfig, desired)
        if newest is None:
            return None
        return Release(
            key.name, key.namespace, newest.number, newest.status, chart="", version="", ours=True
        )

    def clear(
        self,
        context: ReconcileContext,
        helm: Helm,
        kubeconfig: bytes,
        desired: DesiredRelease,
        found: Release | None,
    ) -> None:
        """Delete what failed installations left and the next one does not write.

        These are objects that the chart has no longer, and all of Helm's records but the newest:
        Helm limits their number in upgrades only.
        """
        if found is None or not found.failures:
            return
        kube, namespace = open_cluster(self._access, context), found.namespace
        left = helm.charts.manifest(kubeconfig, namespace, found.name)
        next_one = helm.charts.dry_run(kubeconfig, desired)
        desired_keys = {key.identity for key, _ in objects_in(next_one, namespace, kube.resource)}
        for key, _ in objects_in(left, namespace, kube.resource):
            if key.identity not in desired_keys:
                remove_part(kube, key, place=f"{namespace}/{found.name}")
        for revision in range(found.revision - found.failures + 1, found.revision):
            kube.remove(_SECRET, namespace, f"sh.helm.release.v1.{found.name}.v{revision}")

    def define(self, context: ReconcileContext, helm: Helm, desired: DesiredRelease) -> bool:
        """Apply the definitions of a chart, if its options ask for it; say if any changed.

        A release that is new gets them by Helm itself.
        """
        if not desired.options.upgrade_crds or not desired.there:
            return False
        return define(open_cluster(self._access, context), helm, desired)


def leaves(records: Records, context: ReconcileContext) -> bool:
    """Say whether a profile is to leave its cluster by now: no release of it is waited for."""
    profile = context.profile
    with suppress(TemporaryError):
        head = records.profiles.head(profile.trigger, profile.cluster, profile.name)
        return head is None or context.cluster.key not in head.value.destinations
    return False
