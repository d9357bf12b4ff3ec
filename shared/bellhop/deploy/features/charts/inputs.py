"""Finds what Helm deploys a release from: the chart, its values, and how long it may take."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from bellhop.core.cache import Cached
from bellhop.core.digest import digest
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.charts.allow_limits import limited
from bellhop.deploy.features.charts.archives import Archives
from bellhop.deploy.features.charts.drift_exclusions import keeping
from bellhop.deploy.features.charts.hooks import UNKNOWN, hooks_of
from bellhop.deploy.features.charts.planning import place_of
from bellhop.errors import BellhopError, TemplateError, TooLargeError
from bellhop.ports.access import Access
from bellhop.ports.charts import Archive, Helm, Wanted
from bellhop.ports.kube import Kube
from bellhop.rendering.charts.releases import Desired
from bellhop.settings import Settings
from bellhop.state.chart import Options, Removal

T = TypeVar("T", Options, Removal)

_RENDERED_SECONDS = 3600.0
"""How long it is remembered that a chart was rendered with some values."""

_PART = 0.5
"""Of the time for which a worker may be silent Helm may wait so much for one release."""


class ReleaseInputs:
    """Reads charts, and limits what Helm may do with them."""

    def __init__(self, access: Access, settings: Settings, archives: Archives) -> None:
        self._access = access
        self._archives = archives
        self._rendered: Cached[frozenset[str]] = Cached(_RENDERED_SECONDS)
        self._patience = int(settings.visibility.total_seconds() * _PART)

    def find(
        self, work: ReconcileContext, helm: Helm, each: Desired, *, there: bool, again: bool = False
    ) -> tuple[Archive, Wanted]:
        """Find a chart, and return it with what Helm is to make of it.

        Raises:
            PermanentError: it is not there, or may not be read.
            TemporaryError: nobody tells now.
        """
        each.check_values()
        archive = self._archives.find(helm, each)
        wanted = Wanted(
            each.key.name,
            each.key.namespace,
            archive.path,
            each.values,
            self.bounded(each.chart.upgrade),
            self.bounded(each.chart.install),
            there=there and not again,
            again=again,
            patches=each.patches,
            labels=each.how.labels,
            annotations=each.how.annotations,
        )
        if work.profile.allow:
            wanted = limited(wanted, work.profile, open_cluster(self._access, work), helm)
        return archive, self._keep(work, each, wanted)

    def _keep(self, work: ReconcileContext, each: Desired, wanted: Wanted) -> Wanted:
        """Keep what others have decided of a release's objects."""
        excluded = each.how.excluded
        if not excluded or not wanted.there:
            return wanted
        kube, place = open_cluster(self._access, work), place_of(each.key)
        parts = [key.at(held.version) for key, held in work.held.items() if held.part_of == place]
        patches = keeping(excluded, filter(None, (kube.get(*key) for key in parts)))
        return replace(wanted, patches=(*wanted.patches, *patches))

    def bounded(self, how: T) -> T:
        """Return options whose time-out ends before the worker's lease does."""
        waits = 2 if isinstance(how, Options) and how.run_tests else 1
        return replace(how, timeout_seconds=min(how.timeout_seconds, self._patience // waits))

    def hooks(self, helm: Helm, archive: Archive, wanted: Wanted) -> frozenset[str]:
        """Render a chart without a cluster before Helm begins, and return its hooks.

        It is rendered once for the same values. Templates that loop would keep a worker until
        Helm's time is over; what only the names of releases make of them, Helm's own limits bound.
        A chart that renders only in a cluster may have any hooks.

        Raises:
            TemplateError: they take longer, or write more, than they may; so they would again.
        """
        # Templates may ask whether they are rendered for an upgrade.
        rendered = digest([archive.digest, wanted.there, *wanted.values])
        return self._rendered.get(rendered, lambda: _render(helm, wanted))


def open_cluster(access: Access, work: ReconcileContext) -> Kube:
    """Return the API of a profile's cluster, with the rights of whose profile it is."""
    cluster = work.cluster
    return access.open(cluster.key, version=cluster.credentials, account=work.profile.account)


def _render(helm: Helm, wanted: Wanted) -> frozenset[str]:
    try:
        return hooks_of(helm.charts.render(replace(wanted, patches=(), labels={}, annotations={})))
    except TooLargeError as error:
        raise TemplateError(str(error)) from error
    except BellhopError:
        # Helm decides in the cluster, which has a version and objects of its own.
        return UNKNOWN
