"""From files to the clusters that they declare: SveltosClusters, and Secrets with kubeconfigs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace
from pydantic import ValidationError

from bellhop.cli.holding import say_held, say_plan
from bellhop.cli.options import DRY
from bellhop.cli.output import count, say
from bellhop.cli.reading import documents, files
from bellhop.errors import BellhopError, ConflictError, InvalidError
from bellhop.fleet.declared_clusters import (
    DeclaredCluster,
    Settled,
    Specify,
    rehearse,
    relabelled,
    settle,
)
from bellhop.fleet.installation import Installation
from bellhop.model.core import without_server_fields
from bellhop.model.document import Document, InvalidDocuments
from bellhop.model.kinds import Secret, parse
from bellhop.model.problems import mistakes
from bellhop.model.removal import HeldRemoval
from bellhop.model.sveltos_cluster import KIND, VERSIONS, WITHOUT_EFFECT, SveltosCluster
from bellhop.stages.declare import Declare
from bellhop.stages.removals import RemovalPlan

_AT_ONCE = 8
"""Clusters that are registered at once: a registration mostly waits for its API server."""

Place = tuple[str, str]
"""Namespace and name."""


def read(paths: Sequence[str], *, recursive: bool) -> list[DeclaredCluster]:
    """Read the clusters that files declare, each with its Secret if that is among them.

    Raises:
        InvalidError: there is none, or with every mistake of all documents.
    """
    clusters: dict[str, tuple[Document, SveltosCluster]] = {}
    secrets: dict[Place, Secret] = {}
    problems: list[InvalidError] = []
    for document in documents(files(paths, recursive=recursive)):
        try:
            found = parse_one(document)
            if isinstance(found, Secret):
                secrets[found.namespace, found.name] = found
                continue
            _refuse_a_second(found, document, clusters)
            clusters[found.key] = document, found
        except InvalidDocuments as error:
            problems.extend(error.problems)
        except InvalidError as error:
            problems.append(error)
    if problems:
        raise InvalidDocuments(problems)
    if not clusters:
        raise InvalidError(f"cannot register from {', '.join(paths)}: it has no {KIND}")
    return [_with_secret(each, secrets) for _, each in clusters.values()]


def settle_all(
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
        declare = Declare(here.records, here.catalogs, here.publisher, here.settings)
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


def rehearse_all(here: Installation, clusters: Sequence[DeclaredCluster], *, renew: bool) -> int:
    """Say what would become of each cluster and its add-ons, and return how many would fail."""
    failed = 0
    for cluster in clusters:
        try:
            change = rehearse(here, cluster, renew=renew)
        except BellhopError as error:
            say(f"error: {cluster.manifest.key}: {error}", err=True)
            failed += 1
        else:
            say(f"cluster/{cluster.manifest.key} {change}{DRY}")
    say_plan(_foresee(here, clusters))
    return failed


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


def _with_secret(cluster: SveltosCluster, secrets: dict[Place, Secret]) -> DeclaredCluster:
    secret = secrets.get((cluster.namespace, cluster.secret))
    return DeclaredCluster(cluster, secret.decoded() if secret else None)


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
