"""Deploy, second half: one profile to one cluster, from plan to inventory.

    read ─► each feature's plan ─► checks ─► lease ─► carried out ─► given up ─► checks ─► outcome
      ▲                                                                                       │
      └───────────────────────────────────── read again ◄─────────────────────────────────────┘

Every try starts from the records, and holds the lease of the inventory while it works. Since a
worker that was slow may have carried out what is wanted no more, it looks again at what it began
with when it has ended. What there is to plan, and how it is done, is a feature's: see `features`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from bellhop.engine.digest import digest
from bellhop.errors import (
    AwayError,
    BellhopError,
    CloudDeniedError,
    MissingError,
    PausedError,
    PermanentError,
    StaleError,
    TemporaryError,
    UnauthorizedError,
    UnmetError,
    UnreachableError,
    WaitingError,
)
from bellhop.logs import Log
from bellhop.messages import CHARTS, Apply, Publisher
from bellhop.model.gvk import Identity
from bellhop.model.record import Cluster, Inventory, Outcome, Profile
from bellhop.ports.access import Access
from bellhop.ports.metrics import Metrics
from bellhop.ports.store import ABSENT
from bellhop.ports.tools import NONE, Tools
from bellhop.records import Kept, Records
from bellhop.records.catalogs import Catalogs
from bellhop.settings import Settings
from bellhop.stages.checks import Checks
from bellhop.stages.circuit import Circuits
from bellhop.stages.elsewhere import Elsewhere
from bellhop.stages.ending import Endings, together
from bellhop.stages.features.feature import Feature, Plan
from bellhop.stages.features.helm.executor import Releases
from bellhop.stages.features.resources.executor import Executor
from bellhop.stages.granting import Granting
from bellhop.stages.hands import ALONE, Hands
from bellhop.stages.hosting import guests
from bellhop.stages.lease import UNKNOWN, Leases, Peers
from bellhop.stages.ledger import Note, noting
from bellhop.stages.metrics import MetricReader
from bellhop.stages.order import Order
from bellhop.stages.pauses import Pauses
from bellhop.stages.revoking import Revoking
from bellhop.stages.titles import Titles
from bellhop.stages.transitions import Transitions
from bellhop.stages.turns import Turns
from bellhop.stages.watch import Watching
from bellhop.stages.work import Work, is_done_once

_ROUNDS = 4


def make_features(
    records: Records,
    access: Access,
    publisher: Publisher,
    settings: Settings,
    *,
    hands: Hands,
    tools: Tools,
) -> tuple[Feature[Any], ...]:
    """Return all features, in the order in which they are planned and carried out."""
    resources = Executor(records, access, publisher, settings, hands, tools)
    charts = Releases(records, access, publisher, settings, tools, hands)
    return resources, charts, resources.named("Kustomize")


class Execute:
    """Applies profiles to clusters and withdraws them."""

    def __init__(  # noqa: PLR0913 - a stage has a port for each that it asks
        self,
        catalogs: Catalogs,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        log: Log,
        *,
        metrics: Metrics,
        peers: Peers = UNKNOWN,
        hands: Hands = ALONE,
        tools: Tools = NONE,
    ) -> None:
        """Make the stage of one process, which deploys what it has the tools for."""
        self._records = records = catalogs.records
        self._publisher = publisher
        self._circuits = Circuits(records, access, publisher, settings, log)
        self._leases = Leases(records, settings, peers)
        self._endings = Endings(records, settings)
        self._watching = Watching(records, publisher)
        self._elsewhere = Elsewhere(records, publisher, settings)
        reader = MetricReader(Titles(records, publisher), metrics, settings)
        self._checks = Checks(records, access, reader, settings)
        self._order = Order(records, publisher)
        self._pauses = Pauses(records)
        self._turns = Turns(records, publisher)
        self._granting = Granting(records, publisher)
        self._revoking = Revoking(catalogs)
        self._transitions = Transitions(catalogs, publisher)
        self._builds = tools.kustomizations is not None
        self._features = make_features(
            records, access, publisher, settings, hands=hands, tools=tools
        )

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
        """Do it once; False if another worker was quicker, or what it was made of has changed."""
        name, cluster = message.profile, message.destination
        # Before all else: whoever notes another from now on may know more than we do.
        outcome = self._records.outcomes.get(cluster, name)
        kept = self._records.inventories.get(cluster, name)
        inventory = kept.value if kept else Inventory(cluster, name, {})
        self._leases.refuse_busy(inventory)
        found = self._found(message)
        if found and (found.value.paused or is_done_once(found.value, outcome, inventory)):
            if not found.value.paused:
                self._let_others(found.value, cluster, outcome)
                if outcome and outcome.value.reads:
                    self._elsewhere.forget(name, cluster)
            return True
        record = self._records.clusters.get(cluster)
        profile = found.value if found else _closed(message)
        hosted = guests(self._records, profile, cluster)
        inputs = _inputs(message, found, record.token if record else ABSENT, hosted)
        try:
            if record is None or (found is None and not inventory.held):
                self._leave(profile, cluster, outcome)
            else:
                work = Work(
                    message=message,
                    profile=profile,
                    cluster=record.value,
                    outcome=outcome,
                    held=dict(inventory.held),
                    token=kept.token if kept else ABSENT,
                    begun_at=self._records.clock.now(),
                    made_of=" ".join(inputs),
                    guests=tuple(each.value for each in hosted),
                    features=tuple(
                        feature.name
                        for feature in self._features
                        if feature.concerns(profile, inventory.held)
                    ),
                )
                if self._stays_given_up(work):
                    return True
                self._try(work)
                if any(feature.reads_otherwise(work) for feature in self._features):
                    return False
        except StaleError:
            return False
        return self._inputs(message) == inputs

    def _stays_given_up(self, work: Work) -> bool:
        """Say whether it was given up, and nothing that it is made of has changed since.

        An object that changed hands is a reason to try: nobody tells of it again.
        """
        if not work.given_up or work.message.contested or not work.outcome:
            return False
        work.read = work.outcome.value.read
        return not any(feature.reads_otherwise(work) for feature in self._features)

    def _inputs(self, message: Apply) -> tuple[str, ...]:
        """Name what it would be made of now."""
        found = self._records.profiles.head(message.trigger, message.cluster, message.profile)
        hosted = guests(self._records, found.value if found else None, message.destination)
        return _inputs(message, found, self._records.clusters.token(message.destination), hosted)

    def _try(self, work: Work) -> None:
        """Bring it about, and note how that ended."""
        message, profile = work.message, work.profile
        with noting(self._records, message, work.cluster.key, profile.object) as note:
            note.context = {"profile": profile.shown, "trigger": profile.trigger}
            try:
                self._revoking.refuse_early(work)
                self._transitions.refuse_early(work)
                if not work.only_hosts:
                    self._order.refuse_early(work)
                    self._turns.refuse_early(work)
                self._call(work)
            except StaleError:
                # Whoever begins anew finds nothing to change, and would not tell of it.
                if work.changed:
                    _tell_changed(work, note)
                raise
            except (AwayError, PausedError, WaitingError) as error:
                self._wait(work, error, note)
                return
            except BellhopError as error:
                if isinstance(error, UnmetError) and work.changed:
                    _tell_changed(work, note)
                else:
                    waits = isinstance(error, UnmetError)
                    note.what, note.detail = "waits" if waits else "failed", str(error)
                self._endings.fail(work, error)
                return
            if work.changed:
                _tell_changed(work, note)

    def _wait(self, work: Work, error: AwayError | PausedError | WaitingError, note: Note) -> None:
        """Note that it waits, and for whom; who tells it to go on must be able to see that.

        Raises:
            StaleError: it waits for nothing any more, and is to begin anew.
            TemporaryError: the same, or it will very soon.
        """
        if self._endings.wait(work, error):
            note.what, note.detail = "waits", str(error)
        if isinstance(error, AwayError):
            self._look_again(work)
            return
        self._keep_doubts(work)
        if isinstance(error, PausedError):
            self._pauses.look_again(work, error)
            self._turns.step_aside(work)

    def _call(self, work: Work) -> None:
        """Bring it about, where the cluster answers.

        Raises:
            AwayError: it does not, to nobody.
        """
        self._circuits.refuse_away(work.cluster.key)
        try:
            self._bring(work)
        except UnreachableError:
            self._circuits.doubt(work.cluster.key)
            raise
        except UnauthorizedError as error:
            self._circuits.note_refusal(work.cluster.key, error)
            raise

    def _look_again(self, work: Work) -> None:
        """See whether who tells those that wait could see by now that we do.

        Raises:
            TemporaryError: the cluster answers again.
        """
        try:
            self._circuits.refuse_away(work.cluster.key)
        except AwayError:
            return
        text = f"cannot apply '{work.profile.shown}' yet: '{work.cluster.key}' was away until now"
        raise TemporaryError(text, delay=timedelta(0))

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

    def _bring(self, work: Work) -> None:
        if self._lacks_kubectl(work) and self._hand_over(work, CHARTS):
            return
        self._elsewhere.note(work)
        plans = self._plans(work)
        if any(not plan.idle and self._hand_over(work, each.inbox) for each, plan in plans):
            return
        idle = all(plan.idle for _, plan in plans)
        if idle or work.dry:
            _refuse_unplanned(work)
        if work.dry:
            self._preview(work, plans)
            return
        stands = idle and self._checks.have_passed(work)
        if not stands:
            self._pauses.refuse(work)
        if not idle:
            self._check(work, self._checks.before)
            self._carry_out(work, plans)
        self._watching.keep(work)
        self._conclude(work, stands=stands)

    def _plans(self, work: Work) -> list[tuple[Feature[Any], Plan]]:
        """Plan the features in order, up to one that cannot be planned now.

        Raises:
            BellhopError: nothing can be planned, or what is wrong concerns all features.
        """
        plans: list[tuple[Feature[Any], Plan]] = []
        for feature in self._each(work):
            try:
                plans.append((feature, feature.plan(work)))
            except BellhopError as error:
                if not plans or not _is_of_one(error):
                    raise
                work.unplanned = feature.name, error
                break
        return plans

    def _conclude(self, work: Work, *, stands: bool) -> None:
        """Record how it ended; by `stands` the checks have passed already."""
        if work.failed:
            raise together((*work.failed, *work.lacking))
        if work.unfinished and (work.got_on or not work.lacking):
            self._publisher.publish([replace(work.message, contested="", touched="")])
        elif work.lacking:
            raise together(work.lacking)
        elif work.unplanned:
            _refuse_unplanned(work)
        elif work.contests:
            self._endings.slow(work)
        else:
            if not stands:
                self._check(work, self._checks.after)
            self._end(work)
            if not stands:
                self._checks.tidy(work)

    def _lacks_kubectl(self, work: Work) -> bool:
        """Say whether this worker cannot plan it, since a plan needs what kustomizations build."""
        builds = any(each.kustomization for each in work.profile.contents)
        return not self._builds and work.wanted and builds

    def _hand_over(self, work: Work, inbox: str) -> bool:
        """Publish the message to the inbox of other workers; say whether there are any.

        Where there are none, the feature says what is missing.
        """
        others = inbox not in ("", work.message.of) and self._publisher.reaches(inbox)
        if others:
            self._publisher.publish([replace(work.message, of=inbox)])
        return others

    def _end(self, work: Work) -> None:
        if work.wanted:
            self._granting.tell(work)
            self._endings.settle(work)
            self._let_others(work.profile, work.cluster.key, work.outcome)
        else:
            self._leave(work.profile, work.cluster.key, work.outcome)

    def _let_others(self, profile: Profile, cluster: str, outcome: Kept[Outcome] | None) -> None:
        """Let those go on who wait for a profile that is done in a cluster."""
        self._order.tell(profile, cluster, outcome)
        if not profile.error:
            self._turns.end(profile, cluster, outcome)

    def _leave(self, profile: Profile, cluster: str, outcome: Kept[Outcome] | None) -> None:
        """Let those go on who wait for a profile to leave a cluster, and note that it has."""
        if outcome is None or outcome.value.reads:
            self._elsewhere.forget(profile.name, cluster)
        self._order.leave(profile, cluster, outcome)
        self._turns.end(profile, cluster, outcome)
        self._endings.leave(profile, cluster, outcome)

    def _check(self, work: Work, checks: Callable[[Work], None]) -> None:
        """Ask the checks of each feature.

        Raises:
            UnmetError: one does not pass yet.
        """
        for _ in self._each(work):
            checks(work)

    def _each(self, work: Work) -> Iterator[Feature[Any]]:
        """Yield the features in order that can be planned, and note at which one the work is."""
        for feature in self._features:
            if work.unplanned and work.unplanned[0] == feature.name:
                break
            work.at = feature.name if feature.name in work.features else ""
            yield feature
        work.at = ""

    def _preview(self, work: Work, plans: Sequence[tuple[Feature[Any], Plan]]) -> None:
        """Note what plans would change; of what we hold only that it may not be as it was."""
        changes = [each for feature, plan in plans for each in feature.preview(work, plan)]
        if work.message.contested:
            self._keep_doubts(work)
        self._endings.preview(work, changes)

    def _keep_doubts(self, work: Work) -> None:
        """Keep what a message says of objects that may not be as they were: it is said once."""
        told = filter(None, (work.message.contested, work.message.touched))
        if keys := [Identity.parse(each) for each in told]:
            self._records.inventories.doubt(work.cluster.key, work.profile.name, None, keys)

    def _carry_out(self, work: Work, plans: Sequence[tuple[Feature[Any], Plan]]) -> None:
        """Carry plans out under the lease; the inventory keeps what was done."""
        begun = work.held
        for _, plan in plans:
            begun = plan.begun(begun)
        self._leases.take(work, begun)
        try:
            self._look_ahead(work)
            waiting = [plan for _, plan in plans]
            for feature in self._each(work):
                feature.carry_out(work, waiting.pop(0))
                if work.failed or work.unfinished:
                    break
            for plan in waiting:
                work.take_back(plan.begun({}))
        finally:
            self._leases.give_up(work)

    def _look_ahead(self, work: Work) -> None:
        """See once more whether what comes first stays: who withdraws it sees our lease, or we it.

        And whether it is our turn still, and what is new to the cluster not to leave it again.

        Raises:
            WaitingError: what comes first does not stay; nothing was begun.
            StaleError: our turn has ended, or it is to leave; the same.
        """
        try:
            if work.in_turn:
                self._order.refuse_early(work)
            self._turns.begin(work)
            self._revoking.look_ahead(work)
        except (StaleError, WaitingError):
            work.held = dict(work.before)
            raise


def _is_of_one(error: BellhopError) -> bool:
    """Say whether what keeps a feature from being planned says nothing about the others."""
    permanent = isinstance(error, PermanentError) and not isinstance(error, UnauthorizedError)
    return permanent or type(error) in (TemporaryError, CloudDeniedError)


def _refuse_unplanned(work: Work) -> None:
    """Raise why a feature cannot be planned, if one cannot."""
    if work.unplanned:
        work.at, error = work.unplanned
        raise error


def _tell_changed(work: Work, note: Note) -> None:
    note.what = "applied" if work.wanted else "removed"
    note.detail = ", ".join(work.changed)


def _inputs(
    message: Apply,
    profile: Kept[Profile] | None,
    cluster: str,
    hosted: Sequence[Kept[Cluster]],
) -> tuple[str, ...]:
    """Name what an execution is made of, its cluster by the token; of what is to go nothing.

    Templates read the labels of the cluster, and another one may have come in its place.
    """
    if profile is None or message.destination not in profile.value.destinations:
        return ()
    others = [digest([each.token for each in hosted])] if hosted else []
    return (profile.value.revision, cluster, *others)


def _closed(message: Apply) -> Profile:
    """Return a profile that is no more as one that wants nothing, for what may be left of it."""
    return Profile(
        name=message.profile,
        trigger=message.trigger,
        cluster=message.cluster,
        object="",
        contents=(),
        destinations=(),
        tier=0,
        leaves_policies=False,
        continue_on_conflict=False,
        digest="",
    )
