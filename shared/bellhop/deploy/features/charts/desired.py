"""Which releases a profile wants in a cluster: rendered for it, and allowed there."""

from __future__ import annotations

from msgspec.structs import replace

from bellhop.catalog.catalog import cluster_object
from bellhop.core.digest import digest
from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.references import TEMPLATES, Resources
from bellhop.errors import InvalidError
from bellhop.gotemplate import Limits
from bellhop.rendering.allow_limits import refuse_placed
from bellhop.rendering.charts.releases import Desired, desired


class DesiredState:
    """What profiles want of charts."""

    def __init__(self, resources: Resources, limits: Limits) -> None:
        self._resources = resources
        self._limits = limits

    def of(self, work: ReconcileContext) -> tuple[Desired, ...]:
        """Return the releases for a cluster, in the order of their charts.

        Raises:
            PermanentError: one cannot be rendered, may not be deployed, or is wanted twice.
        """
        charts = [
            each for each in work.profile.contents if each.chart and each.is_for(work.cluster)
        ]
        if not charts or work.only_hosts:
            return ()
        given = self._resources.reader(work.profile, TEMPLATES, "helmCharts")(work.cluster)
        root = cluster_object(work.cluster)
        found: dict[Identity, Desired] = {}
        for content in charts:
            one = desired(content, root, given, self._limits)
            if allow := work.profile.allow:
                # Helm checks the objects of a chart, so another annotation has it asked again.
                one = replace(one, digest=digest([one.digest, allow]))
            if one.key in found:
                raise InvalidError(
                    f"cannot deploy the release '{one.key.namespace}/{one.key.name}': "
                    f"{found[one.key].ref} and {one.ref} of one profile want it; give one of them"
                    " another releaseName",
                    where=one.ref,
                )
            found[one.key] = one
        refuse_placed(work.profile, (key.at("v1") for key in found))
        return tuple(found.values())
