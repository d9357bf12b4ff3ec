"""The clusters that files declare: SveltosClusters, and Secrets with their kubeconfigs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace
from pydantic import ValidationError

from bellhop.api.kinds import Secret, parse
from bellhop.api.manifest import without_server_fields
from bellhop.api.problems import mistakes
from bellhop.api.sveltos_cluster import KIND, VERSIONS, WITHOUT_EFFECT, SveltosCluster
from bellhop.cli import session
from bellhop.cli.manifest_files import list_files, read_files
from bellhop.cli.options import DRY
from bellhop.cli.output import format_count, say
from bellhop.cli.registrations import specify_registration, warn_of_unanswered_url
from bellhop.cli.removal_warnings import say_held, say_plan
from bellhop.cli.selection import for_each
from bellhop.core.sveltos_annotations import APPLYSET
from bellhop.declarations.apply import ManifestWriter
from bellhop.declarations.deletion_guard import RemovalPlan
from bellhop.declarations.records import HeldRemoval
from bellhop.documents.document import Document, InvalidDocuments
from bellhop.errors import BellhopError, ConflictError, InvalidError
from bellhop.installation import Installation
from bellhop.operations.applysets import check_name
from bellhop.operations.cluster_applysets import ClusterApplySet
from bellhop.registration.declared_clusters import (
    ClusterResult,
    DeclaredCluster,
    Specify,
    apply_cluster,
    list_label_changes,
    preview_cluster,
)

_AT_ONCE = 8
"""Clusters that are registered at once: a registration mostly waits for its API server."""

if TYPE_CHECKING:
    from bellhop.cli.registrations import RegistrationOptions
    from bellhop.clusters.kubeconfig import Kubeconfig
    from bellhop.installation import Inbound
    from bellhop.registration.request import Registration

Place = tuple[str, str]
"""Namespace and name."""


def read_clusters(
    paths: Sequence[str], applyset: str | None, *, recursive: bool, allow_empty: bool
) -> list[DeclaredCluster]:
    """Read the clusters that files declare, each with its Secret if that is among them."""
    if applyset is not None:
        check_name(applyset)
    clusters: dict[str, tuple[Document, SveltosCluster]] = {}
    secrets: dict[Place, Secret] = {}
    problems: list[InvalidError] = []
    given = list_files(paths, recursive=recursive, allow_empty=allow_empty)
    whole = applyset is not None and not allow_empty
    for document in read_files(given, validate=False, whole=whole):
        try:
            found = parse_document(document)
            if isinstance(found, Secret):
                secrets[found.namespace, found.name] = found
                continue
            _refuse_duplicate(found, document, clusters)
            _refuse_another_set(found, document, applyset)
            clusters[found.key] = document, found
        except InvalidDocuments as error:
            problems.extend(error.problems)
        except InvalidError as error:
            problems.append(error)
    if problems:
        raise InvalidDocuments(problems)
    if not (clusters or allow_empty):
        raise InvalidError(f"cannot register from {', '.join(paths)}: it has no {KIND}")
    return [_add_secret(each, secrets, applyset or "") for _, each in clusters.values()]


def register_all(
    clusters: Sequence[DeclaredCluster],
    options: RegistrationOptions,
    applyset: str | None,
    *,
    renew: bool,
    prune: bool,
) -> None:
    """Register declared clusters, and deregister those that left their set; exit 1 on failure.

    If a cluster fails, none is deregistered.
    """
    here = session.open_installation(create=True)
    members = None if applyset is None else ClusterApplySet(here, applyset)
    sending: list[Inbound] = []

    def specify(cluster: SveltosCluster, kubeconfig: Kubeconfig) -> Registration:
        place = cluster.namespace, cluster.metadata.name
        spec = specify_registration(here, place, kubeconfig, options)
        sending.extend([spec.inbound] if spec.forwarder else [])
        return spec

    with members.leased() if members else nullcontext():
        left = members.left(_list_keys(clusters)) if members else []
        failed = _settle_all(here, clusters, specify, renew=renew)
        if here.inbound in sending:
            warn_of_unanswered_url(here, here.inbound)
        if members and prune and not failed:
            for_each(left, partial(_prune, members))
    if failed and prune and left:
        say(
            f"error: {format_count(len(left), 'cluster')} left the files, and none is pruned",
            err=True,
        )
    if failed:
        click.get_current_context().exit(1)


def _prune(members: ClusterApplySet, key: str) -> None:
    done = members.prune(key)
    if done:
        say(f"cluster/{key} pruned; the add-ons in it stay")
        if done.left:
            say(f"warning: {key}: {done.left}", err=True)


def _list_keys(clusters: Sequence[DeclaredCluster]) -> set[str]:
    return {each.manifest.key for each in clusters}


def _settle_all(
    here: Installation, clusters: Sequence[DeclaredCluster], specify: Specify, *, renew: bool
) -> int:
    """Register declared clusters, several at once, and return how many failed.

    Results are printed in the order of the clusters, each as soon as those before it are done.
    Those in conflict are attempted again at the end, one by one: of two names of one cluster both
    may have stepped back. After an exception such as Ctrl-C no further cluster is begun.
    """
    also = {each.rule for each in _foresee_removals(here, clusters).held}

    def attempt(
        cluster: DeclaredCluster,
    ) -> tuple[ClusterResult | BellhopError, Sequence[HeldRemoval]]:
        # `held` is what one change would remove: each cluster has its own.
        declare = ManifestWriter(here.records, here.catalogs, here.publisher, here.settings)
        declare.hold_also(also)
        try:
            done = apply_cluster(replace(here, declare=declare), cluster, specify, renew=renew)
        except BellhopError as error:
            return error, ()
        return done, declare.held

    failed, conflicting = 0, []
    pool = ThreadPoolExecutor(_AT_ONCE, "bellhop-register")
    try:
        for cluster, (done, held) in zip(clusters, pool.map(attempt, clusters), strict=True):
            if isinstance(done, ConflictError):
                conflicting.append(cluster)
                continue
            _report(cluster.manifest, done, held)
            failed += isinstance(done, BellhopError)
    finally:
        pool.shutdown(cancel_futures=True)
    for cluster in conflicting:
        done, held = attempt(cluster)
        _report(cluster.manifest, done, held)
        failed += isinstance(done, BellhopError)
    if failed:
        say(f"error: {failed} of {format_count(len(clusters), 'cluster')} failed", err=True)
    return failed


def preview_all(
    clusters: Sequence[DeclaredCluster],
    options: RegistrationOptions,
    applyset: str | None,
    *,
    renew: bool,
    prune: bool,
) -> None:
    """Print the change of each cluster, and removed add-ons; exit 1 if a cluster would fail."""
    del options
    here = session.open_installation()
    left = [] if applyset is None else ClusterApplySet(here, applyset).left(_list_keys(clusters))
    failed = 0
    for cluster in clusters:
        try:
            change = preview_cluster(here, cluster, renew=renew)
        except BellhopError as error:
            say(f"error: {cluster.manifest.key}: {error}", err=True)
            failed += 1
        else:
            say(f"cluster/{cluster.manifest.key} {change}{DRY}")
    say_plan(here, _foresee_removals(here, clusters))
    if prune and not failed:
        for key in left:
            say(f"cluster/{key} pruned; the add-ons in it stay{DRY}")
        say_plan(here, here.declare.foresee_deregistration(*left))
    if failed:
        click.get_current_context().exit(1)


def _foresee_removals(here: Installation, clusters: Sequence[DeclaredCluster]) -> RemovalPlan:
    """Return the removals by the labels of all clusters: one command is one change."""
    return here.declare.foresee_clusters(list_label_changes(here, clusters))


def _report(
    cluster: SveltosCluster, done: ClusterResult | BellhopError, held: Sequence[HeldRemoval]
) -> None:
    if isinstance(done, BellhopError):
        say(f"error: {cluster.key}: {done}", err=True)
        return
    say(f"cluster/{cluster.key} {done.change}")
    for warning in (*list_ineffective_fields(cluster), *done.warnings):
        say(f"warning: {cluster.key}: {warning}", err=True)
    if done.change != "unchanged":
        say_held(held)


def list_ineffective_fields(cluster: SveltosCluster) -> Iterator[str]:
    """Yield a sentence for each field of a cluster that has no effect."""
    said = cluster.spec.model_dump(by_alias=True, exclude_unset=True)
    yield from (f"spec.{name} has no effect in Bellhop" for name in WITHOUT_EFFECT if name in said)


def _refuse_duplicate(
    cluster: SveltosCluster,
    document: Document,
    clusters: Mapping[str, tuple[Document, SveltosCluster]],
) -> None:
    if cluster.key in clusters:
        other = clusters[cluster.key][0].where()
        raise InvalidError(
            f"cluster '{cluster.key}' is at {other} already; keep one of them",
            where=document.where(),
        )


def _refuse_another_set(cluster: SveltosCluster, document: Document, applyset: str | None) -> None:
    other = cluster.metadata.labels.get(APPLYSET, applyset)
    if applyset is not None and other != applyset:
        raise InvalidError(
            f"its label says applyset '{other}', and it is registered as '{applyset}'; remove the"
            " label",
            where=document.where(("metadata", "labels", APPLYSET)),
        )


def _add_secret(
    cluster: SveltosCluster, secrets: dict[Place, Secret], applyset: str
) -> DeclaredCluster:
    secret = secrets.get((cluster.namespace, cluster.secret))
    return DeclaredCluster(cluster, secret.decoded() if secret else None, applyset)


def parse_document(document: Document) -> SveltosCluster | Secret:
    """Parse a document that declares a cluster, or the Secret of one."""
    data = document.data
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind == "Secret":
        found = parse(document)
        assert isinstance(found, Secret)
        return found
    if kind != KIND or data.get("apiVersion") not in VERSIONS:
        raise InvalidError(
            f"clusters are registered from a {KIND} ({VERSIONS[0]}) and its Secret, and from"
            " nothing else; `bellhop apply` takes what else is declared",
            where=document.where(),
        )
    try:
        return SveltosCluster.model_validate(without_server_fields(data))
    except ValidationError as error:
        sentences = mistakes(error, SveltosCluster, ())
        problems = [InvalidError(said, where=document.where(path)) for path, said in sentences]
    raise InvalidDocuments(problems)
