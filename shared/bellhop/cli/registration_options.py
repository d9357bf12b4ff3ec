"""The options of `bellhop register` for every kind of cluster, and which exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from bellhop import __version__
from bellhop.errors import InvalidError

F = TypeVar("F", bound=Callable[..., Any])


class RegistrationOptions(Struct, frozen=True):
    """The values of these options; `forwarder` of None: as the cluster is, True for a new one."""

    labels: str | None
    forwarder_url: str
    forwarder: bool | None
    install: bool | None
    print_manifests: bool
    show_secrets: bool
    image: str
    direct: bool
    audit: Path | None
    allow_twice: bool
    take_over: bool
    ingest_url: str | None
    ingest_ca: Path | None
    paused: bool
    active_from: str | None
    active_to: str | None

    @property
    def sends(self) -> bool:
        """Say whether the cluster is to send events."""
        return self.forwarder is not False

    @property
    def installs(self) -> bool | None:
        """Say whether to deploy the forwarder; None if nobody else does."""
        if self.install is not None:
            return self.install
        in_cluster = self.sends and not (self.forwarder_url or self.direct or self.audit)
        return None if in_cluster and not self.print_manifests else False

    def resolve_sender(self, key: str, sender: Mapping[str, str]) -> RegistrationOptions:
        """Return options by which a registered cluster sends as it does, unless these change it.

        `sender` is the part of the cluster's record on how it sends.

        Raises:
            InvalidError: its API server sends its audit log, and no option names the folder.
        """
        if self.forwarder is not None or self.direct or self.audit or self.forwarder_url:
            return self
        if self.install or self.print_manifests:
            return self
        from bellhop.registration.forwarder_manifests import is_audited, is_direct

        if is_audited(sender):
            raise InvalidError(
                f"cannot register cluster '{key}' again: its API server sends its audit log;"
                " register it with --audit FOLDER, or with --forwarder to deploy a forwarder"
            )
        if is_direct(sender):
            return replace(self, direct=True)
        return replace(self, forwarder=bool(sender), forwarder_url=sender.get("url", ""))

    def refuse_contradictions(self) -> None:
        """Refuse options that leave nothing to each other."""
        if (self.install or self.print_manifests) and (self.forwarder_url or not self.sends):
            raise click.UsageError(
                "--install and --print-manifests are for a forwarder in the cluster, and belong"
                " neither to --forwarder-url nor to --no-forwarder"
            )
        if self.direct or self.audit:
            self._refuse_a_forwarder("--direct" if self.direct else "--audit")
        if self.show_secrets and not self.print_manifests:
            raise click.UsageError("--show-secrets belongs to --print-manifests")
        if bool(self.active_from) != bool(self.active_to):
            raise click.UsageError("--active-from and --active-to belong together")

    def refuse_what_is_declared(self) -> None:
        """Refuse options that are for one cluster, where files declare many."""
        alone = {
            "--labels": self.labels,
            "--print-manifests": self.print_manifests,
            "--audit": self.audit,
            "--paused": self.paused,
            "--active-from": self.active_from,
        }
        for option, value in alone.items():
            if value:
                raise click.UsageError(
                    f"{option} is for one cluster; with -f each document says it, or it is done"
                    " for each cluster by itself"
                )

    def _refuse_a_forwarder(self, way: str) -> None:
        """Refuse what is for a forwarder, where the API server itself calls ingest."""
        if self.direct and self.audit:
            raise click.UsageError(
                "--direct and --audit exclude each other: a cluster sends its events in one way"
            )
        if self.install or self.print_manifests or self.forwarder_url:
            raise click.UsageError(
                f"{way} needs no forwarder: it belongs neither to --install nor to"
                " --print-manifests or --forwarder-url"
            )
        if not self.sends:
            raise click.UsageError(
                f"{way} has the cluster send events, and --no-forwarder does not"
            )


_OPTIONS = (
    click.option(
        "--labels",
        metavar="KEY=VALUE,...",
        help="Labels, as in env=prod,region=eu; without it, existing ones are kept.",
    ),
    click.option(
        "--forwarder-url",
        metavar="URL",
        default="",
        help="Where the API server reaches the forwarder, if it is not a Service in the cluster.",
    ),
    click.option(
        "--forwarder/--no-forwarder",
        default=None,
        help="Let the cluster send events; without a forwarder, only resyncs find changes. By"
        " default a new cluster gets a forwarder, and a registered one keeps the way it sends.",
    ),
    click.option(
        "--install/--no-install",
        default=None,
        help="Deploy the forwarder in the cluster: Deployment, Service, NetworkPolicy; needs"
        " permissions for these in bellhop-system. The default is to deploy it, unless"
        " another field manager applies its Deployment.",
    ),
    click.option(
        "--print-manifests",
        is_flag=True,
        help="Write the forwarder's manifests, except its Secret, to standard output, and"
        " messages to standard error.",
    ),
    click.option("--show-secrets", is_flag=True, help="With --print-manifests: its Secret, too."),
    click.option(
        "--image",
        metavar="IMAGE",
        default="",
        envvar="BELLHOP_FORWARDER_IMAGE",
        show_envvar=True,
        help="The forwarder's image, as nodes pull it; by default that of"
        f" BELLHOP_FORWARDER_IMAGE, the installed one, or bellhop-forwarder:{__version__}.",
    ),
    click.option(
        "--direct",
        is_flag=True,
        help="Let the API server call ingest itself, without a forwarder.",
    ),
    click.option(
        "--audit",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Let the API server send its audit log; the files that it needs are written into"
        " the folder.",
    ),
    click.option(
        "--allow-twice",
        is_flag=True,
        help="Register a cluster whose kube-system has the uid of one that is registered"
        " already: copies of one backup.",
    ),
    click.option(
        "--take-over",
        is_flag=True,
        help="Take over a cluster that another installation has registered.",
    ),
    click.option(
        "--paused",
        is_flag=True,
        help="Deploy nothing to it until `bellhop resume cluster`; without this option, the"
        " state does not change.",
    ),
    click.option(
        "--active-from",
        metavar="CRON",
        help="When its maintenance window opens, in UTC, as in '0 20 * * 5'; without it, an"
        " existing window stays.",
    ),
    click.option("--active-to", metavar="CRON", help="When that window closes, as in '0 5 * * 1'."),
    click.option(
        "--ingest-url",
        metavar="URL",
        help="Where it sends events; by default the installation's own address: where `bellhop"
        " serve` listens, or the API that Terraform created.",
    ),
    click.option(
        "--ingest-ca",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Certificate authority to trust there, in PEM; with --ingest-url, by default the"
        " public ones.",
    ),
)


def registration_options(command: F) -> F:
    """Add the options that all kinds of clusters have."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
