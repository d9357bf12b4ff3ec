"""`bellhop show`: deployed objects, events and problems."""

from __future__ import annotations

from typing import Any

import click

from bellhop.cli import output
from bellhop.cli.command import Group
from bellhop.cli.completion import complete_cluster, complete_profile
from bellhop.cli.options import (
    JSON,
    YAML,
)
from bellhop.cli.output import Column, say
from bellhop.cli.printer import Printer, line_options, printer_options
from bellhop.cli.selection import cluster_option, find_cluster
from bellhop.cli.session import open_installation, open_read_only

ADDONS = (
    Column("CLUSTER", "cluster"),
    Column("RESOURCE TYPE", "resourceType"),
    Column("NAMESPACE", "namespace"),
    Column("NAME", "name"),
    Column("VERSION", "version"),
    Column(
        "AGE", "time", shown=lambda value: output.format_age_now(value) if value else "applying"
    ),
    Column("PROFILES", "profiles", shown=", ".join),
    Column("TIME", "time", wide=True, shown=output.format_time),
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
    Column("SINCE", "since", shown=lambda value: output.format_time(value) or "-"),
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
    Column("SINCE", "since", wide=True, shown=output.format_time),
)


@click.group(
    "show",
    cls=Group,
    examples=("bellhop show addons", "bellhop show events -f", "bellhop show failures"),
)
def command() -> None:
    """Show deployed objects, events and problems."""


@command.command(
    "addons",
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
@printer_options(verbose=True)
def addons(
    *,
    namespace: str,
    cluster: str,
    profile: str,
    resources: bool,
    helm_charts: bool,
    printer: Printer,
) -> None:
    """Show which objects are deployed where, and by which profile.

    A Helm chart is one row; --verbose also lists its objects.
    """
    if resources and helm_charts:
        raise click.UsageError("--resources and --helm-charts leave nothing to show")
    from bellhop.cli.deployed import AddOnFilter
    from bellhop.cli.deployed import list_addons as found
    from bellhop.cli.queries import read_profile_name
    from bellhop.diagnosis.names import resolve_profile

    named = read_profile_name(profile)
    here = open_installation()
    charts = helm_charts if resources or helm_charts else None
    key = find_cluster(here, cluster, namespace)
    criteria = AddOnFilter(namespace, key, resolve_profile(here, named), charts, printer.wide)
    rows = found(here, criteria)
    printer.present(ADDONS, rows, nothing="No add-ons found.")


@command.command(
    "dryrun",
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
@printer_options(verbose=True)
def dryrun(
    *,
    namespace: str,
    cluster: str,
    profile: str,
    raw_diff: bool,
    printer: Printer,
) -> None:
    """Show the changes that profiles with the syncMode DryRun would make.

    The result is from the last change of the profile or its inputs, or from the last resync;
    `bellhop diff` calls the clusters now. Values of Secrets are hidden.
    """
    from bellhop.cli import diffs
    from bellhop.cli.queries import read_profile_name
    from bellhop.diagnosis.names import ProfileNames, resolve_profile
    from bellhop.operations.previews import list_dry_run_profiles, list_dry_runs

    word = read_profile_name(profile)
    here = open_installation()
    named, titled = resolve_profile(here, word), ProfileNames(here)
    key = find_cluster(here, cluster, namespace)
    found = list_dry_runs(here, key, named)
    if namespace and not cluster:
        found = (each for each in found if each.cluster.startswith(f"{namespace}/"))
    nothing = diffs.explain_no_preview(list_dry_run_profiles(here, key, named), titled)
    if not raw_diff or printer.form in {JSON, YAML}:
        rows = diffs.make_preview_rows(found, titled)
        printer.present(diffs.PREVIEW_COLUMNS, rows, nothing=nothing)
        return
    shown = False
    for line in diffs.format_previews(found, titled):
        shown = True
        say(line)
    if not shown:
        say(nothing, err=True)


@command.command(
    "usage",
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
@printer_options(verbose=True)
def usage(*, kind: str, namespace: str, name: str, printer: Printer) -> None:
    """Show which clusters use each profile, ConfigMap and Secret."""
    from bellhop.cli.deployed import list_usage as found

    rows = found(open_installation(), kind, namespace, name)
    printer.present(USAGE, rows, nothing="Nothing is in use.")


@command.command(
    "resources",
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
@printer_options(verbose=True)
def resources(
    *,
    group: str,
    kind: str,
    namespace: str,
    cluster_namespace: str,
    cluster: str,
    full: bool,
    printer: Printer,
) -> None:
    """Show objects that EventSources match, and those that HealthChecks find unhealthy."""
    from bellhop.cli.deployed import ObjectFilter, list_resource_manifests, list_resources

    here = open_installation()
    key = find_cluster(here, cluster, cluster_namespace)
    criteria = ObjectFilter(cluster_namespace, key, group, kind, namespace)
    if full:
        output.print_objects(
            list_resource_manifests(here, criteria), JSON if printer.form == JSON else YAML
        )
        return
    found = list_resources(here, criteria)
    printer.present(RESOURCES, found, nothing="No resources found.")


@command.command(
    "events",
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

    event_log.show_events(open_installation(), **asked)


@command.command("failures", examples=("bellhop show failures",))
@printer_options()
def failures(*, printer: Printer) -> None:
    """Show all current problems, one sentence for each cause.

    The effects of a cause are counted. Clusters that were not reached within the last minute are
    called, in parallel and for four seconds at most. Nothing is changed, and `bellhop serve` need
    not run.
    """
    from bellhop.cli.commands.status import NOT_COMPARED
    from bellhop.diagnosis.calls import find_unanswered
    from bellhop.diagnosis.failures import list_failures as found

    here = open_read_only()
    rows = (
        {
            "what": each.type,
            "which": each.about,
            "since": each.since,
            "count": each.count,
            "sentence": each.message,
        }
        for each in found(here, find_unanswered(here))
    )
    nothing = f"No problem is known. {NOT_COMPARED}"
    printer.present(FAILURES, rows, nothing=nothing)


@command.command("helm-updates", examples=("bellhop show helm-updates --cluster prod/eu-1",))
@cluster_option
@printer_options(verbose=True)
def helm_updates(*, namespace: str, cluster: str, printer: Printer) -> None:
    """Show Helm releases with a newer chart version in their repository.

    The repositories are called from this machine, with the profile's credentials for them, in
    parallel and for 30 seconds at most. If one does not answer, or refuses, its message says so.
    """
    from bellhop.diagnosis.helm_updates import list_updates

    here = open_installation()
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
        for each in list_updates(here, namespace, find_cluster(here, cluster, namespace))
    )
    printer.present(UPDATES, rows, nothing="No newer versions found.")


@command.command("orphans", examples=("bellhop show orphans --cluster prod/eu-1",))
@cluster_option
@printer_options()
def orphans(*, namespace: str, cluster: str, printer: Printer) -> None:
    """Show orphans: objects that Bellhop applied and that no profile owns.

    Each resync checks the kinds that profiles own in a cluster, `bellhop resync --full` also the
    other usual ones. `bellhop delete orphans` deletes them.
    """
    from bellhop.diagnosis.names import ProfileNames, object_name
    from bellhop.diagnosis.orphans import list_orphans as found

    here = open_installation()
    key, titled = find_cluster(here, cluster, namespace), ProfileNames(here)
    rows = (
        {
            "cluster": each.cluster,
            "object": object_name(each.key),
            "profile": titled.shown(each.finding.profile),
            "since": each.finding.since,
        }
        for each in found(here, key)
    )
    printer.present(ORPHANS, rows, nothing="No orphans found.")
