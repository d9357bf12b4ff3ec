"""Registrations on the command line: their options, and the report of a registered cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click
from msgspec import Struct
from msgspec.structs import replace

from bellhop import __version__
from bellhop.cli import session
from bellhop.cli.output import format_labels, print_text, say
from bellhop.errors import InvalidError, MissingError

if TYPE_CHECKING:
    from bellhop.clusters.kubeconfig import Kubeconfig
    from bellhop.installation import Inbound, Installation
    from bellhop.registration.request import Registered, Registration

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
        return self.forwarder is not False

    @property
    def installs(self) -> bool | None:
        """Return whether to deploy the forwarder; None: unless another tool does."""
        if self.install is not None:
            return self.install
        in_cluster = self.sends and not (self.forwarder_url or self.direct or self.audit)
        return None if in_cluster and not self.print_manifests else False

    def resolve_sender(self, key: str, sender: Mapping[str, str]) -> RegistrationOptions:
        """Return options that keep the way a registered cluster sends, unless these change it.

        `sender` is the part of the cluster's record on how it sends.
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
        """Refuse options for one cluster, since files declare many."""
        single = {
            "--labels": self.labels,
            "--print-manifests": self.print_manifests,
            "--audit": self.audit,
            "--paused": self.paused,
            "--active-from": self.active_from,
        }
        for option, value in single.items():
            if value:
                raise click.UsageError(
                    f"{option} is for one cluster; with -f each document says it, or it is done"
                    " for each cluster by itself"
                )

    def _refuse_a_forwarder(self, way: str) -> None:
        """Refuse options for a forwarder, since the API server itself calls ingest."""
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
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_LARGEST_AUTHORITY = 64 * 1024
"""Bytes of the authority for --ingest-url: it is kept with the cluster, in one item."""


def specify_registration(
    here: Installation, place: tuple[str, str], kubeconfig: Kubeconfig, options: RegistrationOptions
) -> Registration:
    """Return the registration of a cluster by the options that are the same for every cluster."""
    from bellhop.installation import Inbound
    from bellhop.registration.record_update import refuse_configured
    from bellhop.registration.request import Registration

    refuse_configured(here, "register", "/".join(place))
    stored = here.records.clusters.get("/".join(place))
    sender = stored.value.forwarder if stored else {}
    if stored:
        options = options.resolve_sender(stored.value.key, sender)
    inbound = _read_inbound(here, options.ingest_url, options.ingest_ca)
    if options.ingest_url is None and sender.get("ingest-url"):
        inbound = Inbound(sender["ingest-url"], sender.get("ingest-ca", ""))
    if options.sends and not inbound.url:
        raise MissingError(
            f"cannot register cluster '{'/'.join(place)}': no ingest URL is known yet;"
            f" {here.worker.start} first, or give --ingest-url"
        )
    spec = Registration(
        *place,
        kubeconfig,
        labels=None,
        inbound=inbound,
        forwarder_url=options.forwarder_url,
        forwarder=options.sends,
        twice=options.allow_twice,
        take_over=options.take_over,
        install=options.installs,
        image=options.image,
        direct=options.direct,
        audit=options.audit,
    )
    spec.manifests()
    return spec


def warn_of_unanswered_url(here: Installation, inbound: Inbound) -> None:
    """Warn if events go to the installation's own address, and nothing answers there."""
    url = here.inbound.url
    if not url or inbound != here.inbound or session.is_listening(here.inbound):
        return
    cure = f"{here.worker.start}: nothing is taken in meanwhile"
    if session.is_served(here):
        cure = f"{here.worker.busy}, so see whether clusters reach that address"
    say(f"warning: nothing answers at {url}; {cure}", err=True)


def _read_inbound(here: Installation, url: str | None, ca: Path | None) -> Inbound:
    from bellhop.adapters.local.files import read_at_most
    from bellhop.installation import Inbound

    if ca is not None and url is None:
        raise click.UsageError("--ingest-ca belongs to --ingest-url")
    if url is None:
        return here.inbound
    if not url.startswith("https://"):
        raise InvalidError(
            f"cannot use --ingest-url '{url}': a token is sent there, so it must be https"
        )
    try:
        urlsplit(url).port  # noqa: B018 - it is read to be checked
    except ValueError as error:
        raise InvalidError(
            f"cannot use --ingest-url '{url}': its host or port is invalid"
        ) from error
    try:
        return Inbound(url, read_at_most(ca, _LARGEST_AUTHORITY).decode() if ca else "")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"cannot read the authority '{ca}'") from error


_HEAD = """\
# The forwarder of a cluster, as `bellhop register cluster --print-manifests` writes it.
# Its Secret is not among them unless asked: registration applies it, and a renewal writes it again,
# so it does not belong in a repository. Registration also writes its ClusterRole, which follows the
# EventSources, and the annotation of its Namespace that names the installation.
"""


def show_manifests(manifests: Sequence[Mapping[str, Any]]) -> None:
    """Print manifests as one file for a repository."""
    from bellhop.documents.document import dump

    print_text(_HEAD + "---\n".join(map(dump, manifests)))


def report_registration(done: Registered, spec: Registration, *, err: bool) -> None:
    """Print the result of a registration, on standard error if `err`, and its warnings."""
    from bellhop.clusters.pause import describe_pause
    from bellhop.registration.audited_clusters import KUBECONFIG, POLICY

    found = done.cluster
    renewed = "credentials, token and certificate"
    if spec.direct or spec.audit:
        renewed = "credentials and token" if spec.direct else "credentials and files"
    word = f"renewed: {renewed}" if done.again else "registered"
    lines = [
        f"Cluster '{found.key}' {word}.",
        f"  reached      {spec.kubeconfig.describe()}; Kubernetes {found.kubernetes}",
        f"  labels       {format_labels(found.labels)}",
    ]
    if spec.direct:
        lines.append(f"  events       directly: its API server calls {spec.inbound.url}")
    elif spec.audit:
        lines += [
            f"  events       by its audit log, which its API server sends to {spec.inbound.url}",
            f"  written      {POLICY} and {KUBECONFIG}, a secret, in {spec.audit}",
        ]
    elif spec.forwarder:
        where = spec.forwarder_url or "a Service in the cluster"
        lines += [
            f"  forwarder    {where}; it sends to {spec.inbound.url}",
            "  applied      namespace, account, rights and Secret of the forwarder",
        ]
    else:
        lines.append("  forwarder    none: only resyncs find changes")
    if done.installed:
        lines.append(
            f"  installed    its Deployment, Service and NetworkPolicy; image {done.image}"
        )
    if found.spec.get("paused") or found.spec.get("activeWindow"):
        lines.append(f"  paused       it {describe_pause(found, datetime.now(UTC))}")
    installs = " and installs its webhook" if spec.direct or spec.forwarder else ""
    lines.append(f"  next         a resync, which lists the cluster{installs}")
    for line in lines:
        say(line, err=err)
    for warning in done.warnings:
        say(f"warning: {warning}", err=True)
