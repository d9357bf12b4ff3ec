"""`bellhop register`: add a cluster to the fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from bellhop import __version__
from bellhop.cli import session
from bellhop.cli.command import Group
from bellhop.cli.completion import complete_file
from bellhop.cli.options import (
    cluster_applyset_options,
    dry_run_option,
    files_options,
    refuse_prune_without_set,
)
from bellhop.cli.output import say
from bellhop.cli.registrations import (
    RegistrationOptions,
    registration_options,
    report_registration,
    show_manifests,
    specify_registration,
    warn_of_unanswered_url,
)
from bellhop.cli.selection import cluster_argument, cluster_option, read_cluster_name
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.clusters.kubeconfig import Kubeconfig
    from bellhop.installation import Installation
    from bellhop.registration.managed_clusters import ClusterRequest
    from bellhop.registration.request import Registration

_EXAMPLE = (
    "bellhop register cluster --namespace prod --cluster eu-1 --kubeconfig eu-1.kubeconfig"
    " --labels env=prod,region=eu"
)
_INSTALL = f"{_EXAMPLE} --image registry.example.com/bellhop-forwarder:{__version__}"
_EKS = "bellhop register cluster-eks prod/eu-1 --eks eu-1 --labels env=prod"
_EKS_OF_ANOTHER = (
    "bellhop register cluster-eks prod/eu-2 --eks eu-2"
    " --assume-role arn:aws:iam::210987654321:role/bellhop --external-id prod-eu-2"
)
_GKE = "bellhop register cluster-gke prod/eu-1 --gke europe-west1/eu-1 --labels env=prod"

_FILES = "bellhop register cluster -f clusters/"


@click.group("register", cls=Group, examples=(_INSTALL,))
def command() -> None:
    """Add a cluster to the fleet."""


@command.command(
    "cluster",
    usage=(
        "NAMESPACE/NAME --kubeconfig FILE [OPTIONS]",
        "-f FILE|DIR|- [--renew] [--dry-run] [OPTIONS]",
        "-f FILE|DIR|- --applyset NAME [--prune [--allow-empty]] [OPTIONS]",
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
    " instead. Impersonation, and proxies other than HTTP, are refused.",
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
@cluster_applyset_options
@dry_run_option
@registration_options
def cluster(  # noqa: PLR0913 - one parameter an option
    key: str | None,
    namespace: str,
    cluster: str,
    kubeconfig: Path | None,
    kube_context: str | None,
    paths: Sequence[str],
    applyset: str | None,
    *,
    recursive: bool,
    renew: bool,
    prune: bool,
    allow_empty: bool,
    dry_run: str | None,
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
    of --print-manifests. With --direct, --audit or --no-forwarder there is no forwarder. A cluster
    that is registered again keeps the way it sends unless an option changes it.

    With -f, every SveltosCluster in the files is registered, with the kubeconfig in its Secret, or
    changed to match, eight at once. Each cluster has a line (registered, renewed, configured,
    unchanged) or an error. If one fails, the others are registered all the same, and the exit code
    is 1. With -f, --dry-run calls no cluster, and lists the add-ons that the change removes.

    With --applyset and --prune, clusters that were registered from files as members of the set, and
    are no longer in the files, are deregistered, as by `bellhop deregister cluster`. A cluster that
    is registered by hand is not a member. If a cluster fails, nothing is pruned.
    """
    from bellhop.cli.credentials import read_kubeconfig

    options = RegistrationOptions(**asked)
    options.refuse_contradictions()
    if paths:
        if key or namespace or cluster or kubeconfig or kube_context:
            raise click.UsageError("name either one cluster and its --kubeconfig, or files by -f")
        from bellhop.cli.declared_clusters import preview_all, read_clusters, register_all

        options.refuse_what_is_declared()
        refuse_prune_without_set(applyset, prune=prune, allow_empty=allow_empty)
        found = read_clusters(paths, applyset, recursive=recursive, allow_empty=allow_empty)
        act = preview_all if dry_run else register_all
        act(found, options, applyset, renew=renew, prune=prune)
        return
    if recursive or renew or dry_run or applyset is not None or prune or allow_empty:
        raise click.UsageError(
            "--recursive, --renew, --dry-run, --applyset, --prune and --allow-empty belong to -f"
        )
    if kubeconfig is None:
        raise click.UsageError("give the cluster's --kubeconfig, or files that declare it by -f")
    place = _read_name(key, namespace, cluster)
    given = read_kubeconfig(kubeconfig, kube_context)
    here = session.open_installation(create=True)
    _register(here, place, given.kubeconfig, options, login=given.login)


@command.command(
    "cluster-eks",
    usage=("NAMESPACE/NAME --eks NAME [OPTIONS]",),
    examples=(_EKS, _EKS_OF_ANOTHER),
)
@cluster_argument(required=False)
@cluster_option
@click.option("--eks", required=True, metavar="NAME", help="The cluster's name in EKS.")
@click.option(
    "--region", metavar="REGION", default="", help="Its region; by default the installation's."
)
@click.option(
    "--assume-role",
    metavar="ARN",
    default="",
    help="For a cluster of another account: a role there, which you and the functions assume to"
    " reach it.",
)
@click.option(
    "--external-id",
    metavar="ID",
    default="",
    help="The external ID that the trust policy of --assume-role asks for.",
)
@registration_options
def cluster_eks(
    key: str | None,
    namespace: str,
    cluster: str,
    eks: str,
    region: str,
    assume_role: str,
    external_id: str,
    **asked: Any,
) -> None:
    """Add an EKS cluster to the fleet, or renew its registration: AWS roles are used to reach it.

    No kubeconfig is stored. The registration uses your own permissions in the cluster; the
    functions use their own roles. The command prints the `aws` commands that grant access to these.

    The cluster of another account is reached by a role of that account, which trusts the functions'
    roles and you. Its ARN has to be in `eks_roles` of the Terraform module, too. A cluster that is
    registered again without --assume-role is no longer reached by the role.
    """
    from bellhop.registration.managed_clusters import EKS, ClusterRequest

    if external_id and not assume_role:
        raise click.UsageError("--external-id belongs to --assume-role")
    request = ClusterRequest(EKS, eks, region, assume_role, external_id)
    _register_managed(request, _read_name(key, namespace, cluster), RegistrationOptions(**asked))


@command.command("cluster-gke", usage=("NAMESPACE/NAME --gke NAME [OPTIONS]",), examples=(_GKE,))
@cluster_argument(required=False)
@cluster_option
@click.option(
    "--gke",
    required=True,
    metavar="NAME",
    help="The cluster in GKE: NAME in the installation's project and region, LOCATION/NAME"
    " in its project, or projects/PROJECT/locations/LOCATION/clusters/NAME.",
)
@registration_options
def cluster_gke(key: str | None, namespace: str, cluster: str, gke: str, **asked: Any) -> None:
    """Add a GKE cluster to the fleet, or renew its registration.

    Accounts of Google Cloud are used to reach it, and no kubeconfig is stored. The registration
    uses your own permissions in the cluster; the functions use their own service accounts. The
    command prints the `gcloud` and `kubectl` commands that grant access to these. A cluster without
    a public address is reached through the Connect gateway if it is in a fleet, otherwise at its
    private address.
    """
    from bellhop.registration.managed_clusters import GKE, ClusterRequest

    _register_managed(
        ClusterRequest(GKE, gke), _read_name(key, namespace, cluster), RegistrationOptions(**asked)
    )


def _register_managed(
    request: ClusterRequest, place: tuple[str, str], options: RegistrationOptions
) -> None:
    """Register a cluster that a cloud manages, and print the commands that grant access."""
    from bellhop.cli.providers.provider import load_provider

    options.refuse_contradictions()
    context = session.choose_context()
    opened = session.open_context(click.get_current_context())
    click.get_current_context().find_root().call_on_close(opened.close)
    found = load_provider(context).find_cluster(context, opened, request)
    _register(opened.installation, place, found.kubeconfig, options, managed=(found.name, request))
    err = options.print_manifests
    if found.over:
        say(f"  over         {found.over}", err=err)
    say(f"  let in       the functions, once, by who may do so in {request.service}:", err=err)
    for line in found.entries:
        say(f"    {line}", err=err)


def _read_name(key: str | None, namespace: str, cluster: str) -> tuple[str, str]:
    """Read the name of a new cluster."""
    from bellhop.core.names import name_problem, namespace_problem

    namespace, name = read_cluster_name(key, namespace, cluster)
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
    options: RegistrationOptions,
    *,
    managed: tuple[str, ClusterRequest] | None = None,
    login: bool = False,
) -> None:
    """Register a cluster and print the result; after a `login`, with an account for Bellhop."""
    from bellhop.cli.options import read_labels
    from bellhop.cli.removal_warnings import say_held
    from bellhop.registration.registration import register

    labels = None if options.labels is None else read_labels(options.labels)
    spec = replace(
        specify_registration(here, place, kubeconfig, options),
        labels=labels,
        applyset="",
        pauses=_read_pauses(here, options),
    )
    if managed:
        name, request = managed
        roles = {"assume_role": request.assume_role, "external_id": request.external_id}
        spec = replace(spec, managed=name, **roles)
    if login:
        spec = _replace_login(here, spec, err=options.print_manifests)
    done = register(here, spec)
    if options.print_manifests:
        secret = [done.secret] if options.show_secrets and done.secret else []
        show_manifests([*spec.manifests(done.image), *secret])
    report_registration(done, spec, err=options.print_manifests)
    say_held(here.declare.held)
    if spec.forwarder:
        warn_of_unanswered_url(here, spec.inbound)


def _replace_login(here: Installation, spec: Registration, *, err: bool) -> Registration:
    """Replace a person's credentials with those of an account for Bellhop in the cluster."""
    from bellhop.registration.service_account import ACCOUNT, create_account

    own = create_account(here, spec.key, spec.kubeconfig)
    say(f"Service account '{ACCOUNT}' is in the cluster; your own login is not stored.", err=err)
    return replace(spec, kubeconfig=own)


def _read_pauses(here: Installation, options: RegistrationOptions) -> Mapping[str, Any]:
    """Return the fields of a pause that the options set; others keep their values."""
    paused = {"paused": True} if options.paused else {}
    if not (options.active_from and options.active_to):
        return paused
    from bellhop.core.windows import read_window
    from bellhop.operations.pause import format_window

    now = here.records.clock.now()
    return paused | format_window(read_window(options.active_from, options.active_to, now))
