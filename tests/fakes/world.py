"""A fleet in which anything may happen, and a model that says what must be there in the end.

The model looks at what is declared and at the objects that exist, never at how it came.
"""

# ruff: noqa: FBT001, FBT002 - what happens is drawn, and given by position

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.core.identity import profile_name
from bellhop.errors import DeniedError, MissingError, TemporaryError, UnreachableError
from bellhop.operations import rollback
from bellhop.rendering.cloud_events import CloudEvent
from bellhop.settings import Settings
from bellhop.state.cluster import MANAGEMENT
from tests.fakes import rig
from tests.fakes.declared import (
    ALIVE,
    ALL,
    CHECKED,
    CHECKED_TEXT,
    CLASS,
    CLASSED,
    DECLARED,
    EACH,
    EACH_TEXT,
    FLIP,
    GRANT,
    GRANT_TEXT,
    GRANTED,
    HEALTH,
    HEARD,
    HERE_TEXT,
    HOSTED,
    JUDGED,
    LASTING,
    LASTING_TEXT,
    LOCAL,
    NEAR_TEXT,
    OWN,
    OWN_TEXT,
    PLAIN,
    READS,
    READS_TEXT,
    STEPS,
    TEAM,
    TEAM_SET,
    TEAM_TEXT,
    THEIRS,
    THEIRS_TEXT,
    THEN,
    THEN_TEXT,
    TOLD,
    WATCHED,
    Key,
)
from tests.fakes.fleet import SERVICE, Fleet, cloud_event
from tests.fakes.health import Watched
from tests.fakes.living import GADGET, WIDGET, Backup, LivingKube
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.fakes.read import WEBHOOK, WIRED
from tests.fakes.turns import Chooser, Drawn, Moves, Turns

CONFIG = GVK("", "v1", "ConfigMap")
ACCOUNT = GVK("", "v1", "ServiceAccount")
CLUSTERS = ("east", "west")
NAMES = ("a", "b")
MADE = "made"
"""Namespace of all objects that profiles deploy."""

_SECOND = timedelta(seconds=1)
_KINDS = {"Service": SERVICE, "ServiceAccount": ACCOUNT, "Widget": WIDGET}
_TENANT = ("team/ann", "Service", "default")
"""An account, and what it may see, if anything."""
_THEIRS = 4
"""The variant of a source that reads with its rights."""
_PATIENCE = 5
_ROUNDS = 60
"""Of work until nothing is due: of four hundred histories none took more than four."""

_LARGE = "".join(hashlib.sha256(number.to_bytes(2)).hexdigest() for number in range(3000))
"""190 KB that no compression makes small: more than a record keeps in its item."""

Step = tuple[Any, ...]
"""What happens: the name of a `do_` method, and what it is given."""

Thing = tuple[str, str]
"""Kind and name of an object in the namespace made."""


@dataclass(frozen=True)
class Wish:
    """A profile in the model: who it is, where it goes, and its objects."""

    name: str
    tier: int
    destinations: frozenset[str]
    objects: Mapping[Thing, str]
    """Values of objects; LEN stands for the number of the destination's labels."""
    lacks: bool = False
    """Whether it has something Local, and nobody hosts that."""


class World:
    """A fleet in which anything may happen, and what must be there in the end."""

    def __init__(
        self,
        folder: Path,
        clusters: Sequence[str] = CLUSTERS,
        *,
        guarded: bool = False,
        rung: bool = False,
    ) -> None:
        self.fate = Fate()
        # Others' objects are adopted, and may not be removed: the model need not know who asked.
        # Nor does it know the deletion guard, which holds whatever takes all of a small cluster.
        settings = Settings(adopt="always", hold_share=0)
        # A resync finds it: it sent no event.
        if rung:
            settings = replace(settings, sweep_interval=timedelta(days=365))
        self.rung = rung
        # Of two objects one that ends is held already, and none goes before it is known.
        if guarded:
            settings = replace(settings, hold_from=2, hold_share=0.4, hold_agreement=1)
        self.fleet: Fleet = Watched(folder, settings)
        self.recorded: list[tuple[str, Any]] = []
        self.refusing: set[str] = set()
        rig.interpose(self.fleet, self._wrap)
        self.clusters = clusters
        self.labels: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, str] = {}
        self.declared: dict[Key, int] = {}
        self.ever: set[Key] = set()
        self.form = 0
        self.deaths = 0
        self.last_moves: Moves = {}
        self.sweeps = 1
        self.late: list[tuple[str, dict[str, Any]]] = []
        self.hosted = False
        self.backups: dict[str, Backup] = {}
        self.told: dict[tuple[str, str], tuple[int, str, int]] = {}
        """The newest CloudEvent of a cluster and subject: when, what happened, and its data."""
        self.began = self.fleet.clock.now()
        self.ahead = timedelta(0)
        self.anybodys: set[tuple[str, Thing]] = set()
        """Objects that others wrote where ours were, or that a backup restored."""
        for name in clusters:
            self.fleet.access.clusters[f"fleet/{name}"] = LivingKube(f"fleet/{name}")
            self.labels[name] = {"env": "production", "dep": "eng"}
            self._register(name)

    def begin(self, declared: Mapping[Key, int]) -> None:
        """Declare objects, each in one of its variants."""
        self.declared = {key: which % len(DECLARED[key]) for key, which in declared.items()}
        self.ever = set(declared)
        self.form = self.declared.get(FLIP, 0)
        self._order()
        self.fleet.apply(*(DECLARED[key][which] for key, which in self.declared.items()))

    def _order(self) -> None:
        """Have clusters notice from now on what is not in its order, if it is to be in one."""
        for cluster in self.clusters:
            ordered = self.declared.get(THEN) == 0
            self.kube(cluster).order = ("own", "then") if ordered else None

    def do(self, step: Step) -> None:
        """Let one thing happen."""
        getattr(self, f"do_{step[0]}")(*step[1:])

    def kube(self, cluster: str) -> LivingKube:
        """Return a cluster."""
        found = self.fleet.access.clusters[rig.place(cluster)]
        assert isinstance(found, LivingKube)
        return found

    def made(self, cluster: str) -> dict[Thing, dict[str, Any]]:
        """Return all that is in the namespace made."""
        return {
            (each["kind"], each["metadata"]["name"]): each
            for each in self.kube(cluster).objects()
            if each["metadata"].get("namespace") == MADE
        }

    # What happens in clusters -----------------------------------------------------------------

    def do_put(
        self, cluster: str, kind: str, name: str, ring: str, v: int, push: str, large: bool = False
    ) -> None:
        """Write an object; its push is sent, late or lost."""
        metadata: dict[str, Any] = {"name": name, "namespace": "default"}
        metadata["labels"] = {"ring": ring, "v": str(v)}
        if large:
            metadata["annotations"] = {"large": f"{v}{_LARGE}"}
        gvk = _KINDS[kind]
        if not self._served(cluster, gvk):
            return
        manifest = {"apiVersion": gvk.api_version, "kind": kind, "metadata": metadata}
        self._push(cluster, {"object": self.kube(cluster).put(manifest)}, push)

    def do_drop(self, cluster: str, kind: str, name: str, push: str) -> None:
        """Delete an object."""
        key = ObjectKey(_KINDS[kind], "default", name)
        there = [each for each in self.kube(cluster).objects(key.gvk) if ObjectKey.of(each) == key]
        if not there:
            return
        self.kube(cluster).drop(*key)
        metadata = there[0]["metadata"]
        deleted = {"key": str(key), "uid": metadata["uid"], "version": metadata["resourceVersion"]}
        self._push(cluster, {"gone": deleted}, push)

    def do_anew(self, cluster: str, kind: str, name: str, v: int, push: str) -> None:
        """Delete an object and write another one under its name; of the first nobody hears."""
        self.do_drop(cluster, kind, name, "lost")
        self.do_put(cluster, kind, name, "yes", v, push)

    def do_tell(self, cluster: str, subject: str, minute: int, what: str, v: int) -> None:
        """Send a CloudEvent of what happened at a minute."""
        place, event = (cluster, subject), (minute, what, v)
        self.told[place] = max(event, self.told.get(place, event))
        time = (self.began + timedelta(minutes=minute - 60)).isoformat()
        self._send(cluster, {"event": cloud_event(subject, type=what, time=time, data=v)})

    def do_late(self, which: int, again: bool) -> None:
        """Send what was held up; `again` keeps it, to be sent once more."""
        if self.late:
            number = which % len(self.late)
            item = self.late[number] if again else self.late.pop(number)
            self._send(*item)

    def do_permit(self, cluster: str, allowed: bool) -> None:
        """Let a tenant's account see what it watches, or let it no more, without a word."""
        rbac = self.kube(cluster).rbac
        (rbac.grant if allowed else rbac.take)(*_TENANT, "get", "list")

    def do_tenant(self, allowed: bool) -> None:
        """Have a source read with the rights of the tenant's account, or with all."""
        self._declare(WATCHED, _THEIRS if allowed else 0)

    def do_widgets(self, cluster: str, there: bool) -> None:
        """Delete the definition of what sources watch, without a word, or define it again."""
        self.sweeps = 4
        self.kube(cluster).define(WIDGET, there=there)

    def do_gadgets(self, cluster: str, there: bool) -> None:
        """Delete the definition of the profiles' objects, or define it again."""
        self.kube(cluster).define(GADGET, there=there)

    def do_hand(self, cluster: str, which: int) -> None:
        """Delete a profile's object, by hand."""
        self._take_away(cluster, which)

    def do_foreign(self, cluster: str, which: int) -> None:
        """Delete a profile's object, and put something else in its place."""
        thing = self._take_away(cluster, which)
        if thing is not None:
            self.anybodys.add((cluster, thing[0]))
            metadata = {"name": thing[0][1], "namespace": MADE}
            mine = {"apiVersion": thing[1]["apiVersion"], "kind": thing[0][0]}
            self.kube(cluster).put({**mine, "metadata": metadata, "data": {"mine": "yes"}})

    def do_backup(self, cluster: str) -> None:
        """Keep a cluster as it is."""
        self.backups[cluster] = self.kube(cluster).backup()

    def do_restore(self, cluster: str) -> None:
        """Restore a cluster from its backup; objects withdrawn since are nobody's."""
        if cluster in self.backups:
            self.kube(cluster).restore(self.backups[cluster])
            self.anybodys |= {(cluster, thing) for thing in self.made(cluster)}

    def do_replace(self, cluster: str) -> None:
        """Re-create a cluster, empty, under its name."""
        key = f"fleet/{cluster}"
        self.fleet.access.clusters[key] = LivingKube(key)
        self.backups.pop(cluster, None)
        self.anybodys = {each for each in self.anybodys if each[0] != cluster}

    def do_gate(self, cluster: str, word: str, open_: bool) -> None:
        """Have what checks of a time ask for be so, or not."""
        self.kube(cluster).gate(word, open=open_)

    def do_down(self, cluster: str, how: str, *verbs: str) -> None:
        """Let a cluster not answer, or refuse."""
        errors = {"silent": UnreachableError("does not answer"), "denied": DeniedError("may not")}
        self.kube(cluster).fail_with(errors.get(how), *verbs)

    # What users do ----------------------------------------------------------------------------

    def do_label(self, cluster: str, name: str, value: str | None) -> None:
        """Set or take away a label of a cluster."""
        labels = {**self.labels[cluster], name: value}
        self.labels[cluster] = {each: text for each, text in labels.items() if text is not None}
        self._insist(lambda: rig.label(self.fleet, cluster, {name: value}))

    def do_pause(self, cluster: str, paused: bool) -> None:
        """Pause a cluster, or have it go on."""
        self._insist(lambda: rig.pause(self.fleet, cluster, paused=paused))

    def do_apply(self, which: int, variant: int) -> None:
        """Declare one object in a variant; a trigger keeps its form."""
        key = STEPS[which]
        if key in self.ever or key not in SOME:
            self._declare(key, self.form if key == FLIP else plain(key, variant))

    def do_delete(self, which: int) -> None:
        """Delete what is declared."""
        key = STEPS[which]
        self.declared.pop(key, None)
        self._insist(lambda: rig.delete(self.fleet, key))

    def do_rollback(self) -> None:
        """Have the users' own profile hold what it held before, if that is kept."""
        with suppress(MissingError):
            self._insist(lambda: rollback.rollback(self.fleet.installation(), "own"))

    def do_undo(self) -> None:
        """Have it hold what is declared again."""
        with suppress(MissingError):
            self._insist(lambda: rollback.undo(self.fleet.installation(), "own"))

    def do_raise(self, variant: int) -> None:
        """Deploy the same object, in an older or newer apiVersion."""
        self._declare(OWN_TEXT, 2 + variant % 2)

    def do_gadget(self) -> None:
        """Deploy an object of a kind whose definition may vanish."""
        self._declare(OWN_TEXT, 4)

    def do_flip(self, form: int) -> None:
        """Delete and re-create a trigger, maybe for all objects instead of each."""
        self.form = form
        self.do_delete(STEPS.index(FLIP))
        self._declare(FLIP, form)

    def do_sweep(self, cluster: str, full: bool) -> None:
        """Request a resync."""
        with self._mourned():
            rig.request_resync(self.fleet, cluster, full=full)

    def do_release(self) -> None:
        """Release all that is held."""
        self._insist(lambda: rig.release_held(self.fleet))

    def do_weigh(self, cluster: str) -> None:
        """Let those who count what ended do so, whether it is time for it or not."""
        with self._mourned():
            rig.weigh(self.fleet, cluster)

    def do_rotate(self, cluster: str, token: str) -> None:
        """Renew what a cluster's senders prove themselves with."""
        self.tokens[cluster] = token
        digest = hashlib.sha256(token.encode()).hexdigest()
        self._insist(lambda: rig.rotate(self.fleet, cluster, digest))

    def do_leave(self, cluster: str) -> None:
        """Deregister a cluster and register it again; what it holds by then is nobody's."""
        self._forget(cluster)
        self._insist(lambda: self._register(cluster))

    def do_host(self, there: bool) -> None:
        """Register the cluster that hosts what is Local, or take it away; some worlds need none."""
        if self.ever.isdisjoint({LOCAL, READS_TEXT}) or not (there or self.hosted):
            return
        if there:
            kube = self.fleet.access.clusters.setdefault(MANAGEMENT, LivingKube(MANAGEMENT))
            kube.serve(Resource(WEBHOOK, "validatingwebhookconfigurations", namespaced=False))
            self.tokens[rig.HOST] = rig.HOST
            wired = WIRED if READS_TEXT in self.ever else rig.UNWIRED
            self._insist(lambda: rig.register_host(self.fleet, rig.HOST, wired))
        else:
            self._forget(rig.HOST)
        # Who dies before this does it again.
        self.hosted = there

    def do_host_down(self, how: str) -> None:
        """Let the host not answer, or refuse."""
        if MANAGEMENT in self.fleet.access.clusters:
            self.do_down(rig.HOST, how)

    def _forget(self, cluster: str) -> None:
        """Deregister a cluster, and take away by hand what it holds."""
        self._insist(lambda: rig.deregister(self.fleet, cluster))
        for each in self.made(cluster).values():
            self.kube(cluster).drop(*ObjectKey.of(each))

    # What queues and workers do -----------------------------------------------------------------

    def do_echo(self, cluster: str, kind: str, name: str) -> None:
        """Repeat what might have been asked for about an object."""
        key = ObjectKey(_KINDS[kind], "default", name)
        with self._mourned():
            rig.echo(self.fleet, cluster, self.clusters[0], key)

    def do_replay(self, which: int) -> None:
        """Send a message again that was sent at any time before."""
        if self.recorded:
            with self._mourned():
                rig.publish(self.fleet, *self.recorded[which % len(self.recorded)])

    def do_refuse(self, queue: str, refused: bool) -> None:
        """Let a queue take no more messages, or take them again."""
        (self.refusing.add if refused else self.refusing.discard)(queue)

    def do_week(self) -> None:
        """Let a week and a day pass: tombstones end."""
        self.fleet.clock.advance(timedelta(days=8))

    def do_clock(self, hours: int) -> None:
        """Set the clock so many hours ahead of what is right, or back, or right again."""
        by, self.ahead = timedelta(hours=hours) - self.ahead, timedelta(hours=hours)
        self.fleet.clock.jump(by)
        if by < timedelta(0):
            # A process that begins heeds it, too: who dies at this is followed by one that ends it.
            self._insist(lambda: rig.heed_clock(self.fleet))

    def do_jump(self, hours: int, seconds: int, stages: str, doom: int) -> None:
        """Have the clock be wrong for some seconds, in which timers fire and workers work."""
        self.do_clock(hours)
        with self._mourned():
            rig.tick(self.fleet)
        self.do_work(seconds, stages, doom)
        self.do_clock(0)

    def do_patience(self) -> None:
        """Try a failing message until it is dead-lettered."""
        for _ in range(14):
            self.do_work(61, rig.STAGES, 0)

    def do_dead(self) -> None:
        """Replay dead letters."""
        with self._mourned():
            rig.replay_dead(self.fleet)

    def do_work(self, seconds: int, stages: str, doom: int) -> None:
        """Let some time pass, and one worker after another do what is due, or die."""
        self.fleet.clock.advance(_SECOND * seconds)
        if doom:
            self.fate.doom(doom)
        with self._mourned():
            for name in stages.split():
                for _ in range(200):
                    if not rig.batch(self.fleet, name, limit=50):
                        break

    def do_doom(self, steps: int) -> None:
        """Let the next actor die at a step."""
        self.fate.doom(steps)

    def do_overlap(self, workers: int, seed: int, kinds: str) -> None:
        """Let several workers do what is due, taking turns as the seed has it."""
        acts = dict.fromkeys("abc"[:workers])
        self.overlap(acts, Drawn(seed, rare=12, kinds=kinds))

    def overlap(self, acts: Mapping[str, Sequence[Step] | None], chooser: Chooser) -> Turns:
        """Let actors take turns: workers, for which None stands, and users and senders with steps.

        What one was at when it died is done again, as a user or a sender does.
        """
        self.fate.revive()
        open_steps = {name: list(steps) for name, steps in acts.items() if steps is not None}
        actors = {
            name: self._user(open_steps[name]) if name in open_steps else self._worker
            for name in acts
        }
        turns = Turns(actors, chooser, later=lambda: self.fleet.clock.advance(rig.VISIBILITY))
        self.fate.turns = turns
        self.last_moves = turns.moves
        try:
            turns.run()
        finally:
            self.fate.turns = None
        self.deaths += len(turns.died)
        for steps in open_steps.values():
            for step in steps:
                self.do(step)
        return turns

    def _worker(self) -> None:
        fleet = rig.process(self.fleet)
        turns = self.fate.turns
        assert turns
        while True:
            busy = True
            while busy:
                busy = sum(rig.batch(fleet, stage, limit=2) for stage in rig.STAGES.split()) > 0
            if not turns.rest():
                return

    def _user(self, steps: list[Step]) -> Callable[[], None]:
        def act() -> None:
            mine = copy.copy(self)
            mine.fleet = rig.process(self.fleet)
            while steps:
                try:
                    mine.do(steps[0])
                finally:
                    # What it has come to is what the model goes by.
                    self.sweeps, self.form, self.hosted = mine.sweeps, mine.form, mine.hosted
                    self.ahead = mine.ahead
                steps.pop(0)

        return act

    # How it is done ---------------------------------------------------------------------------

    def _wrap(self, name: str, port: Any) -> Any:
        if name in self.fleet.queues:
            port = _Recording(port, name, self.recorded, self.refusing)
        return Mortal(name, port, self.fate)

    def _register(self, cluster: str) -> None:
        self.tokens[cluster] = cluster
        self.fleet.register(cluster, **self.labels[cluster])

    def _declare(self, key: Key, variant: int) -> None:
        variant %= len(DECLARED[key])
        self.declared[key] = variant
        self.ever.add(key)
        if key == THEN:
            self._order()
        self._insist(lambda: self.fleet.apply(DECLARED[key][variant]))

    def _take_away(self, cluster: str, which: int) -> tuple[Thing, dict[str, Any]] | None:
        made = sorted(self.made(cluster).items())
        if not made:
            return None
        thing, manifest = made[which % len(made)]
        self.kube(cluster).drop(*ObjectKey.of(manifest))
        return thing, manifest

    def _served(self, cluster: str, gvk: GVK) -> bool:
        return gvk in self.kube(cluster)._resources

    def _push(self, cluster: str, item: dict[str, Any], push: str) -> None:
        if push == "late":
            self.late.append((cluster, item))
        elif push == "sent":
            self._send(cluster, item)

    def _send(self, cluster: str, item: dict[str, Any]) -> None:
        # An actor without an answer sends again; what follows may be its death.
        self.late.append((cluster, item))
        reply = None
        with self._mourned():
            token = self.tokens[cluster]
            if "event" in item:
                reply = self.fleet.tell(cluster, item["event"], token=token)
            else:
                reply = self.fleet.send(rig.place(cluster), item, token=token)
        excused = self._acting() or self.refusing
        if reply is None or (reply.status in {401, 503} and excused):
            return
        self.late.remove((cluster, item))
        assert reply.status == 200

    def _acting(self) -> bool:
        return bool(self.fate.turns and self.fate.turns.acting())

    def _insist(self, change: Callable[[], object]) -> None:
        """Do what a user does: the same command again, if it was killed or did not get through."""
        tries = 0
        done = False
        while not done:
            with self._mourned():
                try:
                    change()
                except TemporaryError:
                    tries += 1
                    if not self.refusing and (tries == _PATIENCE or not self._acting()):
                        raise
                    # A user tries until queues answer, whatever was done half-way by then.
                    self.refusing.clear()
                else:
                    done = True

    @contextmanager
    def _mourned(self) -> Iterator[None]:
        """Begin a new process if this one is killed; an actor's death is its own.

        What is not taken by a queue that refuses is lost.
        """
        try:
            yield
        except UnreachableError:
            if not self.refusing:
                raise
        except Killed:
            if self._acting():
                raise
            self.deaths += 1
            self.fate.revive()
            self.fleet.reread()
            rig.release(self.fleet)

    # The end ------------------------------------------------------------------------------

    def heal(self) -> None:
        """Let everybody answer, everything be sent, and time pass; resync each cluster.

        Once, unless something happened that more resyncs have to confirm.
        """
        self.fate.revive()
        self.refusing.clear()
        self.do_clock(0)
        rig.tick(self.fleet)
        late = rig.beyond_their_pause(self.fleet)
        assert not late, f"nobody looks for too long: {late}"
        if MANAGEMENT in self.fleet.access.clusters:
            self.kube(rig.HOST).fail_with(None)
        for name in self.clusters:
            self.kube(name).fail_with(None)
            self.kube(name).define(GADGET, there=True)
            self.do_pause(name, paused=False)
            if CHECKED in self.ever:
                self.do_gate(name, "", open_=True)
        while self.late:
            self.do_late(0, again=False)
        for key in STEPS:
            if key[0] == "ConfigMap" and key in self.ever - {*self.declared}:
                self._declare(key, 0)
        rig.replay_dead(self.fleet)
        self._check_without_resync()
        if self.hosted:
            rig.resync_together(self.fleet)
        for _ in range(self.sweeps):
            self.fleet.clock.advance(timedelta(seconds=61))
            rig.tick(self.fleet)
            for cluster in self.clusters:
                self.do_sweep(cluster, full=False)
            self._settle()
        # Longer than any pause: what waits for its next try gets it.
        self.fleet.clock.advance(self.fleet.settings.retry_ceiling * 2)
        self._settle()
        # The model knows what is there, and not what was: what is held was meant to end.
        self.do_release()
        self._settle()

    def _settle(self) -> None:
        """Work until nothing is due, nor becomes due soon.

        A history whose work never ends fails here, and not by how busy the machine is.
        """
        for _ in range(_ROUNDS):
            if not self.fleet.pump():
                return
            # Longer than a dead worker's message stays in flight, and than its lease.
            self.fleet.clock.advance(timedelta(seconds=130))
            rig.tick(self.fleet)
        raise AssertionError(f"after {_ROUNDS} rounds there is work still")

    def _check_without_resync(self) -> None:
        """Check that changes of read objects are followed already, without the help of a resync.

        Where resyncs help, nobody sees that.

        Raises:
            AssertionError: a cluster has something else.
        """
        if not self.rung:
            return
        # The dead worker's messages are given to others.
        self.fleet.clock.advance(rig.VISIBILITY)
        rig.tick(self.fleet)
        for v in (None, 7, 8):
            for name in ("price", "other"):
                if v is not None:
                    self.do_put(rig.HOST, "Widget", name, "yes", v, "sent")
            self._settle()
            for wish in self._reading() if READS in self.declared else ():
                for cluster in wish.destinations:
                    made = {thing: each["data"]["v"] for thing, each in self.made(cluster).items()}
                    assert made == wish.objects, f"{cluster} has not followed what is read"

    def wishes(self) -> list[Wish]:
        """Return the model's desired state: a function of what is, not of what was."""
        found = [self._own()] if OWN in self.declared else []
        found += [self._team()] if TEAM in self.declared else []
        found += [self._checked()] if CHECKED in self.declared else []
        found += [self._then()] if THEN in self.declared else []
        found += [self._classed()] if CLASSED in self.declared else []
        found += [self._lasting()] if LASTING in self.declared else []
        found += self._hosting() if LOCAL in self.declared else []
        found += [self._grant()] if GRANT in self.declared else []
        found += [self._theirs()] if THEIRS in self.declared else []
        found += self._reading() if READS in self.declared else []
        for cluster in self.clusters:
            for trigger in (EACH, ALL, FLIP):
                found += self._wished(trigger, cluster)
            found += self._cloud_event_wishes(cluster)
        return found

    def standing(self, cluster: str) -> dict[ObjectKey, tuple[str, int]]:
        """Return the CloudEvents that count in a cluster by key: of which subject, and their data.

        Of a subject the newest counts, unless it is an end.
        """
        return {
            CloudEvent(cloud_event(subject)).key(HEARD[2]): (subject, v)
            for (where, subject), (_, what, v) in self.told.items()
            if where == cluster and what != "removed"
        }

    def of_class(self, cluster: str) -> list[ObjectKey]:
        """Return the objects by which a cluster satisfies the classifier."""
        variant = self.declared.get(CLASS)
        services = [] if variant is None else self.kube(cluster).objects(SERVICE)
        keys = {ObjectKey.of(each): each["metadata"]["labels"].get("ring") for each in services}
        if variant == 1:
            return [key for key in keys if key.name == "b"]
        return [key for key, labelled in keys.items() if labelled == "yes"]

    def asked(self, cluster: str) -> bool:
        """Say whether a cluster's health is asked for."""
        declared = HEALTH in self.declared and ALIVE in self.declared
        return declared and self.labels[cluster].get("env") == "production"

    def unwell(self, cluster: str) -> dict[str, tuple[bool, set[str]]]:
        """Return by check whether a cluster is healthy, and what in it is not."""
        if not self.asked(cluster):
            return {}
        wrong = {"1"} if self.declared[HEALTH] == 0 else {"1", "2", "3"}
        found = {
            str(ObjectKey.of(each))
            for each in self.kube(cluster).objects(SERVICE)
            if each["metadata"]["labels"]["v"] in wrong
        }
        return {"alive": (not found, found)}

    def has(self, cluster: str) -> dict[str, str]:
        """Return the labels that a cluster has: what a user has set is no classifier's."""
        given = {"class": "rings"} if self.of_class(cluster) else {}
        return given | self.labels[cluster]

    def _classed(self) -> Wish:
        there = {name for name in self.clusters if self.has(name).get("class") == "rings"}
        return Wish("classed", 100, frozenset(there), {("ConfigMap", "classed"): "1"})

    def _cloud_event_wishes(self, cluster: str) -> list[Wish]:
        return [
            Wish(
                profile_name(TOLD[2], f"fleet/{cluster}", str(key)),
                100,
                frozenset({cluster}),
                {("ConfigMap", f"told-{cluster}-{subject}"): f"v{v}"},
            )
            for key, (subject, v) in self.standing(cluster).items()
        ]

    def matching(self, cluster: str, trigger: Key) -> list[dict[str, Any]]:
        """Return the objects that match a trigger's source in a cluster, by key."""
        variant = self.declared.get(trigger)
        if variant is None or self.labels[cluster].get("env") != "production":
            return []
        if trigger == ALL and variant == 2:
            source, everything = ("EventSource", "", f"of-{cluster}"), False
        else:
            source, everything = WATCHED, self.declared.get(WATCHED) == 1
        if source not in self.declared:
            return []
        kinds = {2: ACCOUNT, 3: WIDGET} if source == WATCHED else {}
        theirs = source == WATCHED and self.declared[source] == _THEIRS
        if theirs and not self.kube(cluster).rbac.may(_TENANT[0], "list", *_TENANT[1:]):
            return []
        return [
            each
            for each in self.kube(cluster).objects(kinds.get(self.declared[source], SERVICE))
            if each["metadata"].get("labels", {}).get("ring") == "yes" or everything
        ]

    def _own(self) -> Wish:
        variant = self.declared[OWN]
        clusters = {"east"} if variant == 2 else self._engineering()
        # It goes where what comes after it does.
        clusters |= self._engineering() if self.declared.get(THEN) == 0 else set()
        form = self.declared[OWN_TEXT]
        objects = {("ConfigMap", "own"): "2" if form == 1 else "1"}
        if form == 1:
            objects["ConfigMap", "all-east"] = "mine"
        elif form:
            objects["Gadget" if form == 4 else "PodDisruptionBudget", "also"] = ""
        return Wish("own", (50, 200, 50)[variant], frozenset(clusters), objects)

    def _team(self) -> Wish:
        """Return the objects of the Profile, which has the name of the ClusterProfile."""
        by_set = {None: set(), 0: self._engineering(), 1: {"west"}}
        clusters = (
            self._engineering(),
            {"west"},
            by_set[self.declared.get(TEAM_SET)],
        )[self.declared[TEAM]]
        form = self.declared[TEAM_TEXT]
        objects = {("ConfigMap", "own" if form == 2 else "team"): str(form + 1)}
        return Wish("fleet/own", 60, frozenset(clusters.intersection(self.clusters)), objects)

    def _checked(self) -> Wish:
        value = str(self.declared[CHECKED_TEXT] + 1)
        objects = {("ConfigMap", "checked"): value}
        tier = (50, 60)[self.declared[CHECKED]]
        return Wish("checked", tier, frozenset(self._engineering()), objects)

    def _then(self) -> Wish:
        objects = {("ConfigMap", "then"): str(self.declared[THEN_TEXT] + 1)}
        return Wish("then", 100, frozenset(self._engineering()), objects)

    def _lasting(self) -> Wish:
        objects = {("ConfigMap", "lasting"): str(self.declared[LASTING_TEXT] + 1)}
        return Wish("lasting", 100, frozenset(self._engineering()), objects)

    def _hosting(self) -> Iterator[Wish]:
        """Yield a profile's objects in its clusters, and for them in the one that hosts it."""
        clusters = {"west"} if self.declared[LOCAL] else self._engineering()
        clusters &= {*self.clusters}
        near = {("ConfigMap", "near"): str(self.declared[NEAR_TEXT] + 1)}
        lacks = not self.hosted
        yield Wish("local", 100, frozenset(clusters), near, lacks=lacks)
        if clusters and self.hosted:
            other = self.declared[HERE_TEXT] == 1
            here = {
                ("ConfigMap", f"here-{name}"): "w" if other else str(len(self.has(name)))
                for name in clusters
            }
            here |= {("ConfigMap", "common"): "1"} if other else {}
            yield Wish("local", 100, frozenset({rig.HOST}), here)

    def read(self) -> str:
        """Return the name of the Widget that is read, if any is."""
        return {None: "", 0: "price", 1: "other", 2: ""}[self.declared.get(READS)]

    def _reading(self) -> list[Wish]:
        """Return what is made of a Widget of the cluster that is read; it may be missing."""
        there = {
            each["metadata"]["name"]: each["metadata"]["labels"]["v"]
            for each in self.kube(rig.HOST).objects(WIDGET)
        }
        objects = {("ConfigMap", "reads"): there.get(self.read(), "none")}
        return [Wish("reads", 100, frozenset(self._engineering()), objects)]

    def _grant(self) -> Wish:
        name = "RoleRequest:grant"
        by_env = {each for each in self.clusters if self.labels[each].get("env") == "production"}
        clusters = by_env if self.declared[GRANT] else self._engineering()
        roles = (("reads",), ("reads", "writes"), ("acts",))[self.declared[GRANT_TEXT]]
        objects = {("ServiceAccount", "ann"): ""}
        for role in roles:
            end = hashlib.sha256(f"{name}\0{role}".encode()).hexdigest()[:12]
            objects |= {(kind, f"{role}-{end}"): "" for kind in ("Role", "RoleBinding")}
        return Wish(name, 100, frozenset(clusters), objects)

    def _theirs(self) -> Wish:
        objects = {("ConfigMap", "theirs"): str(self.declared[THEIRS_TEXT] + 1)}
        return Wish("theirs", 100, frozenset(self._engineering()), objects)

    def _wished(self, trigger: Key, cluster: str) -> list[Wish]:
        matching = self.matching(cluster, trigger)
        if not matching:
            return []
        name, variant = trigger[2], self.declared[trigger]
        where = frozenset(self._engineering() if (trigger, variant) in _ENGINEERING else {cluster})
        tier = 70 if (trigger, variant) in _PREFERRED else 100
        if trigger == ALL or (trigger, variant) == (FLIP, 1):
            text = "".join(
                each["metadata"]["name"] + each["metadata"]["labels"]["v"] + " "
                for each in matching
            )
            objects = {("ConfigMap", f"{name}-{cluster}"): text if trigger == ALL else "1"}
            return [Wish(profile_name(name, f"fleet/{cluster}"), tier, where, objects)]
        return [
            Wish(
                profile_name(name, f"fleet/{cluster}", str(ObjectKey.of(each))),
                tier,
                where,
                {("ConfigMap", self._name(name, cluster, each)): self._value(name, each)},
            )
            for each in matching
        ]

    def _name(self, trigger: str, cluster: str, each: Mapping[str, Any]) -> str:
        kind = "" if trigger == "flip" else each["kind"].lower() + "-"
        return f"{trigger}-{cluster}-{kind}{each['metadata']['name']}"

    def _value(self, trigger: str, each: Mapping[str, Any]) -> str:
        if trigger == "flip":
            return "1"
        form = ("v{}", "w{}", "LEN-{}")[self.declared[EACH_TEXT]]
        return form.format(each["metadata"]["labels"]["v"])

    def _engineering(self) -> set[str]:
        return {name for name in self.clusters if self.labels[name].get("dep") == "eng"}


def plain(key: Key, variant: int) -> int:
    """Return a variant that may be chosen at random."""
    return variant % PLAIN.get(key, len(DECLARED[key]))


SOME = {*HOSTED, *GRANTED, *JUDGED, THEIRS, THEIRS_TEXT}
"""What some worlds have, and others never."""

_ENGINEERING = {(EACH, 1), (ALL, 1)}
_PREFERRED = {(EACH, 2), (ALL, 2)}


class _Recording:
    """A queue that remembers all that was ever published, and may refuse more."""

    def __init__(
        self, queue: Any, name: str, recorded: list[tuple[str, Any]], refusing: set[str]
    ) -> None:
        self._queue = queue
        self._name = name
        self._recorded = recorded
        self._refusing = refusing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def publish(self, messages: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        if self._name in self._refusing and messages:
            raise UnreachableError(f"The queue {self._name!r} does not answer.")
        self._recorded += [(self._name, message) for message in messages]
        return self._queue.publish(messages, *args, **kwargs)
