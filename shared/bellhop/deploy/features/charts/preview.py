"""Previews of plans, by Helm's own dry run and its records of releases.

A release that a plan leaves as it is may be compared with the cluster, object by object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.core.gvk import Identity, ObjectKey
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.charts.drift_exclusions import excluded_of
from bellhop.deploy.features.charts.planning import Deploy, Leave, Remove
from bellhop.deploy.features.charts.preflight import Preflight
from bellhop.deploy.features.charts.release_objects import documents, objects_in
from bellhop.deploy.object_diff import compare
from bellhop.deploy.ownership import Ownership, is_owned_by_other
from bellhop.errors import ConflictError, MissingError, PermanentError
from bellhop.ports.charts import Archive, DesiredRelease, Helm, Release
from bellhop.ports.kube import Kube
from bellhop.rendering.drift_exclusions import paths, withheld
from bellhop.rendering.secrecy import KIND as SECRET
from bellhop.rendering.secrecy import withhold_quotes
from bellhop.state.chart import HeldRelease
from bellhop.state.deployment import Change

_Objects = Mapping[Identity, dict[str, Any]]


class Preview:
    """Asks Helm what steps would do."""

    def __init__(self, ownership: Ownership, preflight: Preflight) -> None:
        self._ownership = ownership
        self._preflight = preflight

    def deploy(
        self,
        helm: Helm,
        context: ReconcileContext,
        kubeconfig: bytes,
        step: Deploy,
        found: tuple[Archive, DesiredRelease],
    ) -> Iterator[Change]:
        """Yield the changes of a release that is deployed, and of its objects."""
        key, (archive, request) = step.key, found
        # The release may have values of a Secret; of another profile's this is unknown.
        secret = step.desired.secret or step.held is None or step.held.secret
        try:
            self._ownership.check(context.cluster.key, key, context.profile)
            with withhold_quotes(f"cannot dry-run '{key.name}'", secret=step.desired.secret):
                there = self._preflight.find(context, helm, kubeconfig, step.desired)
                then = _read(helm.charts.dry_run(kubeconfig, request), key.namespace)
                now: _Objects = {}
                if there:
                    text = helm.charts.manifest(kubeconfig, key.namespace, key.name)
                    now = _read(text, key.namespace)
        except ConflictError as error:
            yield Change(key, "Conflict", str(error))
            return
        except PermanentError as error:
            yield Change(key, "Error", str(error))
            return
        chart = f"{archive.chart} {archive.version}"
        if not now:
            yield Change(key, "Create", f"by chart {chart}")
        else:
            before = f"{there.chart} {there.version}" if there else ""
            yield Change(key, "Update", f"from {before} to {chart}" if before != chart else chart)
        yield from _compared(now, then, secret=secret)

    def leave(
        self, helm: Helm, context: ReconcileContext, kubeconfig: bytes, step: Remove | Leave
    ) -> Iterator[Change]:
        """Yield the change of a release that is removed or released."""
        key = step.key
        found = helm.charts.release(kubeconfig, key.namespace, key.name)
        if is_owned_by_other(context.profile.name, self._ownership.read(context.cluster.key, key)):
            yield Change(key, "No Action", "another profile has it by now")
        elif isinstance(step, Leave):
            yield Change(key, "No Action", "it stays, and is nobody's")
        elif found is None:
            yield Change(key, "No Action", "it is gone already")
        elif not found.ours and not (isinstance(step, Remove) and step.desired):
            yield Change(key, "No Action", "it is there, and no profile made it")
        else:
            yield Change(key, "Delete")

    def stay(
        self, helm: Helm, kube: Kube, context: ReconcileContext, kubeconfig: bytes, key: Identity
    ) -> Iterator[Change]:
        """Yield the changes by others to a release, which another deployment reverts.

        Fields that the chart does not write are not compared.
        """
        held = context.progress.held[key]
        assert held.release
        try:
            there = helm.charts.release(kubeconfig, key.namespace, key.name)
            found = _of_release(key, there, held.release)
            if found:
                yield found
                return
            text = helm.charts.manifest(kubeconfig, key.namespace, key.name)
            changes = list(_drifted(kube, context, key.namespace, text, secret=held.secret))
        except PermanentError as error:
            yield Change(key, "Error", str(error))
            return
        said = "objects of it differ" if changes else "it is as it was deployed"
        yield Change(key, "Update" if changes else "No Action", said)
        yield from changes


def _of_release(key: Identity, there: Release | None, held: HeldRelease) -> Change | None:
    """Return the change of a release that somebody removed or deployed; None of any other."""
    if there is None or there.status == "uninstalled":
        if held.removed:
            return Change(key, "No Action", "it is gone already")
        return Change(key, "Create", "somebody uninstalled it")
    if held.removed:
        return Change(key, "Delete")
    if there.revision == held.revision:
        return None
    said = f"somebody deployed revision {there.revision} after revision {held.revision}"
    return Change(key, "Update", said)


def _drifted(
    kube: Kube, context: ReconcileContext, namespace: str, manifest: str, *, secret: bool
) -> Iterator[Change]:
    """Yield the objects of a release that are missing or not as its manifest has them."""
    for key, each in objects_in(manifest, namespace, kube.resource):
        name = key.identity
        try:
            there = kube.get(*key)
            if there is None:
                yield Change(name, "Create", "it is missing in the cluster")
                continue
            placed = {**each, "metadata": {**each["metadata"], "namespace": key.namespace}}
            excluded = paths(excluded_of(context.profile), placed)
            desired = withheld(placed, there, excluded) if excluded else placed
            hidden = secret or name.kind == SECRET
            with withhold_quotes(f"cannot compare {name.kind} '{name.name}'", secret=hidden):
                then = kube.apply(desired, dry_run=True)
        except MissingError as error:
            yield Change(name, "Create", str(error))
            continue
        except PermanentError as error:
            yield Change(name, "Error", str(error))
            continue
        differs, said, diff = compare(there, then, secret=secret)
        if differs:
            yield Change(name, "Update", said, diff)


def _read(manifest: str, namespace: str) -> _Objects:
    """Return the objects of a manifest; without a namespace one is in the release's."""
    found: dict[Identity, dict[str, Any]] = {}
    for each in documents(manifest):
        key = ObjectKey.of(each).identity
        found[key._replace(namespace=key.namespace or namespace)] = each
    return found


def _compared(now: _Objects, then: _Objects, *, secret: bool) -> Iterator[Change]:
    for key, each in then.items():
        if key not in now:
            yield Change(key, "Create")
            continue
        differs, said, diff = compare(now[key], each, secret=secret)
        if differs:
            yield Change(key, "Update", said, diff)
    yield from (Change(key, "Delete") for key in now if key not in then)
