"""The desired releases of a profile in a cluster: rendered for it, and allowed there."""

from __future__ import annotations

from collections.abc import Callable

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
from bellhop.rendering.templates import RenderContext
from bellhop.state.chart import Place
from bellhop.state.profile import Profile


class DesiredState:
    """Desired releases of profiles."""

    def __init__(
        self, resources: Resources, limits: Limits, pin: Callable[[Place, Profile], str]
    ) -> None:
        """Render releases; `pin` returns the digest of a chart that a promotion has frozen."""
        self._resources = resources
        self._limits = limits
        self._pin = pin

    def render(self, context: ReconcileContext) -> tuple[Desired, ...]:
        """Return the releases for a cluster, in the order of their charts.

        Raises:
            PermanentError: one cannot be rendered, may not be deployed, or is desired twice.
        """
        charts = [
            each for each in context.profile.contents if each.chart and each.is_for(context.cluster)
        ]
        if not charts or context.only_hosts:
            return ()
        given = self._resources.reader(context.profile, TEMPLATES, "helmCharts")(context.cluster)
        there = RenderContext(cluster_object(context.cluster), self._limits, given)
        found: dict[Identity, Desired] = {}
        for content in charts:
            one = desired(content, there)
            if mark := self._pin(one.place, context.profile):
                one = replace(one, digest=digest([one.digest, mark]))
            if allow := context.profile.allow:
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
        refuse_placed(context.profile, (key.at("v1") for key in found))
        return tuple(found.values())
