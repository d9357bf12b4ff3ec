"""`bellhop register`: a cluster joins the fleet."""

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
from bellhop.cli.clusters import cluster_argument, cluster_option, one_cluster
from bellhop.cli.completing import complete_file
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import files_options, state_option
from bellhop.cli.output import pairs, raw, say
from bellhop.errors import InvalidError, MissingError

if TYPE_CHECKING:
    from bellhop.fleet.installation import Inbound, Installation
    from bellhop.fleet.registration import Registered, Registration
    from bellhop.model.kubeconfig import Kubeconfig
    from bellhop.model.sveltos_cluster import SveltosCluster

F = TypeVar("F", bound=Callable[..., Any])

_EXAMPLE = (
    "bellhop register cluster --namespace prod --cluster eu-1 --kubeconfig eu-1.kubeconfig"
    " --labels env=prod,region=eu"
)
_INSTALL = f"{_EXAMPLE} --image registry.example.com/bellhop-forwarder:{__version__}"
_EKS = "bellhop register cluster-eks prod/eu-1 --eks eu-1 --labels env=prod"
_GKE = "bellhop register cluster-gke prod/eu-1 --gke europe-west1/eu-1 --labels env=prod"

_FILES = "bellhop register cluster -f clusters/"

_HEAD = """\
# The forwarder of a cluster, as `bellhop register cluster --print-manifests` writes it.
# Its Secret is not among them unless asked: registration applies it, and a renewal writes it again,
# so that a repository is no place for it. Nor is its ClusterRole, which follows the EventSources,
# nor the annotation of its Namespace that names the installation: registration writes it.
"""

_LARGEST_AUTHORITY = 64 * 1024
"""Bytes of the authority for --ingest-url: it is kept with the cluster, in one item."""


@click.group("register", cls=Group, examples=(_INSTALL,))
def command() -> None:
    """Add a cluster to the fleet."""


class _Wishes(Struct, frozen=True):
    """What a user asks for, whatever kind of cluster it is; as the options below have it."""

    labels: str | None
    forwarder_url: str
    forwarder: bool
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
    def installs(self) -> bool | None:
        """Say whether to deploy the forwarder; None if nobody else does."""
        if self.install is not None:
            return self.install
        in_cluster = self.forwarder and not (self.forwarder_url or self.direct or self.audit)
        return None if in_cluster and not self.print_manifests else False

    def refuse_contradictions(self) -> None:
        """Refuse options that leave nothing to each other."""
        if (self.install or self.print_manifests) and (self.forwarder_url or not self.forwarder):
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
        if not self.forwarder:
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
        default=True,
        show_default=True,
        help="Let the cluster send events; without a forwarder, only resyncs find changes.",
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


def _wishes(command: F) -> F:
    """Add the options that all kinds of clusters have."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@command.command(
    "cluster",
    cls=Command,
    usage=(
        "NAMESPACE/NAME --kubeconfig FILE [OPTIONS]",
        "-f FILE|DIR|- [--renew] [OPTIONS]",
    ),
    examples=(_INSTALL, _EXAMPLE, _FILES),
)
@cluster_argument(required=False)
@cluster_option
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path),
    shell_complete=complete_file,
    help="Address and credentials; - for standard input. If it logs you in, by an exec"
    " plugin or OIDC, an account for Bellhop is created, whose token is stored"
    " instead. Proxies and impersonation are refused.",
)
@click.option(
    "--kubeconfig-context",
    "kube_context",
    metavar="NAME",
    help="Context of the kubeconfig; its current one by default.",
)
@files_options("SveltosClusters and their Secrets, all of which are registered; may be repeated.")
@click.option(
    "--renew",
    is_flag=True,
    help="With -f: register again also clusters that are as declared already.",
)
@_wishes
@state_option
def cluster(  # noqa: PLR0913 - one parameter an option
    key: str | None,
    namespace: str,
    cluster: str,
    kubeconfig: Path | None,
    kube_context: str | None,
    paths: Sequence[str],
    *,
    recursive: bool,
    renew: bool,
    **asked: Any,
) -> None:
    """Add a cluster to the fleet, or renew its registration.

    If the kubeconfig uses a login, as those of EKS, GKE and AKS do, a service account is created
    for Bellhop in the cluster, and its token is stored instead of your login.

    The cluster's version and the permissions of the credentials are checked. Then the forwarder's
    namespace, account and Secret are applied, the kubeconfig is stored, and a first resync also
    installs the webhook configuration. Registering again renews credentials, labels, the sender's
    token and the forwarder's certificate, without interrupting events.

    The forwarder is deployed, too, unless --no-install is given or another tool applies the output
    of --print-manifests. With --direct, --audit or --no-forwarder there is no forwarder.

    With -f, every SveltosCluster in the files is registered, with the kubeconfig in its Secret, or
    changed to match, eight at once. Each cluster has a line (registered, renewed, configured,
    unchanged) or an error. If one fails, the others are registered all the same, and the exit code
    is 1.
    """
    from bellhop.cli.credentials import read_kubeconfig

    wishes = _Wishes(**asked)
    wishes.refuse_contradictions()
    if paths:
        if key or namespace or cluster or kubeconfig or kube_context:
            raise click.UsageError("name either one cluster and its --kubeconfig, or files by -f")
        _register_declared(paths, wishes, recursive=recursive, renew=renew)
        return
    if recursive or renew:
        raise click.UsageError("--recursive and --renew belong to -f")
    if kubeconfig is None:
        raise click.UsageError("give the cluster's --kubeconfig, or files that declare it by -f")
    place = _place(key, namespace, cluster)
    given = read_kubeconfig(kubeconfig, kube_context)
    here = session.installation(create=True)
    _register(here, place, given.kubeconfig, wishes, login=given.login)


@command.command(
    "cluster-eks", cls=Command, usage=("NAMESPACE/NAME --eks NAME [OPTIONS]",), examples=(_EKS,)
)
@cluster_argument(required=False)
@cluster_option
@click.option("--eks", required=True, metavar="NAME", help="The cluster's name in EKS.")
@click.option(
    "--region", metavar="REGION", default="", help="Its region; by default the installation's."
)
@_wishes
@state_option
def cluster_eks(
    key: str | None, namespace: str, cluster: str, eks: str, region: str, **asked: Any
) -> None:
    """Add an EKS cluster to the fleet, or renew its registration: AWS roles are used to reach it.

    No kubeconfig is stored. The registration uses your own permissions in the cluster; the
    functions use their own roles. The command prints the `aws eks` commands that grant access to
    these.
    """
    from bellhop.cli.places import EKS

    _managed(EKS, eks, region, _place(key, namespace, cluster), _Wishes(**asked))


@command.command(
    "cluster-gke", cls=Command, usage=("NAMESPACE/NAME --gke NAME [OPTIONS]",), examples=(_GKE,)
)
@cluster_argument(required=False)
@cluster_option
@click.option(
    "--gke",
    required=True,
    metavar="NAME",
    help="The cluster in GKE: NAME in the installation's project and region, LOCATION/NAME"
    " in its project, or projects/PROJECT/locations/LOCATION/clusters/NAME.",
)
@_wishes
@state_option
def cluster_gke(key: str | None, namespace: str, cluster: str, gke: str, **asked: Any) -> None:
    """Add a GKE cluster to the fleet, or renew its registration.

    Accounts of Google Cloud are used to reach it, and no kubeconfig is stored. The registration
    uses your own permissions in the cluster; the functions use their own service accounts. The
    command prints the `gcloud` and `kubectl` commands that grant access to these. A cluster without
    a public address is reached through the Connect gateway if it is in a fleet, otherwise at its
    private address.
    """
    from bellhop.cli.places import GKE

    _managed(GKE, gke, "", _place(key, namespace, cluster), _Wishes(**asked))


def _managed(service: str, name: str, region: str, place: tuple[str, str], wishes: _Wishes) -> None:
    """Register a cluster that a cloud manages, and say what lets the functions in."""
    from bellhop.cli.places import place_of

    wishes.refuse_contradictions()
    context = session.chosen()
    opened = session.open_chosen(click.get_current_context())
    click.get_current_context().find_root().call_on_close(opened.close)
    found = place_of(context).managed(context, opened, service, name, region)
    _register(opened.installation, place, found.kubeconfig, wishes, managed=found.name)
    err = wishes.print_manifests
    if found.over:
        say(f"  over         {found.over}", err=err)
    say(f"  let in       the functions, once, by who may do so in {service}:", err=err)
    for line in found.entries:
        say(f"    {line}", err=err)


def _place(key: str | None, namespace: str, cluster: str) -> tuple[str, str]:
    """Read the name that a cluster is to have in the fleet."""
    from bellhop.model.names import name_problem, namespace_problem

    namespace, name = one_cluster(key, namespace, cluster)
    if not namespace:
        raise click.UsageError(f"cluster '{name}' needs a namespace; write NAMESPACE/NAME")
    for problem in (namespace_problem(namespace), name_problem(name)):
        if problem:
            raise InvalidError(f"cannot register cluster '{namespace}/{name}': {problem}")
    return namespace, name


def _register(
    here: Installation,
    place: tuple[str, str],
    kubeconfig: Kubeconfig,
    wishes: _Wishes,
    *,
    managed: str = "",
    login: bool = False,
) -> None:
    """Register a cluster, and tell what came of it; after a `login`, by an account of Bellhop's."""
    from bellhop.cli.holding import say_held
    from bellhop.cli.labels import read_labels
    from bellhop.fleet.registration import register

    labels = None if wishes.labels is None else read_labels(wishes.labels)
    spec = replace(
        _specified(here, place, kubeconfig, wishes),
        labels=labels,
        managed=managed,
        pauses=_pauses(here, wishes),
    )
    if login:
        spec = _with_account(here, spec, err=wishes.print_manifests)
    done = register(here, spec)
    if wishes.print_manifests:
        secret = [done.secret] if wishes.show_secrets and done.secret else []
        _show([*spec.manifests(done.image), *secret])
    _tell(done, spec, err=wishes.print_manifests)
    say_held(here.declare.held)
    _warn_of_silence(here, wishes)


def _specified(
    here: Installation, place: tuple[str, str], kubeconfig: Kubeconfig, wishes: _Wishes
) -> Registration:
    """Return the registration of a cluster with what its options say whatever cluster it is.

    Raises:
        MissingError: it is to send events, and nobody knows where.
        InvalidError: the image is none; nothing is changed yet.
    """
    from bellhop.fleet.registration import Registration

    inbound = _inbound(here, wishes.ingest_url, wishes.ingest_ca)
    if wishes.forwarder and not inbound.url:
        raise MissingError(
            f"cannot register cluster '{'/'.join(place)}': nobody knows yet where it is to send"
            f" its events; {here.worker.start} first, or give --ingest-url"
        )
    spec = Registration(
        *place,
        kubeconfig,
        labels=None,
        inbound=inbound,
        forwarder_url=wishes.forwarder_url,
        forwarder=wishes.forwarder,
        twice=wishes.allow_twice,
        take_over=wishes.take_over,
        install=wishes.installs,
        image=wishes.image,
        direct=wishes.direct,
        audit=wishes.audit,
    )
    spec.manifests()
    return spec


def _register_declared(
    paths: Sequence[str], wishes: _Wishes, *, recursive: bool, renew: bool
) -> None:
    """Register what files declare, and end with 1 if any of it fails."""
    from bellhop.cli.declared_clusters import read, settle_all

    wishes.refuse_what_is_declared()
    declared = read(paths, recursive=recursive)
    here = session.installation(create=True)

    def specify(
        cluster: SveltosCluster, kubeconfig: Kubeconfig, fields: Mapping[str, Any]
    ) -> Registration:
        place = cluster.namespace, cluster.metadata.name
        spec = _specified(here, place, kubeconfig, wishes)
        return replace(spec, labels=cluster.labels, annotations=cluster.annotations, pauses=fields)

    failed = settle_all(here, declared, specify, renew=renew)
    _warn_of_silence(here, wishes)
    if failed:
        click.get_current_context().exit(1)


def _warn_of_silence(here: Installation, wishes: _Wishes) -> None:
    """Warn where nothing answers at the installation's own address for events."""
    url = here.inbound.url
    if wishes.forwarder and not wishes.ingest_url and url and not session.answers(here.inbound):
        say(
            f"warning: nothing answers at {url}; {here.worker.start}: nothing is taken in"
            " meanwhile",
            err=True,
        )


def _with_account(here: Installation, spec: Registration, *, err: bool) -> Registration:
    """Replace a person's credentials by those of Bellhop's own account in the cluster."""
    from bellhop.fleet.service_account import ACCOUNT, create_account

    own = create_account(here, spec.key, spec.kubeconfig)
    say(f"Service account '{ACCOUNT}' is in the cluster; your own login is not stored.", err=err)
    return replace(spec, kubeconfig=own)


def _pauses(here: Installation, wishes: _Wishes) -> Mapping[str, Any]:
    """Read what a user asks for of pauses; nothing stays as it is.

    Raises:
        InvalidError: a cron expression cannot be read, or the window never opens.
    """
    paused = {"paused": True} if wishes.paused else {}
    if not (wishes.active_from and wishes.active_to):
        return paused
    from bellhop.engine.pausing import window_of
    from bellhop.fleet.pausing import specified

    now = here.records.clock.now()
    return paused | specified(window_of(wishes.active_from, wishes.active_to, now))


def _inbound(here: Installation, url: str | None, ca: Path | None) -> Inbound:
    from bellhop.adapters.local.files import read_at_most
    from bellhop.fleet.installation import Inbound

    if ca is not None and url is None:
        raise click.UsageError("--ingest-ca belongs to --ingest-url")
    if url is None:
        return here.inbound
    if not url.startswith("https://"):
        raise InvalidError(
            f"cannot use --ingest-url '{url}': a token is sent there, so it must be https"
        )
    try:
        urlsplit(url).port  # noqa: B018 - it is read to be judged
    except ValueError as error:
        raise InvalidError(f"cannot use --ingest-url '{url}': its host or port is none") from error
    try:
        return Inbound(url, read_at_most(ca, _LARGEST_AUTHORITY).decode() if ca else "")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"cannot read the authority '{ca}'") from error


def _show(manifests: Sequence[Mapping[str, Any]]) -> None:
    """Print manifests as one file, as a repository keeps it."""
    from bellhop.model.document import dump

    raw(_HEAD + "---\n".join(map(dump, manifests)))


def _tell(done: Registered, spec: Registration, *, err: bool) -> None:
    from bellhop.engine.auditing import KUBECONFIG, POLICY
    from bellhop.engine.pausing import standing

    found = done.cluster
    renewed = "credentials, token and certificate"
    if spec.direct or spec.audit:
        renewed = "credentials and token" if spec.direct else "credentials and files"
    word = f"renewed: {renewed}" if done.again else "registered"
    lines = [
        f"Cluster '{found.key}' {word}.",
        f"  reached      {spec.kubeconfig.describe()}; Kubernetes {found.kubernetes}",
        f"  labels       {pairs(found.labels)}",
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
        lines.append(f"  paused       it {standing(found, datetime.now(UTC))}")
    lines.append("  next         a resync, which lists the cluster and installs its webhook")
    for line in lines:
        say(line, err=err)
    for warning in done.warnings:
        say(f"warning: {warning}", err=True)
