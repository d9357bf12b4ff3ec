"""`bellhop show`: what is deployed, what happened, and what is wrong."""

from __future__ import annotations

from typing import Any

import click

from bellhop.cli import output
from bellhop.cli.clusters import cluster_option, known
from bellhop.cli.completion import complete_cluster, complete_profile
from bellhop.cli.examples import Command, Group
from bellhop.cli.lines import line_options
from bellhop.cli.options import (
    JSON,
    WIDE,
    YAML,
    form_of,
    headers_option,
    output_option,
    state_option,
    verbose_option,
)
from bellhop.cli.output import Column, say
from bellhop.cli.session import installation, looking

ADDONS = (
    Column("CLUSTER", "cluster"),
    Column("RESOURCE TYPE", "resourceType"),
    Column("NAMESPACE", "namespace"),
    Column("NAME", "name"),
    Column("VERSION", "version"),
    Column("AGE", "time", shown=lambda value: output.age_now(value) if value else "applying"),
    Column("PROFILES", "profiles", shown=", ".join),
    Column("TIME", "time", wide=True, shown=output.stamp),
    Column("DEPLOYMENT TYPE", "deploymentType", wide=True),
    Column("FROM", "from", wide=True),
    Column("STATE", "state", wide=True),
)
USAGE = (
    Column("RESOURCE KIND", "kind"),
    Column("RESOURCE NAMESPACE", "namespace"),
    Column("RESOURCE NAME", "name"),
    Column("CLUSTERS", "clusters", shown=", ".join, prose=True),
)
RESOURCES = (
    Column("CLUSTER", "cluster"),
    Column("GVK", "gvk"),
    Column("NAMESPACE", "namespace"),
    Column("NAME", "name"),
    Column("MESSAGE", "message", prose=True),
)
FAILURES = (
    Column("WHAT", "what", style="red"),
    Column("WHICH", "which", prose=True),
    Column("SINCE", "since", shown=lambda value: output.stamp(value) or "-"),
    Column("COUNT", "count", wide=True),
    Column("SENTENCE", "sentence", prose=True),
)
UPDATES = (
    Column("CLUSTER", "cluster"),
    Column("NAMESPACE", "namespace"),
    Column("RELEASE NAME", "releaseName"),
    Column("CURRENT VERSION", "currentVersion"),
    Column("NEWER VERSION", "newerVersion", shown=lambda value: value or "-"),
    Column("NEWER PATCH VERSION", "newerPatchVersion", shown=lambda value: value or "-"),
    Column("MESSAGE", "error", prose=True),
)
ORPHANS = (
    Column("CLUSTER", "cluster"),
    Column("OBJECT", "object"),
    Column("OF", "profile"),
    Column("SINCE", "since", wide=True, shown=output.stamp),
)


@click.group(
    "show",
    cls=Group,
    examples=("bellhop show addons", "bellhop show events -f", "bellhop show failures"),
)
@state_option
def command() -> None:
    """Show deployed objects, events and problems."""


@command.command(
    "addons",
    cls=Command,
    examples=(
        "bellhop show addons --namespace prod --cluster eu-1",
        "bellhop show addons --profile ClusterProfile/kyverno -o json",
    ),
)
@cluster_option
@click.option(
    "--profile",
    "--clusterprofile",
    "profile",
    default="",
    metavar="[KIND/]NAME",
    shell_complete=complete_profile,
    help="Only rows of this profile.",
)
@click.option("--resources", is_flag=True, help="Only objects that are not from Helm charts.")
@click.option("--helm-charts", is_flag=True, help="Only Helm charts.")
@verbose_option
@headers_option
@output_option
@state_option
def addons(  # noqa: PLR0913 - one parameter an option
    *,
    namespace: str,
    cluster: str,
    profile: str,
    resources: bool,
    helm_charts: bool,
    verbose: bool,
    form: str,
    headers: bool,
) -> None:
    """Show which objects are deployed where, and by which profile.

    A Helm chart is one row; --verbose also lists its objects.
    """
    if resources and helm_charts:
        raise click.UsageError("--resources and --helm-charts leave nothing to show")
    from bellhop.cli.addons import Wanted
    from bellhop.cli.addons import addons as found
    from bellhop.cli.queries import profile_named
    from bellhop.diagnosis.names import meant

    named = profile_named(profile)
    here = installation()
    charts = helm_charts if resources or helm_charts else None
    parts = verbose or form == WIDE
    key = known(here, cluster, namespace)
    rows = found(here, Wanted(namespace, key, meant(here, named), charts, parts))
    form = form_of(form, verbose=verbose)
    output.present(ADDONS, rows, form, nothing="No add-ons found.", headers=headers)


@command.command(
    "dryrun",
    cls=Command,
    examples=("bellhop show dryrun", "bellhop show dryrun --profile web --raw-diff"),
)
@cluster_option
@click.option(
    "--profile",
    default="",
    metavar="[KIND/]NAME",
    shell_complete=complete_profile,
    help="Only rows of this profile.",
)
@click.option(
    "--raw-diff",
    is_flag=True,
    help="Print a line for each object that would change, and its diff, instead of a table.",
)
@verbose_option
@headers_option
@output_option
@state_option
def dryrun(
    *,
    namespace: str,
    cluster: str,
    profile: str,
    raw_diff: bool,
    verbose: bool,
    form: str,
    headers: bool,
) -> None:
    """Show the changes that profiles with the syncMode DryRun would make.

    The result is from the last change of the profile or its inputs, or from the last resync;
    `bellhop diff` calls the clusters now. Values of Secrets are hidden.
    """
    from bellhop.cli import previews
    from bellhop.cli.queries import profile_named
    from bellhop.diagnosis.names import Titled, meant
    from bellhop.operations.previews import noted, tried_dry

    word = profile_named(profile)
    here = installation()
    named, titled = meant(here, word), Titled(here)
    key = known(here, cluster, namespace)
    found = noted(here, key, named)
    if namespace and not cluster:
        found = (each for each in found if each.cluster.startswith(f"{namespace}/"))
    nothing = previews.nothing(tried_dry(here, key, named), titled)
    if not raw_diff or form in {JSON, YAML}:
        rows = previews.rows(found, titled)
        form = form_of(form, verbose=verbose)
        output.present(previews.COLUMNS, rows, form, nothing=nothing, headers=headers)
        return
    told = False
    for line in previews.texts(found, titled):
        told = True
        say(line)
    if not told:
        say(nothing, err=True)


@command.command(
    "usage",
    cls=Command,
    examples=("bellhop show usage", "bellhop show usage --kind ConfigMap --namespace default"),
)
@click.option(
    "--kind", metavar="KIND", default="", help="ClusterProfile, Profile, ConfigMap or Secret."
)
@click.option(
    "--namespace",
    metavar="NAMESPACE",
    default="",
    help="Namespace of the Profiles, ConfigMaps and Secrets.",
)
@click.option("--name", metavar="NAME", default="", help="Name of one.")
@verbose_option
@headers_option
@output_option
@state_option
def usage(*, kind: str, namespace: str, name: str, verbose: bool, form: str, headers: bool) -> None:
    """Show which clusters use each profile, ConfigMap and Secret."""
    from bellhop.cli.addons import usage as found

    rows = found(installation(), kind, namespace, name)
    form = form_of(form, verbose=verbose)
    output.present(USAGE, rows, form, nothing="Nothing is in use.", headers=headers)


@command.command(
    "resources",
    cls=Command,
    examples=("bellhop show resources --kind Service", "bellhop show resources --full -o yaml"),
)
@click.option("--group", metavar="GROUP", default="", help="Group of the objects.")
@click.option("--kind", metavar="KIND", default="", help="Kind of the objects.")
@click.option("--namespace", metavar="NAMESPACE", default="", help="Namespace of the objects.")
@click.option(
    "--cluster-namespace", metavar="NAMESPACE", default="", help="Namespace of the cluster."
)
@click.option(
    "--cluster",
    default="",
    metavar="[NAMESPACE/]NAME",
    shell_complete=complete_cluster,
    help="Only this cluster.",
)
@click.option(
    "--full", is_flag=True, help="Print the objects themselves, without values of Secrets."
)
@verbose_option
@headers_option
@output_option
@state_option
def resources(  # noqa: PLR0913 - one parameter an option
    *,
    group: str,
    kind: str,
    namespace: str,
    cluster_namespace: str,
    cluster: str,
    full: bool,
    verbose: bool,
    form: str,
    headers: bool,
) -> None:
    """Show objects that EventSources match, and those that HealthChecks find unhealthy."""
    from bellhop.cli.resources import Wanted, manifests, rows

    here = installation()
    key = known(here, cluster, cluster_namespace)
    wanted = Wanted(cluster_namespace, key, group, kind, namespace)
    if full:
        output.objects(manifests(here, wanted), JSON if form == JSON else YAML)
        return
    found = rows(here, wanted)
    form = form_of(form, verbose=verbose)
    output.present(RESOURCES, found, form, nothing="No resources found.", headers=headers)


@command.command(
    "events",
    cls=Command,
    examples=(
        "bellhop show events --since 10m",
        "bellhop show events --follow --cluster prod/eu-1",
        "bellhop show events --trace 3f9a1c20 -o json",
    ),
)
@line_options
def events(**asked: Any) -> None:
    """Show the event log: events, what they matched and rendered, and where that was applied.

    It has one block for each event, oldest first; with --follow or -o wide it has single lines,
    with -o json one object a line.
    """
    from bellhop.cli import event_log

    event_log.show(installation(), **asked)


@command.command("failures", cls=Command, examples=("bellhop show failures",))
@headers_option
@output_option
@state_option
def failures(form: str, *, headers: bool) -> None:
    """Show all current problems, one sentence for each cause.

    The effects of a cause are counted. Clusters that were not reached within the last minute are
    called, in parallel and for four seconds at most. Nothing is changed, and `bellhop serve` need
    not run.
    """
    from bellhop.cli.commands.status import NOT_COMPARED
    from bellhop.diagnosis.cluster_calls import silent
    from bellhop.diagnosis.failures import failures as found

    here = looking()
    rows = (
        {
            "what": each.what,
            "which": each.which,
            "since": each.at,
            "count": each.several,
            "sentence": each.sentence,
        }
        for each in found(here, silent(here))
    )
    nothing = f"No problem is known. {NOT_COMPARED}"
    output.present(FAILURES, rows, form, nothing=nothing, headers=headers)


@command.command(
    "helm-updates", cls=Command, examples=("bellhop show helm-updates --cluster prod/eu-1",)
)
@cluster_option
@verbose_option
@headers_option
@output_option
@state_option
def helm_updates(*, namespace: str, cluster: str, verbose: bool, form: str, headers: bool) -> None:
    """Show Helm releases with a newer chart version in their repository.

    The repositories are called from this machine, with the profile's credentials for them, in
    parallel and for 30 seconds at most. If one does not answer, or refuses, its message says so.
    """
    from bellhop.diagnosis.helm_updates import updates

    here = installation()
    rows = (
        {
            "cluster": each.cluster,
            "namespace": each.release.namespace,
            "releaseName": each.release.name,
            "currentVersion": each.current,
            "newerVersion": each.newer,
            "newerPatchVersion": each.patch,
            "error": each.error,
        }
        for each in updates(here, namespace, known(here, cluster, namespace))
    )
    form = form_of(form, verbose=verbose)
    output.present(UPDATES, rows, form, nothing="No newer versions found.", headers=headers)


@command.command("orphans", cls=Command, examples=("bellhop show orphans --cluster prod/eu-1",))
@cluster_option
@headers_option
@output_option
@state_option
def orphans(namespace: str, cluster: str, form: str, *, headers: bool) -> None:
    """Show orphans: objects that Bellhop applied and that no profile owns.

    Each resync checks the kinds that profiles own in a cluster, `bellhop resync --full` also the
    other usual ones. `bellhop delete orphans` deletes them.
    """
    from bellhop.diagnosis.names import Titled
    from bellhop.diagnosis.orphans import strays as found
    from bellhop.diagnosis.overview import object_name

    here = installation()
    key, titled = known(here, cluster, namespace), Titled(here)
    rows = (
        {
            "cluster": each.cluster,
            "object": object_name(each.key),
            "profile": titled.shown(each.finding.profile),
            "since": each.finding.since,
        }
        for each in found(here, key)
    )
    output.present(ORPHANS, rows, form, nothing="No orphans found.", headers=headers)
