"""Restarts workloads when what their pods read has changed: by an annotation of the pod template.

    planned ─► what is read is not what it was ─► applied ─► read once more ─► annotated ─► noted

What is read is looked at again when a workload is written, after the ConfigMaps and Secrets of its
own profile: so one restart is enough for all that changed. The annotation is a field of ours as any
other, and stays until the next change. What is gone, or came since, restarts nothing but where pods
could do without it: they wait for what they need. All is read with our own rights, as in Sveltos.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.resources.planning import Desired
from bellhop.deploy.pod_references import is_changed, is_workload, mark, marked, mounted, state
from bellhop.errors import DeniedError, MissingError
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.state.record import Held


class Reloader:
    """Knows what workloads read in clusters."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def look(self, work: ReconcileContext, wanted: Iterable[Desired]) -> tuple[Desired, ...]:
        """Take for unsure what reads something else than it did; return what is wanted, annotated.

        Who is applied for the first time since this is asked for has nobody know what it read.
        """
        wanted = tuple(wanted)
        if work.profile.rollout.reloads:
            written = {each.key.identity for each in wanted if not _is_held(each, work.held)}
            for each in wanted:
                held = work.held.get(each.key.identity)
                if held and held.digest and is_workload(each.key.identity):
                    self._look_at(work, each, held, written)
        return tuple(_annotated(each, work.held.get(each.key.identity)) for each in wanted)

    def _look_at(
        self, work: ReconcileContext, each: Desired, held: Held, written: set[Identity]
    ) -> None:
        reads = mounted(each.manifest, each.key.namespace)
        now = self._read(work, reads, held.mounted)
        new = any(str(key) not in held.mounted for key in reads if str(key) in now)
        if new or written.intersection(reads) or is_changed(held.mounted, now):
            work.held[each.key.identity] = replace(held, digest="")

    def read_now(
        self, work: ReconcileContext, each: Desired, held: Held | None
    ) -> tuple[Desired, Held]:
        """Return a workload as it is to be written now, and what is to be noted of what it reads.

        Of what is none, or is not to be restarted, what was noted stays.
        """
        before = held or Held("", each.ref)
        if not (work.profile.rollout.reloads and is_workload(each.key.identity)):
            return each, before
        now = self._read(work, mounted(each.manifest, each.key.namespace), before.mounted)
        reloaded = mark(now) if is_changed(before.mounted, now) else before.reloaded
        before = replace(before, mounted=now, reloaded=reloaded)
        return _annotated(each, before), before

    def _read(
        self, work: ReconcileContext, reads: Mapping[Identity, bool], before: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the state of what is there, and of what pods may lack; else what it was last."""
        kube = self._access.open(work.cluster.key, version=work.cluster.credentials)
        found: dict[str, str] = {}
        for key, optional in reads.items():
            name, said = str(key), _state(kube, key)
            if said is None:
                work.unread.add(key)
            if said is None or (not said and not optional):
                # Unknown, or gone: pods that need it cannot be restarted with it.
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
