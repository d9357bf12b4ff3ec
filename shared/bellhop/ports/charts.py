"""Charts in repositories, and their releases in clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from bellhop.core.allow import ReleaseAllow
from bellhop.state.chart import AS_USUAL, Options, Place, Removal
from bellhop.state.content import PatchText

if TYPE_CHECKING:
    from bellhop.documents.tarball import Folder

DEPLOYED = "deployed"
"""The status of a release whose last operation succeeded; others are Helm's words."""

OUR_LABEL = {"bellhop.dev/deployed-by": "bellhop"}
"""The label of Helm's own record of a release by which we know what we deployed."""


class Archive(Struct, frozen=True):
    """The archive of a chart, as a checked local file that only readers open."""

    path: Path
    chart: str
    version: str
    digest: str


class Repositories(Protocol):
    """Finds charts where users keep them.

    Every method raises MissingError where there is no such repository, chart or version,
    UnauthorizedError and DeniedError where the credentials do not do, InvalidError for what is no
    repository or chart, TooLargeError for what is larger than is taken, and UnreachableError where
    nobody answers, or not in time.
    """

    def find(self, place: Place) -> Archive:
        """Return the archive of the newest version that is meant."""
        ...

    def open(self, content: bytes, digest: str) -> Archive:
        """Return an archive that `find` returned before, by its content."""
        ...

    def pack(self, files: Folder, path: str, revision: str) -> Archive:
        """Return the archive of a chart whose folder is at a path of files.

        The same files have the same `revision`.
        """
        ...

    def versions(self, place: Place) -> Sequence[str]:
        """Return all versions of a chart, whichever is meant, the newest one first."""
        ...


class Release(Struct, frozen=True):
    """The newest revision of a release; `ours` is one that was deployed through this port.

    The `manifest` has its objects as YAML, without its hooks, where it was just deployed and they
    are not too large to be read. Of a release whose installation failed, and that was never
    deployed since, `failures` counts the revisions.
    """

    name: str
    namespace: str
    revision: int
    status: str
    chart: str
    version: str
    ours: bool = False
    failures: int = 0
    manifest: str = ""


class DesiredRelease(Struct, frozen=True):
    """A release as it is to be: a chart's archive, and documents of values, later ones first.

    By `there` it is known to exist, and `options` count; else `install`, where these are others.
    The newest `revision` of before is 0 if there is none.
    By `again` its installation has failed: it is installed over what that left, hooks included.
    All objects of it get the `patches`, which are rendered, and then `labels` and `annotations`.
    With `allow`, nothing is deployed if one of them is not allowed, hooks included.
    """

    name: str
    namespace: str
    archive: Path
    values: Sequence[str] = ()
    options: Options = Options()
    install: Options | None = None
    there: bool = False
    again: bool = False
    revision: int = 0
    patches: Sequence[PatchText] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    allow: ReleaseAllow | None = None

    @property
    def changes(self) -> bool:
        """Say whether what the chart writes is changed, or checked, before it is deployed."""
        return bool(self.patches or self.labels or self.annotations or self.allow)


class Charts(Protocol):
    """Deploys releases; `kubeconfig` is that of a cluster, as JSON, and sanitised.

    Every method raises InvalidError for what the chart, its values or the API server refuse,
    DeniedError for missing rights, and TemporaryError for what may pass. No error says that the
    cluster does not answer or refuses its credentials: ask the cluster itself.
    """

    def release(self, kubeconfig: bytes, namespace: str, name: str) -> Release | None:
        """Read the newest revision of a release; None if there is none."""
        ...

    def deploy(
        self, kubeconfig: bytes, desired: DesiredRelease, cancelled: Callable[[], bool]
    ) -> Release:
        """Install or upgrade a release, and recover one of which an operation was interrupted.

        It is asked to end early once it is `cancelled`, as while it waits for what is deployed.

        Raises:
            StaleError: it was cancelled, and the release may be half deployed.
            ConflictError: an object of the chart is there, and is of no release or another one.
            NotAllowedError: an object of the chart is not allowed; nothing was deployed.
        """
        ...

    def dry_run(self, kubeconfig: bytes, desired: DesiredRelease) -> str:
        """Return the objects that `deploy` would make as YAML, without hooks; change nothing."""
        ...

    def remove(self, kubeconfig: bytes, namespace: str, name: str, how: Removal = AS_USUAL) -> bool:
        """Uninstall a release; say whether it was there."""
        ...

    def manifest(self, kubeconfig: bytes, namespace: str, name: str) -> str:
        """Return the objects of a release's newest revision as YAML, without its hooks."""
        ...

    def definitions(self, desired: DesiredRelease) -> str:
        """Return the CustomResourceDefinitions of a chart's `crds` folder, as YAML."""
        ...

    def render(self, desired: DesiredRelease, *, kubernetes: str = "") -> str:
        """Render a chart without a cluster, for a version of Kubernetes if one is given.

        Raises:
            TooLargeError: its templates take longer, or write more, than they may.
        """
        ...


class Helm(NamedTuple):
    """All that deploys charts: who finds them, and who makes releases of them."""

    repositories: Repositories
    charts: Charts
