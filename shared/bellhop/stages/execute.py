"""Deploy, second half: one profile to one cluster, from plan to inventory.

  inventory says "begun" ─► claim, apply, each object ─► prune ─► inventory says "held"

A process killed anywhere in between has written down what it may have applied, so that the next
try neither forgets nor repeats: server-side apply of the same object changes nothing. The same
goes for two at once, should one be so slow that its message is given to another: the inventory
is written on the condition that nobody else wrote it, and who loses adds what it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bellhop.engine.catalog import cluster_object
from bellhop.engine.instantiate import deploy_time
from bellhop.engine.planning import Plan, Wanted, decorate, plan, wanted
from bellhop.engine.render import Limits
from bellhop.errors import (
    BellhopError,
    ConflictError,
    MissingError,
    PermanentError,
    StaleError,
    TemporaryError,
)
from bellhop.model.gvk import GVK, ObjectKey
from bellhop.model.record import Held, Inventory, Outcome, Phase, Profile
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.ports.queue import Queue
from bellhop.records import Records
from bellhop.settings import Settings
from bellhop.stages.claim import Claims, Taken
from bellhop.stages.ledger import Note, noting

_RETRIES = 8


@dataclass
class _Work:
    """One execution under way."""

    body: Mapping[str, Any]
    profile: Profile
    cluster: str
    credentials: str
    held: dict[ObjectKey, Held]
    version: int
    again: bool
    changed: list[str] = field(default_factory=list)
    failed: list[BellhopError] = field(default_factory=list)


class Execute:
    """Applies profiles to clusters and withdraws them."""

    def __init__(self, records: Records, access: Access, queue: Queue, settings: Settings) -> None:
        self._records = records
        self._access = access
        self._queue = queue
        self._claims = Claims(records)
        self._limits = Limits(settings.template_seconds, settings.template_output)

    def handle(self, body: Mapping[str, Any], attempt: int) -> None:
        """Bring one cluster to what one profile wants there; every try starts from the records.

        Raises:
            TemporaryError: the cluster does not answer, or does not know a kind yet.
            PermanentError: an object cannot be applied; the others were.
        """
        cluster = body["destination"]
        found = self._records.profile(body["trigger"], body["cluster"], body["profile"])
        inventory, version = self._records.versioned_inventory(cluster, body["profile"])
        if found is None and not inventory.held:
            return
        profile = found[0] if found else _closed(body)
        record = self._records.cluster(cluster)
        if record is None:
            self._left(profile, cluster)
            return
        work = _Work(
            body,
            profile,
            cluster,
            record.credentials,
            dict(inventory.held),
            version,
            again=attempt > 1,
        )
        with noting(self._records, body, cluster, profile.object) as note:
            note.context = {"profile": profile.name, "trigger": profile.trigger}
            try:
                self._bring(work)
            except BellhopError as error:
                self._failed(work, error, note)
                raise
            if work.changed:
                note.what = "applied" if cluster in profile.destinations else "removed"
                note.detail = ", ".join(work.changed)

    def _bring(self, work: _Work) -> None:
        profile, cluster = work.profile, work.cluster
        if cluster not in profile.destinations and profile.leaves_policies:
            for key in work.held:
                self._queue.publish(self._claims.give_up(cluster, key, profile.name))
            work.held.clear()
            self._keep(work)
            self._left(profile, cluster)
            return
        if work.body.get("contested"):
            key = ObjectKey.parse(work.body["contested"])
            if not self._claims.owns(cluster, key, profile.name):
                work.held.pop(key, None)
        objects = self._objects(work) if cluster in profile.destinations else ()
        steps = plan(objects, work.held)
        if steps.apply or steps.remove:
            self._carry_out(work, steps)
        if work.failed:
            raise work.failed[0]
        if cluster in profile.destinations:
            self._settle(work, "Provisioned")
        else:
            self._left(profile, cluster)

    def _objects(self, work: _Work) -> tuple[Wanted, ...]:
        """Return the objects for this cluster, each in the scope its kind has there."""
        cluster = self._records.cluster(work.cluster)
        assert cluster is not None
        root = cluster_object(cluster)
        contents = [
            deploy_time(content, root, limits=self._limits) for content in work.profile.contents
        ]
        kube = self._access.open(work.cluster, version=work.credentials)
        crds = _kinds_defined(contents)
        return tuple(
            self._placed(kube, each, crds) for each in wanted(contents, tier=work.profile.tier)
        )

    def _placed(self, kube: Kube, each: Wanted, crds: Mapping[tuple[str, str], bool]) -> Wanted:
        gvk, namespace, name = each.key
        resource = kube.resource(gvk)
        namespaced = resource.namespaced if resource else crds.get((gvk.group, gvk.kind), True)
        namespace = (namespace or "default") if namespaced else ""
        return replace(each, key=ObjectKey(gvk, namespace, name))

    def _carry_out(self, work: _Work, steps: Plan) -> None:
        kube = self._access.open(work.cluster, version=work.credentials)
        begun = {each.key: Held("", each.ref) for each in steps.apply if each.key not in work.held}
        if begun:
            work.held.update(begun)
            self._keep(work)
        try:
            for each in steps.apply:
                self._apply(kube, work, each)
            if not work.failed:
                # A profile that could not be applied as a whole takes nothing away.
                for key in steps.remove:
                    self._remove(kube, work, key)
        finally:
            self._keep(work)

    def _apply(self, kube: Kube, work: _Work, each: Wanted) -> None:
        taken: Taken | None = None
        try:
            taken = self._claims.take(work.cluster, each.key, work.profile, again=work.again)
            self._queue.publish(taken.messages)
            manifest = decorate(each, work.profile.name, work.profile.tier)
            try:
                kube.apply(manifest)
            except MissingError:
                if not self._make_namespace(kube, each.key):
                    raise
                kube.apply(manifest)
        except PermanentError as error:
            self._let_go(work, each.key, taken)
            work.failed.append(_may_appear(error))
            return
        now = self._records.clock.now()
        work.held[each.key] = Held(each.digest, each.ref, now)
        work.changed.append(f"{each.key.gvk.kind} {each.key.name}")

    def _let_go(self, work: _Work, key: ObjectKey, taken: Taken | None) -> None:
        """Hold no object that was refused, unless an earlier try may have applied it."""
        if taken and not taken.new:
            return
        if taken:
            back = self._claims.give_back(work.cluster, key, work.profile, taken.before)
            self._queue.publish(back)
        if not work.held[key].digest:
            del work.held[key]

    def _make_namespace(self, kube: Kube, key: ObjectKey) -> bool:
        """Create the namespace of an object, as Sveltos does; say whether it was missing."""
        gvk = GVK("", "v1", "Namespace")
        if not key.namespace or kube.get(gvk, "", key.namespace) is not None:
            return False
        kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.namespace}})
        return True

    def _remove(self, kube: Kube, work: _Work, key: ObjectKey) -> None:
        if self._claims.owns(work.cluster, key, work.profile.name):
            try:
                kube.remove(key.gvk, key.namespace, key.name)
            except MissingError:
                pass  # The kind itself is gone, and its objects with it.
            except PermanentError as error:
                work.failed.append(error)
                return
            self._queue.publish(self._claims.give_up(work.cluster, key, work.profile.name))
            work.changed.append(f"{key.gvk.kind} {key.name}")
        del work.held[key]

    def _keep(self, work: _Work) -> None:
        inventory = Inventory(work.cluster, work.profile.name, work.held)
        try:
            work.version = self._records.put_inventory(inventory, expect=work.version)
        except StaleError:
            self._add(work)
            raise

    def _add(self, work: _Work) -> None:
        """Note what another worker and we did, so that the next try puts it in order."""
        for key in [key for key, held in work.held.items() if held.digest]:
            self._claim_again(work, key)
        for _ in range(_RETRIES):
            there, version = self._records.versioned_inventory(work.cluster, work.profile.name)
            both = {**there.held, **work.held}
            unsure = {
                key: held if there.held.get(key) == work.held.get(key) else replace(held, digest="")
                for key, held in both.items()
            }
            try:
                self._records.put_inventory(replace(there, held=unsure), expect=version)
            except StaleError:
                continue
            return

    def _claim_again(self, work: _Work, key: ObjectKey) -> None:
        """Own what was applied after another worker had given it up."""
        try:
            taken = self._claims.take(work.cluster, key, work.profile)
        except ConflictError:
            return
        self._queue.publish(taken.messages)

    # Outcomes -----------------------------------------------------------------------------------

    def _settle(self, work: _Work, phase: Phase, error: BellhopError | None = None) -> None:
        old = self._records.outcome(work.cluster, work.profile.name)
        if error is None and work.profile.error:
            phase, code, text = "FailedNonRetriable", work.profile.error_code, work.profile.error
        else:
            code, text = (error.code, str(error)) if error else ("", "")
        if old and not error and not work.changed and (old.phase, old.message) == (phase, text):
            return
        self._records.put_outcome(
            Outcome(
                cluster=work.cluster,
                profile=work.profile.name,
                trigger=work.profile.trigger,
                source=work.profile.cluster,
                phase=phase,
                at=self._records.clock.now(),
                reason=code,
                message=text,
                failures=(old.failures if old else 0) + 1 if error else 0,
            )
        )

    def _failed(self, work: _Work, error: BellhopError, note: Note) -> None:
        note.what, note.detail = "failed", str(error)
        phase: Phase = "Failed" if isinstance(error, TemporaryError) else "FailedNonRetriable"
        self._settle(work, phase, error)

    def _left(self, profile: Profile, cluster: str) -> None:
        """Note that a cluster holds nothing of a profile; the last one closes a withdrawn one."""
        self._records.delete_outcome(cluster, profile.name)
        for _ in range(_RETRIES):
            found = self._records.profile(profile.trigger, profile.cluster, profile.name)
            if found is None or cluster in found[0].destinations:
                return
            new = replace(
                found[0], leaving=tuple(each for each in found[0].leaving if each != cluster)
            )
            try:
                if new.destinations or new.leaving or new.digest or new.error:
                    self._records.put_profile(new, expect=found[1])
                else:
                    self._records.delete_profile(new, expect=found[1])
            except StaleError:
                continue
            return
        raise StaleError(f"cannot close profile '{profile.name}': other writers keep winning")


def _closed(body: Mapping[str, Any]) -> Profile:
    """Return a profile that is no more as one that wants nothing, for what may be left of it."""
    return Profile(
        name=body["profile"],
        trigger=body["trigger"],
        cluster=body["cluster"],
        object="",
        contents=(),
        destinations=(),
        leaving=(),
        tier=0,
        leaves_policies=False,
        continue_on_conflict=False,
        digest="",
    )


def _may_appear(error: PermanentError) -> BellhopError:
    """A kind that is missing may be about to be served: its definition comes first."""
    if isinstance(error, MissingError):
        return TemporaryError(str(error))
    return error


def _kinds_defined(contents: list[Any]) -> dict[tuple[str, str], bool]:
    """Say of each kind that the contents themselves define whether it is namespaced."""
    found = {}
    for content in contents:
        for manifest in content.manifests:
            if manifest["kind"] == "CustomResourceDefinition":
                spec = manifest.get("spec") or {}
                names = spec.get("names") or {}
                found[spec.get("group", ""), names.get("kind", "")] = spec.get("scope") != "Cluster"
    return found
