"""The inputs of Helm for a release: the archive of its chart, its values, its hooks and its limits.

Only Helm knows what a chart writes, and another call may write something else: random values, or
what `lookup` reads. So each call of Helm checks its own objects against `bellhop.dev/allow`, hooks
included. It installs the files of `crds` before it renders anything, and an upgrade may apply them:
these are checked here.
"""

from __future__ import annotations

import re
from typing import TypeVar

from msgspec.structs import replace

from bellhop.core.cache import Cached
from bellhop.core.digest import digest
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.charts.drift_exclusions import keeping
from bellhop.deploy.features.charts.planning import place_of
from bellhop.deploy.features.charts.release_objects import documents
from bellhop.deploy.files import FilesReader, not_of_cluster
from bellhop.deploy.frozen_sources import FoundSource
from bellhop.errors import BellhopError, InvalidError, TemplateError, TooLargeError
from bellhop.ports.charts import Archive, DesiredRelease, Helm
from bellhop.ports.kube import Access, Kube
from bellhop.rendering.allow_limits import refuse_charted, release_allow
from bellhop.rendering.charts.releases import Desired
from bellhop.rendering.manifests import kinds_defined
from bellhop.settings import Settings
from bellhop.state.chart import Options, Place, Removal
from bellhop.state.content import flux_path, shown_url
from bellhop.state.profile import Profile


class Archives:
    """The archives of charts."""

    def __init__(self, files: FilesReader) -> None:
        self._files = files

    def find(self, helm: Helm, each: Desired, profile: Profile) -> Archive:
        """Find the chart of a release; an error of its repository is none of the cluster.

        Raises:
            PermanentError: it is not there, or may not be read.
            TemporaryError: its repository does not answer now.
        """
        with not_of_cluster():
            flux = flux_path(each.place.repository)
            if mark := self.pin(helm, each.place, profile):
                return helm.repositories.open(self._files.frozen.content(profile, mark), mark)
            if flux is None:
                return helm.repositories.find(each.place)
            if each.source is None:
                raise InvalidError(
                    f"cannot read {flux} for {each.ref}: a template wrote its kind; begin"
                    f" repositoryURL with {flux.kind.lower()}://"
                )
            # A Profile reads what is in its own namespace, whatever the address says.
            about = each.source["metadata"]
            ref = f"{flux.kind} {about['namespace']}/{about['name']}"
            found = self._files.artifact(ref, each.source, profile)
            return helm.repositories.pack(found.files, flux.path, f"{ref} {found.revision}")

    def pin(self, helm: Helm | None, place: Place, profile: Profile) -> str:
        """Return the digest of a chart as the release of a promotion has it.

        It is empty for other profiles, and where nobody has found the chart yet who has Helm.

        Raises:
            BellhopError: it is not pinned yet, and cannot be found.
        """
        if not profile.rollout.promotion or flux_path(place.repository):
            return ""
        name = f"chart {place.chart} {place.version} of {shown_url(place.repository)}"
        if helm is None:
            return self._files.frozen.find_digest(profile, name)
        repositories = helm.repositories

        def find() -> FoundSource:
            found = repositories.find(place)
            return FoundSource({"digest": found.digest}, found.path.read_bytes)

        with not_of_cluster():
            return str(self._files.frozen.pin(profile, name, find)["digest"])


def limited(request: DesiredRelease, profile: Profile, kube: Kube, helm: Helm) -> DesiredRelease:
    """Return a release with the objects that it may have, by the scopes of a cluster's kinds.

    Raises:
        NotAllowedError: it may not have a definition that its chart contains.
    """
    options = request.options
    defines = not options.skip_crds or (options.upgrade_crds and request.there)
    definitions = tuple(documents(helm.charts.definitions(request))) if defines else ()
    defined = kinds_defined(definitions)

    def is_namespaced(group: str, kind: str) -> bool:
        served = kube.served(group, kind)
        return served.namespaced if served else defined.get((group, kind), True)

    allow = release_allow(profile, request.namespace, request.name, is_namespaced)
    if allow:
        refuse_charted(allow, definitions)
    return replace(request, allow=allow)


AFTER = frozenset({"post-install", "post-upgrade"})
"""Hooks that Helm runs once a release is ready, where it waits for that."""

TESTS = frozenset({"test", "test-success", "test-failure"})
"""Hooks that neither an installation nor an upgrade runs."""

DELETE = frozenset({"pre-delete", "post-delete"})
"""Hooks that Helm runs when it removes a release."""

EXPIRING = frozenset({"ttlSecondsAfterFinished"})
"""The field of Jobs that are deleted once they have ended, so that no later read finds them."""

UNKNOWN = AFTER | DELETE | EXPIRING | {"pre-install", "pre-upgrade"}
"""Hooks of a chart that cannot be read: it may have any."""

_ANNOTATION = re.compile(r"""helm\.sh/hook["']?[ \t]*:[ \t]*(.*)""")
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")


def hooks_of(rendered: str) -> frozenset[str]:
    """Return the hooks that a rendered chart names, and whether Jobs of it expire.

    A hook that is written unusually may be any.
    """
    found = {field for field in EXPIRING if field in rendered}
    for value in _ANNOTATION.findall(rendered):
        found |= set(_WORD.findall(value)) or UNKNOWN
    return frozenset(found)


T = TypeVar("T", Options, Removal)

_RENDERED_SECONDS = 3600.0
"""Time for which the hooks of a rendered chart are cached."""

_PART = 0.5
"""Part of the visibility for which Helm may wait for one release."""


class ReleaseInputs:
    """Reads charts, and limits what Helm may do with them."""

    def __init__(self, access: Access, settings: Settings, archives: Archives) -> None:
        self._access = access
        self._archives = archives
        self._rendered: Cached[frozenset[str]] = Cached(_RENDERED_SECONDS)
        self._patience = int(settings.visibility.total_seconds() * _PART)

    def find(
        self,
        context: ReconcileContext,
        helm: Helm,
        each: Desired,
        *,
        there: bool,
        again: bool = False,
    ) -> tuple[Archive, DesiredRelease]:
        """Find a chart, and return it with the request to Helm.

        Raises:
            PermanentError: it is not there, or may not be read.
            TemporaryError: its repository does not answer now.
        """
        each.check_values()
        archive = self._archives.find(helm, each, context.profile)
        request = DesiredRelease(
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
        if context.profile.allow:
            request = limited(request, context.profile, open_cluster(self._access, context), helm)
        return archive, self._keep(context, each, request)

    def _keep(
        self, context: ReconcileContext, each: Desired, request: DesiredRelease
    ) -> DesiredRelease:
        """Keep what others have decided of a release's objects."""
        excluded = each.how.excluded
        if not excluded or not request.there:
            return request
        kube, place = open_cluster(self._access, context), place_of(each.key)
        parts = [
            key.at(held.version)
            for key, held in context.progress.held.items()
            if held.part_of == place
        ]
        patches = keeping(excluded, filter(None, (kube.get(*key) for key in parts)))
        return replace(request, patches=(*request.patches, *patches))

    def bounded(self, how: T) -> T:
        """Return options whose time-out ends before the worker's lease does."""
        waits = 2 if isinstance(how, Options) and how.run_tests else 1
        return replace(how, timeout_seconds=min(how.timeout_seconds, self._patience // waits))

    def hooks(self, helm: Helm, archive: Archive, request: DesiredRelease) -> frozenset[str]:
        """Render a chart without a cluster before Helm begins, and return its hooks.

        It is rendered once for the same values. Templates that loop would keep a worker until
        Helm's time is over; what only the names of releases make of them, Helm's own limits bound.
        A chart that renders only in a cluster may have any hooks.

        Raises:
            TemplateError: they take longer, or write more, than they may; so they would again.
        """
        # Templates may ask whether they are rendered for an upgrade.
        rendered = digest([archive.digest, request.there, *request.values])
        return self._rendered.get(rendered, lambda: _render(helm, request))


def open_cluster(access: Access, context: ReconcileContext) -> Kube:
    """Return the API of a profile's cluster, with the rights of whose profile it is."""
    cluster = context.cluster
    return access.open(cluster.key, version=cluster.credentials, account=context.profile.account)


def _render(helm: Helm, request: DesiredRelease) -> frozenset[str]:
    try:
        return hooks_of(helm.charts.render(replace(request, patches=(), labels={}, annotations={})))
    except TooLargeError as error:
        raise TemplateError(str(error)) from error
    except BellhopError:
        # Helm decides in the cluster, which has a version and objects of its own.
        return UNKNOWN
