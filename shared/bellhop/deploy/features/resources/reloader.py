"""Restarts workloads when what their pods read has changed: by an annotation of the pod template.

    planned ─► what is read is not what it was ─► applied ─► read once more ─► annotated ─► noted

Objects are read again when a workload is written, after the ConfigMaps and Secrets of its own
profile: so one restart is enough for all changes. The annotation is an applied field like any
other, and stays until the next change. A deleted or new object restarts a workload only if it is
optional for its pods: they wait for the others. All is read with Bellhop's own credentials, as in
Sveltos.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.resources.planning import Desired
from bellhop.deploy.pod_references import is_changed, is_workload, mark, marked, mounted, state
from bellhop.errors import DeniedError, MissingError
from bellhop.ports.kube import Access, Kube
from bellhop.state.deployment import Held


class Reloader:
    """Reads the ConfigMaps and Secrets of workloads."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def mark_changed(
        self, context: ReconcileContext, desired: Iterable[Desired]
    ) -> tuple[Desired, ...]:
        """Mark workloads whose objects have changed as uncertain; return the objects, annotated.

        The objects that a workload read are unknown until it is applied for the first time with
        `reloader`.
        """
        desired = tuple(desired)
        if context.profile.rollout.reloads:
            written = {
                each.key.identity for each in desired if not _is_held(each, context.progress.held)
            }
            for each in desired:
                held = context.progress.held.get(each.key.identity)
                if held and held.digest and is_workload(each.key.identity):
                    self._compare(context, each, held, written)
        return tuple(
            _annotated(each, context.progress.held.get(each.key.identity)) for each in desired
        )

    def _compare(
        self, context: ReconcileContext, each: Desired, held: Held, written: set[Identity]
    ) -> None:
        reads = mounted(each.manifest, each.key.namespace)
        now = self._read(context, reads, held.mounted)
        new = any(str(key) not in held.mounted for key in reads if str(key) in now)
        if new or written.intersection(reads) or is_changed(held.mounted, now):
            context.progress.held[each.key.identity] = replace(held, digest="")

    def annotate(
        self, context: ReconcileContext, each: Desired, before: Held
    ) -> tuple[Desired, Held]:
        """Return a workload as it is to be written now, and what is to be noted of what it reads.

        An object that is no workload stays as it was noted.
        """
        if not is_workload(each.key.identity):
            return each, before
        now = self._read(context, mounted(each.manifest, each.key.namespace), before.mounted)
        reloaded = mark(now) if is_changed(before.mounted, now) else before.reloaded
        before = replace(before, mounted=now, reloaded=reloaded)
        return _annotated(each, before), before

    def _read(
        self, context: ReconcileContext, reads: Mapping[Identity, bool], before: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the state of what is there, and of what pods may lack; else what it was last."""
        kube = self._access.open(context.cluster.key, version=context.cluster.credentials)
        found: dict[str, str] = {}
        for key, optional in reads.items():
            name, said = str(key), _state(kube, key)
            if said is None:
                context.progress.unreadable.add(key)
            if said is None or (not said and not optional):
                # Unknown, or deleted: pods that need it cannot be restarted with it.
                found |= {name: before[name]} if name in before else {}
            else:
                found[name] = said
        return found


def _state(kube: Kube, key: Identity) -> str | None:
    """Return the state of an object, empty where there is none; None where nobody may know."""
    try:
        there = kube.get(*key.at("v1"))
    except MissingError:
        return ""
    except DeniedError:
        return None
    return state(there) if there else ""


def _is_held(each: Desired, held: Mapping[Identity, Held]) -> bool:
    found = held.get(each.key.identity)
    return found is not None and found.digest == each.digest


def _annotated(each: Desired, held: Held | None) -> Desired:
    if held is None or not held.reloaded:
        return each
    return replace(each, manifest=marked(each.manifest, held.reloaded))
