"""A release of a Helm chart, as a profile wants it in its clusters; `helm.py` is how it is written.

What clusters have of it is a pseudo-object: its kind is `Release`, of a group that no API server
has. So it is owned, counted and shown as any object of a profile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import ClassVar, Literal

from msgspec import Struct

from bellhop.core.gvk import GVK, Identity
from bellhop.core.redaction import Redacted
from bellhop.state.cluster_text import HeldText

RELEASE = GVK("helm.sh", "v1", "Release")
"""The kind of what a profile owns of a chart in a cluster: its release."""

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


class Options(Struct, frozen=True):
    """How a chart is installed or upgraded; each is Helm's option of that name.

    By `run_tests` its tests follow, and the release counts as deployed when they have passed.
    """

    create_namespace: bool = True
    skip_crds: bool = False
    skip_schema_validation: bool = False
    disable_openapi_validation: bool = False
    disable_hooks: bool = False
    take_ownership: bool = False
    wait: bool = False
    wait_for_jobs: bool = False
    run_tests: bool = False
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


class Removal(Struct, frozen=True):
    """How a release is removed; each is Helm's option of that name."""

    keep_history: bool = False
    propagation: Propagation = ""
    hooks: bool = True
    timeout_seconds: int = 300


AS_USUAL = Removal()
"""As Helm removes a release where nobody asks for anything."""


class Chart(Struct, frozen=True):
    """One release; its first five texts, and its values, are templates of deploy time.

    They are not where it is `plain`, since events rendered them for good. Of its `logins` those
    count that are for a cluster, each as JSON of a Secret's entries. One that is `unwanted` is
    removed, should it be there.
    """

    field: str
    repository: str
    chart: str
    version: str
    release: str
    namespace: str
    plain: bool = False
    values: tuple[HeldText, ...] = ()
    logins: tuple[HeldText, ...] = ()
    login: Login = ANONYMOUS
    unwanted: bool = False
    install: Options = Options()
    upgrade: Options = Options()
    removal: Removal = AS_USUAL


def release_key(namespace: str, name: str) -> Identity:
    """Name a release as what a profile owns in a cluster."""
    return RELEASE_KEY._replace(namespace=namespace, name=name)


RELEASE_KEY = Identity(RELEASE.group, RELEASE.kind, "", "")


class HeldRelease(Struct, frozen=True):
    """What is known of a release that a profile holds: which chart it is of, and how it goes.

    One that was `removed` is not there, as was asked. It was claimed by a profile of that `tier`.
    Its objects are to be ready by `ready_by`; None where that is not waited for, or they are. One
    with `delete_hooks` has hooks that Helm runs when it removes it, or may have some. One that is
    to be removed is kept for another profile until `kept_until`.
    """

    chart: str = ""
    version: str = ""
    repository: str = ""
    revision: int = 0
    removal: Removal = AS_USUAL
    removed: bool = False
    tier: int = 100
    ready_by: datetime | None = None
    delete_hooks: bool = False
    kept_until: datetime | None = None
