"""Waits for the objects of releases by reading them now and then, so that no worker is held.

    Helm deploys without --wait ─► ready? ─► no: noted until when ─► a timer ─► ready? ─► …
                                     └─► yes: the next chart          └─► too late: failed

That a release is waited for is in the inventory, so the next worker goes on with it: another
worker, the same message again, or a process that starts after one that died. Helm itself waits
where something follows the wait in one call: hooks after it, tests, a rollback, or a cleanup. So it
does for Jobs that are deleted once they have ended, which only a watch sees end.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ObjectResult, ReconcileContext
from bellhop.deploy.features.charts.inputs import AFTER, DELETE, EXPIRING, TESTS, open_cluster
from bellhop.deploy.features.charts.object_status import is_waited_for, shortfall
from bellhop.deploy.features.charts.planning import place_of
from bellhop.errors import MissingError, PermanentError, TemporaryError, UnmetError
from bellhop.ports.charts import DesiredRelease
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Access, Kube
from bellhop.rendering.charts.releases import Desired
from bellhop.settings import Settings
from bellhop.state.chart import Options
from bellhop.state.deployment import Held

_PART = 4
"""A release is read again after a quarter of the time for which it has been waited for."""

_SHORTEST = timedelta(seconds=10)


class Readiness:
    """Reads whether releases are ready."""

    def __init__(self, clock: Clock, access: Access, settings: Settings) -> None:
        self._clock = clock
        self._access = access
        self._longest = settings.retry_ceiling

    def read(
        self, context: ReconcileContext, desired: Desired, result: ObjectResult
    ) -> ObjectResult:
        """Return what came of a release with whether it is ready by now, as its objects say.

        It is refused as long as it is not: as a check that does not pass yet, or as failed once
        its time is over. It is still read after that, and is deployed as soon as it is ready.
        """
        held = self._since(result.held)
        assert held.release
        try:
            lacks = self._lacks(context, desired)
        except PermanentError as error:
            return replace(result, refused=error)
        if not lacks:
            return replace(result, held=replace(held, release=replace(held.release, ready_by=None)))
        return replace(result, held=held, refused=self._unready(held, desired, lacks))

    def _unready(self, held: Held, desired: Desired, lacks: str) -> TemporaryError:
        """Return why a release is not deployed yet, and when it is read again."""
        assert held.release
        assert held.release.ready_by
        now, key = self._clock.now(), desired.key
        elapsed = now - (held.applied_at or now)
        until = now + min(max(elapsed / _PART, _SHORTEST), self._longest)
        if now < held.release.ready_by:
            return UnmetError(f"waiting for {lacks}", until=min(until, held.release.ready_by))
        return TemporaryError(
            f"the release '{key.namespace}/{key.name}' was not ready within options.timeout,"
            f" {desired.chart.upgrade.timeout_seconds} s: {lacks}",
            until=until,
        )

    def begin(self, held: Held, desired: Desired) -> Held:
        """Return how a release is held that was just deployed, and is to become ready."""
        assert held.release
        assert held.applied_at
        until = held.applied_at + timedelta(seconds=desired.chart.upgrade.timeout_seconds)
        return replace(held, release=replace(held.release, ready_by=until))

    def _since(self, held: Held | None) -> Held:
        """Return a release as it is waited for; from now on, where a clock was ahead before."""
        assert held
        release, now, begun = held.release, self._clock.now(), held.applied_at
        assert release
        if not begun or not release.ready_by or begun <= now:
            return held
        ready_by = now + (release.ready_by - begun)
        return replace(held, applied_at=now, release=replace(release, ready_by=ready_by))

    def _lacks(self, context: ReconcileContext, desired: Desired) -> str:
        """Name the first object that is not ready, and what it lacks."""
        kube, place = open_cluster(self._access, context), place_of(desired.key)
        jobs = desired.chart.upgrade.wait_for_jobs
        for key, held in context.progress.held.items():
            counts = held.part_of == place and is_waited_for(key, jobs=jobs)
            if counts and (lacks := _shortfall(kube, key, held)):
                named = "/".join(filter(None, (key.namespace, key.name)))
                return f"{key.kind} {named} ({lacks})"
        return ""


def _shortfall(kube: Kube, key: Identity, held: Held) -> str:
    try:
        return shortfall(key, kube.get(*key.at(held.version)))
    except MissingError:
        return shortfall(key, None)


def is_read(options: Options, hooks: frozenset[str]) -> bool:
    """Return whether a release is waited for by reading its objects, and not by Helm itself."""
    follows = bool(hooks & AFTER) and not options.disable_hooks
    expire = options.wait_for_jobs and bool(hooks & EXPIRING)
    return options.wait and not (follows or options.undoes_failures or expire or options.run_tests)


def holds(options: Options, hooks: frozenset[str]) -> bool:
    """Return whether a call of Helm may hold its worker for long."""
    runs = bool(hooks - TESTS - DELETE - EXPIRING) and not options.disable_hooks
    waits = options.wait and not is_read(options, hooks)
    return runs or waits or options.blocks


def options_of(desired: DesiredRelease) -> Options:
    """Return the options that count: those of an installation, or of an upgrade."""
    return desired.options if desired.there or desired.install is None else desired.install


def without_wait(desired: DesiredRelease) -> DesiredRelease:
    """Return a release for which Helm does not wait itself."""
    options, install = desired.options, desired.install
    return replace(
        desired,
        options=replace(options, wait=False, wait_for_jobs=False),
        install=install and replace(install, wait=False, wait_for_jobs=False),
    )
