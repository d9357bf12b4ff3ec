"""Charts in repositories, and their releases in clusters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from msgspec import Struct

from bellhop.redacted import Redacted

DEPLOYED = "deployed"
"""The status of a release whose last operation succeeded; others are Helm's words."""

Propagation = Literal["", "background", "orphan", "foreground"]


class Login(Redacted, frozen=True):
    """How a repository is signed in to; `authority` is PEM, or empty for the system's.

    By `everywhere` the credentials go along to other servers that it names, too; by `plain` an OCI
    registry is called without TLS.
    """

    secret_fields: ClassVar[Collection[str]] = ("password",)
    username: str = ""
    password: str = ""
    authority: str = ""
    insecure: bool = False
    plain: bool = False
    everywhere: bool = False


ANONYMOUS = Login()
"""Without credentials, and with the system's authorities."""


class Place(Struct, frozen=True):
    """Where a chart is: in a repository (`http://`, `https://`) or in an OCI registry (`oci://`).

    Its `version` is an exact one or a range, or empty for the newest.
    """

    repository: str
    chart: str
    version: str = ""
    login: Login = ANONYMOUS


class Archive(Struct, frozen=True):
    """A chart's archive, as a file of ours: it was checked, and is to be read alone."""

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

    def versions(self, place: Place) -> Sequence[str]:
        """Return all versions of a chart, whichever is meant, the newest one first."""
        ...


class Release(Struct, frozen=True):
    """The newest revision of a release."""

    name: str
    namespace: str
    revision: int
    status: str
    chart: str
    version: str


class Options(Struct, frozen=True):
    """How a chart is installed or upgraded; each is Helm's option of that name."""

    create_namespace: bool = True
    skip_crds: bool = False
    skip_schema_validation: bool = False
    disable_openapi_validation: bool = False
    disable_hooks: bool = False
    take_ownership: bool = False
    wait: bool = False
    wait_for_jobs: bool = False
    atomic: bool = False
    cleanup_on_fail: bool = False
    force: bool = False
    reuse_values: bool = False
    reset_values: bool = False
    reset_then_reuse_values: bool = False
    max_history: int = 2
    timeout_seconds: int = 300
    labels: Mapping[str, str] = {}
    description: str = ""


class Wanted(Struct, frozen=True):
    """A release as it is to be: a chart's archive, and documents of values, later ones first."""

    name: str
    namespace: str
    archive: Path
    values: Sequence[str] = ()
    options: Options = Options()


class Charts(Protocol):
    """Deploys releases; `kubeconfig` is that of a cluster, as JSON, and sanitised.

    Every method raises InvalidError for what the chart, its values or the API server refuse,
    DeniedError for missing rights, UnreachableError where the API server does not answer, and
    TemporaryError for what may pass.
    """

    def release(self, kubeconfig: bytes, namespace: str, name: str) -> Release | None:
        """Read the newest revision of a release; None if there is none."""
        ...

    def deploy(self, kubeconfig: bytes, wanted: Wanted) -> Release:
        """Install or upgrade a release, and recover one of which an operation was interrupted.

        Raises:
            ConflictError: an object of the chart is there, and is of no release or another one.
        """
        ...

    def remove(
        self,
        kubeconfig: bytes,
        namespace: str,
        name: str,
        *,
        keep_history: bool = False,
        hooks: bool = True,
        propagation: Propagation = "",
        timeout_seconds: int = 300,
    ) -> bool:
        """Uninstall a release; say whether it was there."""
        ...

    def manifest(self, kubeconfig: bytes, namespace: str, name: str) -> str:
        """Return the objects of a release's newest revision as YAML, without its hooks."""
        ...

    def render(self, wanted: Wanted, *, kubernetes: str = "") -> str:
        """Render a chart without a cluster, for a version of Kubernetes if one is given."""
        ...
