"""Deploy, second half: one profile to one cluster, from plan to inventory.

  inventory says "held by me until …, these have begun"
      ─► claim, apply, each object ─► remove ─► inventory says "held", and lets go

The inventory is a lease and its own fence: it names who is at work, and every write of it is
conditional on the one before. A process killed in between has written down what it may have
applied, so that the next neither forgets nor repeats: server-side apply of the same object
changes nothing. Should two believe to hold it, the one whose write fails adds what it did as
unsure, and the next try puts it in order. And since a worker that was slow may have carried out
what is wanted no more, it looks again at the profile when it has ended.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from bellhop.engine.allowing import NotAllowedError, refuse_placed
from bellhop.engine.catalog import cluster_object
from bellhop.engine.instantiate import deploy_time
from bellhop.engine.pacing import retry_timer, spread
from bellhop.engine.planning import OWNER, Plan, Wanted, decorate, plan, undecorate, wanted
from bellhop.engine.secrecy import KIND as SECRET
from bellhop.engine.secrecy import unquoted
from bellhop.errors import (
    BellhopError,
    BusyError,
    ConflictError,
    MissingError,
    PermanentError,
    StaleError,
    TemporaryError,
)
from bellhop.gotemplate import Limits
from bellhop.messages import Apply, Publisher
from bellhop.model.gvk import GVK, Identity, ObjectKey
from bellhop.model.record import Cluster, Held, Inventory, Outcome, Phase, Profile
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.ports.store import ABSENT
from bellhop.records import Kept, Records
from bellhop.settings import Settings
from bellhop.stages.claim import Claims, Taken
from bellhop.stages.ledger import Note, noting

_ROUNDS = 4
_RETRIES = 8
_DOUBLINGS = 16
_SOON = timedelta(seconds=5)
"""Pauses up to this are left to the queue: a kind may be about to be served."""

_INPUTS = frozenset({"Template", "Script", "Conflict"})
"""Failures that only a change of what users declared can cure."""


@dataclass
class _Work:
    """One execution under way; `holder` is its name in the inventory.

    `registered` is the token of the cluster's record as it was read.
    """

    message: Apply
    profile: Profile
    cluster: Cluster
    registered: str
    held: dict[Identity, Held]
    token: str
    begun_at: datetime
    holder: str
    before: Mapping[Identity, Held] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    failed: list[BellhopError] = field(default_factory=list)
    unfinished: bool = False

    @property
    def wanted(self) -> bool:
        """Say whether the cluster is to have the profile, and not to lose it."""
        return self.cluster.key in self.profile.destinations


class Execute:
    """Applies profiles to clusters and withdraws them.

    Where it is `alone`, no other process works on these records: what another one holds is held
    by a dead one.
    """

    def __init__(
        self,
        records: Records,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        *,
        alone: bool = False,
    ) -> None:
        self._mark = uuid.uuid4().hex[:8] if alone else ""
        self._records = records
        self._access = access
        self._publisher = publisher
        self._settings = settings
        self._claims = Claims(records, publisher)
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)

    def handle(self, message: Apply) -> None:
        """Bring one cluster to what one profile wants there; every try starts from the records.

        Raises:
            BusyError: another worker is at it.
            TemporaryError: it failed, and is to be tried again soon.
        """
        for _ in range(_ROUNDS):
            if self._once(message):
                return
        raise StaleError(f"cannot apply '{message.profile}': it changes all the time")

    def _once(self, message: Apply) -> bool:
        """Do it once; False if the profile became another one meanwhile."""
        cluster = message.destination
        kept = self._records.inventories.get(cluster, message.profile)
        inventory = kept.value if kept else Inventory(cluster, message.profile, {})
        self._refuse_busy(inventory)
        found = self._found(message)
        if found is None and not inventory.held:
            # Somebody slow may have noted how it went after the profile was closed.
            self._left(_closed(message), cluster)
            return True
        profile = found.value if found else _closed(message)
        record = self._records.clusters.get(cluster)
        if record is None:
            self._left(profile, cluster)
            return True
        work = _Work(
            message=message,
            profile=profile,
            cluster=record.value,
            registered=record.token,
            held=dict(inventory.held),
            token=kept.token if kept else ABSENT,
            begun_at=self._records.clock.now(),
            holder=self._mark + uuid.uuid4().hex[:8],
        )
        with noting(self._records, message, cluster, profile.object) as note:
            note.context = {"profile": profile.name, "trigger": profile.trigger}
            try:
                self._bring(work)
            except StaleError:
                return False
            except BellhopError as error:
                if not self._stands(work):
                    return False
                self._failed(work, error, note)
                return True
            if work.changed:
                note.what = "applied" if work.wanted else "removed"
                note.detail = ", ".join(work.changed)
        return self._stands(work)

    def _found(self, message: Apply) -> Kept[Profile] | None:
        """Read the profile; to leave a cluster, its contents need not be there."""
        place = (message.trigger, message.cluster, message.profile)
        try:
            return self._records.profiles.get(*place)
        except MissingError:
            head = self._records.profiles.head(*place)
            if head and message.destination in head.value.destinations:
                raise
            return head

    def _refuse_busy(self, inventory: Inventory) -> None:
        now = self._records.clock.now()
        alive = bool(inventory.holder) and inventory.holder.startswith(self._mark)
        if alive and inventory.until and inventory.until > now:
            raise BusyError(
                f"cannot apply '{inventory.profile}' to '{inventory.cluster}': another worker is"
                " at it",
                delay=inventory.until - now,
            )

    def _stands(self, work: _Work) -> bool:
        """Say whether what was carried out is still what is wanted."""
        message = work.message
        found = self._records.profiles.head(message.trigger, message.cluster, message.profile)
        if found is None:
            return not work.wanted
        now = found.value
        if work.wanted != (work.cluster.key in now.destinations):
            return False
        if not work.wanted:
            return True
        # Templates read the labels of the cluster, and another one may have come in its place.
        cluster = self._records.clusters.get(work.cluster.key)
        same = cluster is not None and cluster.token == work.registered
        return same and now.revision == work.profile.revision

    def _bring(self, work: _Work) -> None:
        if work.message.contested:
            self._doubt(work, Identity.parse(work.message.contested))
        steps = plan(self._objects(work) if work.wanted else (), work.held)
        if steps.apply or steps.remove:
            self._carry_out(work, steps)
        if work.failed:
            raise work.failed[0]
        if work.unfinished:
            self._publisher.publish([replace(work.message, contested="")])
        elif work.wanted:
            self._settle(work)
        else:
            self._left(work.profile, work.cluster.key)

    def _doubt(self, work: _Work, key: Identity) -> None:
        """Take for uncertain what is said to have changed hands, or to have been overwritten."""
        held = work.held.pop(key, None)
        if held and not self._claims.taken_from(work.cluster.key, key, work.profile.name):
            work.held[key] = replace(held, digest="", secret=True)

    def _objects(self, work: _Work) -> tuple[Wanted, ...]:
        """Return the objects for this cluster, each in the scope its kind has there."""
        root = cluster_object(work.cluster)
        contents = [
            deploy_time(content, root, limits=self._limits) for content in work.profile.contents
        ]
        kube = self._access.open(work.cluster.key, version=work.cluster.credentials)
        crds = _kinds_defined(contents)
        placed = tuple(
            self._placed(kube, each, crds) for each in wanted(contents, tier=work.profile.tier)
        )
        refuse_placed(work.profile, (each.key for each in placed))
        return placed

    def _placed(self, kube: Kube, each: Wanted, crds: Mapping[tuple[str, str], bool]) -> Wanted:
        gvk, namespace, name = each.key
        resource = kube.resource(gvk)
        namespaced = resource.namespaced if resource else crds.get((gvk.group, gvk.kind), True)
        namespace = (namespace or "default") if namespaced else ""
        return replace(each, key=ObjectKey(gvk, namespace, name))

    # Steps --------------------------------------------------------------------------------------

    def _carry_out(self, work: _Work, steps: Plan) -> None:
        """Carry a plan out, for as long as a turn lasts; the inventory keeps what was done."""
        kube = self._access.open(work.cluster.key, version=work.cluster.credentials)
        work.before = dict(work.held)
        self._begin(work, steps)
        self._hold(work)
        try:
            for each in steps.apply:
                if self._overdue(work):
                    return
                self._apply(kube, work, each)
            if not work.failed:
                # A profile that could not be applied as a whole takes nothing away.
                for key in steps.remove:
                    if self._overdue(work):
                        return
                    self._remove(kube, work, key)
        finally:
            self._keep(work)

    def _begin(self, work: _Work, steps: Plan) -> None:
        """Take nothing for certain of what is about to change: we may die before we can tell."""
        for each in steps.apply:
            key = each.key.identity
            begun = work.held.get(key) or Held("", each.ref, version=each.key.gvk.version)
            # Another life may begin: if the one we knew is gone, applying makes the next.
            work.held[key] = replace(begun, digest="", uid="", secret=True)
        for key in steps.remove:
            work.held[key] = replace(work.held[key], digest="")

    def _overdue(self, work: _Work) -> bool:
        """Say whether others are to have their turn; one object at least is worked on."""
        used = self._records.clock.now() - work.begun_at
        done = bool(work.changed or work.failed)
        work.unfinished = done and used > self._settings.turn
        return work.unfinished

    def _apply(self, kube: Kube, work: _Work, each: Wanted) -> None:
        taken: Taken | None = None
        key = each.key.identity
        try:
            taken = self._claims.take(work.cluster.key, key, work.profile)
            manifest = decorate(each, work.profile.name, work.profile.tier)
            with _overtaken(), unquoted(f"cannot apply {_named(work, key)}", secret=each.secret):
                try:
                    stored = kube.apply(manifest)
                except MissingError:
                    if not self._make_namespace(kube, each.key):
                        raise
                    stored = kube.apply(manifest)
            # Between the claim and the apply another profile may have taken the object.
            self._claims.take(work.cluster.key, key, work.profile)
        except PermanentError as error:
            if isinstance(error, ConflictError):
                self._lost(work, key, applied=taken is not None)
            else:
                self._let_go(work, key, taken)
            work.failed.append(_may_appear(error))
            return
        work.held[key] = Held(
            digest=each.digest,
            ref=each.ref,
            applied_at=self._records.clock.now(),
            version=each.key.gvk.version,
            uid=_uid(stored),
            secret=each.secret,
        )
        work.changed.append(f"{key.kind} {key.name}")

    def _lost(self, work: _Work, key: Identity, *, applied: bool) -> None:
        """Hold an object no more that another has; tell the owner if we may have overwritten it."""
        before = work.before.get(key)
        if applied or (before and not before.digest):
            self._claims.tell_owner(work.cluster.key, key)
        del work.held[key]

    def _let_go(self, work: _Work, key: Identity, taken: Taken | None) -> None:
        """Hold of an object that was refused what was held before.

        Where a claim is not new, an earlier try may have applied it.
        """
        if taken and not taken.new:
            return
        if taken:
            self._claims.give_back(work.cluster.key, key, work.profile, taken.before)
        if key in work.before:
            work.held[key] = work.before[key]
        else:
            del work.held[key]

    def _make_namespace(self, kube: Kube, key: ObjectKey) -> bool:
        """Create the namespace of an object, as Sveltos does; say whether it was missing."""
        gvk = GVK("", "v1", "Namespace")
        if not key.namespace or kube.get(gvk, "", key.namespace) is not None:
            return False
        kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.namespace}})
        return True

    def _remove(self, kube: Kube, work: _Work, key: Identity) -> None:
        """Remove what we applied; what somebody made in its place since is not ours.

        What we hold and nobody has is ours: the claim may have been forgotten with the cluster's
        former life, while we were at work.
        """
        cluster, name = work.cluster.key, work.profile.name
        if not self._claims.taken_from(cluster, key, name):
            secret = key.kind == SECRET or work.held[key].secret
            try:
                with _overtaken(), unquoted(f"cannot remove {_named(work, key)}", secret=secret):
                    gone = self._remove_ours(kube, work, key)
            except MissingError:
                gone = True  # The kind itself is gone, and its objects with it.
            except PermanentError as error:
                work.failed.append(error)
                return
            if self._claims.taken_from(cluster, key, name):
                # It was taken between the question and the removal.
                self._claims.tell_owner(cluster, key)
            self._claims.give_up(cluster, key, name)
            if gone:
                work.changed.append(f"{key.kind} {key.name}")
        elif not work.before[key].digest:
            # An earlier try may have removed it for good after it was taken.
            self._claims.tell_owner(cluster, key)
        del work.held[key]

    def _remove_ours(self, kube: Kube, work: _Work, key: Identity) -> bool:
        held = work.held[key]
        gvk, namespace, name = key.at(held.version)
        if not work.wanted and work.profile.leaves_policies:
            # It stays, and is nobody's: with our marks it would be taken for a stray.
            there = kube.get(gvk, namespace, name)
            if there is not None and _owner(there) == work.profile.name:
                kube.merge(gvk, namespace, name, undecorate(there))
            return False
        uid = held.uid
        if not uid:
            # Nobody came back to say whether it was applied: its marks tell.
            there = kube.get(gvk, namespace, name)
            if there is None or _owner(there) != work.profile.name:
                return False
            uid = _uid(there)
        return kube.remove(gvk, namespace, name, uid=uid)

    # The inventory ------------------------------------------------------------------------------

    def _hold(self, work: _Work) -> None:
        """Say that we are at work, and what may be applied from now on.

        Raises:
            StaleError: another worker was quicker.
        """
        until = self._records.clock.now() + self._settings.visibility
        inventory = Inventory(work.cluster.key, work.profile.name, work.held, work.holder, until)
        work.token = self._records.inventories.put(inventory, expect=work.token)

    def _keep(self, work: _Work) -> None:
        """Say what is held, and that nobody is at work any more."""
        inventory = Inventory(work.cluster.key, work.profile.name, work.held)
        try:
            work.token = self._records.inventories.put(inventory, expect=work.token)
        except StaleError:
            self._add(work)
            raise

    def _add(self, work: _Work) -> None:
        """Note what another worker and we did, so that the next try puts it in order."""
        for key in [key for key, held in work.held.items() if held.digest]:
            self._claim_again(work, key)
        for _ in range(_RETRIES):
            kept = self._records.inventories.get(work.cluster.key, work.profile.name)
            there = kept.value if kept else Inventory(work.cluster.key, work.profile.name, {})
            token = kept.token if kept else ABSENT
            both = {**there.held, **work.held}
            unsure = {
                key: held
                if there.held.get(key) == work.held.get(key)
                else replace(held, digest="", uid="", secret=True)
                for key, held in both.items()
            }
            try:
                self._records.inventories.put(replace(there, held=unsure), expect=token)
            except StaleError:
                continue
            return

    def _claim_again(self, work: _Work, key: Identity) -> None:
        """Own what was applied after another worker had given it up."""
        with suppress(ConflictError):
            self._claims.take(work.cluster.key, key, work.profile)

    # Outcomes -----------------------------------------------------------------------------------

    def _settle(self, work: _Work) -> None:
        """Note that all is as it should be; only the inputs of the profile may be wrong still."""
        kept = self._records.outcomes.get(work.cluster.key, work.profile.name)
        old, profile = kept.value if kept else None, work.profile
        phase: Phase = "FailedNonRetriable" if profile.error else "Provisioned"
        if old and not work.changed and (old.phase, old.message) == (phase, profile.error):
            return
        if old and old.retry_at:
            self._records.timers.cancel(retry_timer(work.cluster.key, work.profile.name))
        self._records.outcomes.put(
            self._outcome(work, phase, reason=profile.error_code, message=profile.error)
        )

    def _failed(self, work: _Work, error: BellhopError, note: Note) -> None:
        """Note what failed, and have it tried again where its cause may pass.

        Raises:
            TemporaryError: the next try is so soon that the queue had better keep the message.
        """
        note.what, note.detail = "failed", str(error)
        kept = self._records.outcomes.get(work.cluster.key, work.profile.name)
        failures = (kept.value.failures if kept else 0) + 1
        pause = self._pause(work, error, failures)
        at = self._records.clock.now() + pause if pause else None
        if pause and pause > _SOON:
            body = replace(work.message, trace="", rang="").message().body
            self._records.timers.set(
                retry_timer(work.cluster.key, work.profile.name), at or work.begun_at, body
            )
        inputs = error.code in _INPUTS or isinstance(error, NotAllowedError)
        phase: Phase = "FailedNonRetriable" if inputs else "Failed"
        outcome = self._outcome(work, phase, reason=error.code, message=str(error))
        self._records.outcomes.put(replace(outcome, failures=failures, retry_at=at))
        if pause and pause <= _SOON:
            raise TemporaryError(str(error), delay=pause)

    def _pause(self, work: _Work, error: BellhopError, failures: int) -> timedelta | None:
        """Say how long to wait; each pause is twice as long, and there is no end to patience.

        None where only a change of what users declared can help: it asks for a try itself.
        """
        if isinstance(error, (ConflictError, NotAllowedError)):
            # Those who wait are told, but an owner remembers only so many of them; and nobody
            # tells of a kind that is served by now, and so known to have no namespace.
            return spread(work.message.group, self._settings.retry_ceiling)
        if error.code in _INPUTS:
            return None
        pause = self._settings.retry_first * 2 ** min(failures - 1, _DOUBLINGS)
        asked = error.delay if isinstance(error, TemporaryError) else None
        pause = max(min(pause, self._settings.retry_ceiling), asked or timedelta(0))
        return spread(f"{work.message.group}/{failures}", pause)

    def _outcome(self, work: _Work, phase: Phase, *, reason: str, message: str) -> Outcome:
        return Outcome(
            cluster=work.cluster.key,
            profile=work.profile.name,
            trigger=work.profile.trigger,
            source=work.profile.cluster,
            phase=phase,
            at=self._records.clock.now(),
            reason=reason,
            message=message,
        )

    def _left(self, profile: Profile, cluster: str) -> None:
        """Note that a cluster holds nothing of a profile; the last one closes a withdrawn one."""
        if self._records.outcomes.delete(cluster, profile.name):
            self._records.timers.cancel(retry_timer(cluster, profile.name))
        for _ in range(_RETRIES):
            found = self._records.profiles.head(profile.trigger, profile.cluster, profile.name)
            if found is None or cluster in found.value.destinations:
                return
            leaving = tuple(each for each in found.value.leaving if each != cluster)
            new = replace(found.value, leaving=leaving)
            try:
                if new.destinations or new.leaving or new.digest or new.error:
                    self._records.profiles.put_head(new, expect=found.token)
                else:
                    self._records.profiles.delete(
                        new.trigger, new.cluster, new.name, expect=found.token
                    )
            except StaleError:
                continue
            return
        raise StaleError(f"cannot close profile '{profile.name}': other writers keep winning")


@contextmanager
def _overtaken() -> Iterator[None]:
    """Tell what a cluster says was overtaken from a write of ours that was: it is an outcome."""
    try:
        yield
    except StaleError as error:
        raise TemporaryError(str(error), delay=error.delay) from None


def _closed(message: Apply) -> Profile:
    """Return a profile that is no more as one that wants nothing, for what may be left of it."""
    return Profile(
        name=message.profile,
        trigger=message.trigger,
        cluster=message.cluster,
        object="",
        contents=(),
        destinations=(),
        leaving=(),
        tier=0,
        leaves_policies=False,
        continue_on_conflict=False,
        digest="",
    )


def _uid(manifest: Mapping[str, Any]) -> str:
    return str((manifest.get("metadata") or {}).get("uid") or "")


def _owner(manifest: Mapping[str, Any]) -> str:
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(OWNER) or "")


def _named(work: _Work, key: Identity) -> str:
    place = "/".join(filter(None, (key.namespace, key.name)))
    return f"{key.kind} '{place}' on cluster '{work.cluster.key}'"


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
