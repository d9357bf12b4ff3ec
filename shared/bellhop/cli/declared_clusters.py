"""From files to the clusters that they declare: SveltosClusters, and Secrets with kubeconfigs."""

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
from bellhop.cli.manifest_files import documents, files
from bellhop.cli.options import DRY
from bellhop.cli.output import count, say
from bellhop.cli.registrations import specified, warn_of_silence
from bellhop.cli.removal_warnings import say_held, say_plan
from bellhop.cli.selection import for_each
from bellhop.core.sveltos_annotations import APPLYSET
from bellhop.declarations.apply import ManifestWriter
from bellhop.declarations.deletion_guard import RemovalPlan
from bellhop.documents.document import Document, InvalidDocuments
from bellhop.errors import BellhopError, ConflictError, InvalidError
from bellhop.installation.installation import Installation
from bellhop.operations.applysets import refuse_name
from bellhop.operations.cluster_applysets import ClusterApplySet
from bellhop.registration.declared_clusters import (
    DeclaredCluster,
    Settled,
    Specify,
    rehearse,
    relabelled,
    settle,
)
from bellhop.state.held_removal import HeldRemoval

_AT_ONCE = 8
"""Clusters that are registered at once: a registration mostly waits for its API server."""

if TYPE_CHECKING:
    from bellhop.cli.registration_options import RegistrationOptions
    from bellhop.clusters.kubeconfig import Kubeconfig
    from bellhop.installation.installation import Inbound
    from bellhop.registration.registration import Registration

Place = tuple[str, str]
"""Namespace and name."""


def read(
    paths: Sequence[str], applyset: str | None, *, recursive: bool, allow_empty: bool
) -> list[DeclaredCluster]:
    """Read the clusters that files declare, each with its Secret if that is among them.

    Raises:
        InvalidError: there is none, unless that is allowed, or with every mistake of all documents.
    """
    if applyset is not None:
        refuse_name(applyset)
    clusters: dict[str, tuple[Document, SveltosCluster]] = {}
    secrets: dict[Place, Secret] = {}
    problems: list[InvalidError] = []
    given = files(paths, recursive=recursive, allow_empty=allow_empty)
    whole = applyset is not None and not allow_empty
    for document in documents(given, validate=False, whole=whole):
        try:
            found = parse_one(document)
            if isinstance(found, Secret):
                secrets[found.namespace, found.name] = found
                continue
            _refuse_a_second(found, document, clusters)
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
    return [_with_secret(each, secrets, applyset or "") for _, each in clusters.values()]


def register_all(
    clusters: Sequence[DeclaredCluster],
    wishes: RegistrationOptions,
    applyset: str | None,
    *,
    renew: bool,
    prune: bool,
) -> None:
    """Register clusters as declared, and deregister those that left their set; exit 1 on failure.

    If any of them fails, none is deregistered.
    """
    here = session.installation(create=True)
    members = None if applyset is None else ClusterApplySet(here, applyset)
    sending: list[Inbound] = []

    def specify(cluster: SveltosCluster, kubeconfig: Kubeconfig) -> Registration:
        place = cluster.namespace, cluster.metadata.name
        spec = specified(here, place, kubeconfig, wishes)
        sending.extend([spec.inbound] if spec.forwarder else [])
        return spec

    with members.leased() if members else nullcontext():
        left = members.left(_keys(clusters)) if members else []
        failed = _settle_all(here, clusters, specify, renew=renew)
        if here.inbound in sending:
            warn_of_silence(here, here.inbound)
        if members and prune and not failed:
            for_each(left, partial(_prune, members))
    if failed and prune and left:
        say(f"error: {count(len(left), 'cluster')} left the files, and none is pruned", err=True)
    if failed:
        click.get_current_context().exit(1)


def _prune(members: ClusterApplySet, key: str) -> None:
    done = members.prune(key)
    if done:
        say(f"cluster/{key} pruned; the add-ons in it stay")
        if done.left:
            say(f"warning: {key}: {done.left}", err=True)


def _keys(clusters: Sequence[DeclaredCluster]) -> set[str]:
    return {each.manifest.key for each in clusters}


def _settle_all(
    here: Installation, clusters: Sequence[DeclaredCluster], specify: Specify, *, renew: bool
) -> int:
    """Register clusters as declared, several at once, and return how many failed.

    Results are printed in the order of the clusters, each as soon as those before it are done.
    Those in conflict are attempted again at the end, one by one: of two names of one cluster both
    may have stepped back. After an exception such as Ctrl-C no further cluster is begun.
    """
    also = {each.rule for each in _foresee(here, clusters).held}

    def attempt(cluster: DeclaredCluster) -> tuple[Settled | BellhopError, Sequence[HeldRemoval]]:
        # `held` is what one change would remove: each cluster has its own.
        declare = ManifestWriter(here.records, here.catalogs, here.publisher, here.settings)
        declare.hold_also(also)
        try:
            done = settle(replace(here, declare=declare), cluster, specify, renew=renew)
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
        say(f"error: {failed} of {count(len(clusters), 'cluster')} failed", err=True)
    return failed


def rehearse_all(
    clusters: Sequence[DeclaredCluster],
    wishes: RegistrationOptions,
    applyset: str | None,
    *,
    renew: bool,
    prune: bool,
) -> None:
    """Say what would become of each cluster and its add-ons; exit 1 if any would fail."""
    del wishes
    here = session.installation()
    left = [] if applyset is None else ClusterApplySet(here, applyset).left(_keys(clusters))
    failed = 0
    for cluster in clusters:
        try:
            change = rehearse(here, cluster, renew=renew)
        except BellhopError as error:
            say(f"error: {cluster.manifest.key}: {error}", err=True)
            failed += 1
        else:
            say(f"cluster/{cluster.manifest.key} {change}{DRY}")
    say_plan(here, _foresee(here, clusters))
    if prune and not failed:
        for key in left:
            say(f"cluster/{key} pruned; the add-ons in it stay{DRY}")
        say_plan(here, here.declare.foresee_deregistration(*left))
    if failed:
        click.get_current_context().exit(1)


def _foresee(here: Installation, clusters: Sequence[DeclaredCluster]) -> RemovalPlan:
    """Return what the labels of all clusters remove: one command is one change."""
    return here.declare.foresee_clusters(relabelled(here, clusters))


def _report(
    cluster: SveltosCluster, done: Settled | BellhopError, held: Sequence[HeldRemoval]
) -> None:
    if isinstance(done, BellhopError):
        say(f"error: {cluster.key}: {done}", err=True)
        return
    say(f"cluster/{cluster.key} {done.change}")
    for warning in (*without_effect(cluster), *done.warnings):
        say(f"warning: {cluster.key}: {warning}", err=True)
    if done.change != "unchanged":
        say_held(held)


def without_effect(cluster: SveltosCluster) -> Iterator[str]:
    """Name the fields of a cluster that change nothing here."""
    said = cluster.spec.model_dump(by_alias=True, exclude_unset=True)
    yield from (f"spec.{name} has no effect in Bellhop" for name in WITHOUT_EFFECT if name in said)


def _refuse_a_second(
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


def _with_secret(
    cluster: SveltosCluster, secrets: dict[Place, Secret], applyset: str
) -> DeclaredCluster:
    secret = secrets.get((cluster.namespace, cluster.secret))
    return DeclaredCluster(cluster, secret.decoded() if secret else None, applyset)


def parse_one(document: Document) -> SveltosCluster | Secret:
    """Read a document that declares a cluster, or the Secret of one.

    Raises:
        InvalidDocuments: with every mistake of the document.
        InvalidError: it is of another kind.
    """
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
        told = mistakes(error, SveltosCluster, ())
        problems = [InvalidError(said, where=document.where(path)) for path, said in told]
    raise InvalidDocuments(problems)
