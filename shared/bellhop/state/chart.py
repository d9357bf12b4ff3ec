"""A release of a Helm chart as a profile has it for its clusters; `api/helm.py` reads manifests.

A profile owns a release in a cluster as a pseudo-object, of a kind that no API server has: so it is
owned, counted and shown as any other object.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import ClassVar, Literal

from msgspec import Struct

from bellhop.core.gvk import GVK, Identity
from bellhop.core.structs import Redacted
from bellhop.state.cluster_text import HeldText

RELEASE = GVK("helm.sh", "v1", "Release")
"""The kind of that pseudo-object."""

Propagation = Literal["", "background", "orphan", "foreground"]


class Login(Redacted, frozen=True):
    """The credentials of a repository."""

    secret_fields: ClassVar[Collection[str]] = ("password",)
    username: str = ""
    password: str = ""
    authority: str = ""
    """PEM, or empty for the system's authorities."""
    insecure: bool = False
    plain: bool = False
    """Call an OCI registry without TLS."""
    everywhere: bool = False
    """Send the credentials to other servers that the repository names, too."""


ANONYMOUS = Login()
"""No credentials, and the system's authorities."""


class Place(Struct, frozen=True):
    """The source of a chart."""

    repository: str
    """`http://`, `https://` or `oci://`."""
    chart: str
    version: str = ""
    """An exact version or a range; empty for the newest."""
    login: Login = ANONYMOUS


class Options(Struct, frozen=True):
    """Options of an installation or upgrade, by Helm's names."""

    create_namespace: bool = True
    skip_crds: bool = False
    skip_schema_validation: bool = False
    disable_openapi_validation: bool = False
    disable_hooks: bool = False
    take_ownership: bool = False
    wait: bool = False
    wait_for_jobs: bool = False
    run_tests: bool = False
    """Run the chart's tests after it; the release is deployed once they pass."""
    atomic: bool = False
    cleanup_on_fail: bool = False
    force: bool = False
    reuse_values: bool = False
    reset_values: bool = False
    reset_then_reuse_values: bool = False
    upgrade_crds: bool = False
    max_history: int = 2
    timeout_seconds: int = 300
    labels: Mapping[str, str] = {}
    description: str = ""

    @property
    def undoes_failures(self) -> bool:
        """Return whether Helm deletes or rolls back a release that fails."""
        return self.atomic or self.cleanup_on_fail

    @property
    def blocks(self) -> bool:
        """Return whether Helm itself waits for the release, whatever hooks the chart has."""
        return self.atomic or self.run_tests


class Removal(Struct, frozen=True):
    """Options of a removal, by Helm's names."""

    keep_history: bool = False
    propagation: Propagation = ""
    hooks: bool = True
    timeout_seconds: int = 300


AS_USUAL = Removal()
"""Helm's own defaults of a removal."""


class Chart(Struct, frozen=True):
    """One release; its first five texts and its values are templates of deploy time."""

    field: str
    """The entry of `helmCharts`, for errors."""
    repository: str
    chart: str
    version: str
    release: str
    namespace: str
    plain: bool = False
    """Events have rendered it: nothing in it is a template."""
    values: tuple[HeldText, ...] = ()
    logins: tuple[HeldText, ...] = ()
    """Credentials by cluster, each as JSON of a Secret's entries."""
    login: Login = ANONYMOUS
    unwanted: bool = False
    """Remove the release if it is there."""
    install: Options = Options()
    upgrade: Options = Options()
    removal: Removal = AS_USUAL


def release_key(namespace: str, name: str) -> Identity:
    """Return the key of a release among the objects that a profile owns."""
    return RELEASE_KEY._replace(namespace=namespace, name=name)


RELEASE_KEY = Identity(RELEASE.group, RELEASE.kind, "", "")


class HeldRelease(Struct, frozen=True):
    """The state of a release that a profile owns."""

    chart: str = ""
    version: str = ""
    repository: str = ""
    revision: int = 0
    removal: Removal = AS_USUAL
    removed: bool = False
    """It was removed, as the profile asks."""
    tier: int = 100
    """Of the profile that owns it."""
    ready_by: datetime | None = None
    """The time until which its objects must be ready; None once they are, or if it does not
    wait."""
    delete_hooks: bool = False
    """Helm runs hooks when it removes it, or may."""
    kept_until: datetime | None = None
    """It is to be removed, and is kept until then for another profile."""
