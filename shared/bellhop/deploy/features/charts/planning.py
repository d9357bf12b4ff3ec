"""The plan of a profile's releases in a cluster: the desired ones against the inventory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.rendering.charts.releases import Desired
from bellhop.state.chart import HeldRelease
from bellhop.state.deployment import Held


class Deploy(Struct, frozen=True):
    """Install or upgrade a release; `held` says how it was held so far, None of a new one."""

    desired: Desired
    held: Held | None

    @property
    def key(self) -> Identity:
        """Name the release."""
        return self.desired.key


class Claim(Struct, frozen=True):
    """Claim a release that stays as it is, for another tier or again: others may win or lose it."""

    key: Identity
    held: Held


class Await(Struct, frozen=True):
    """Read whether a release that was deployed as desired is ready by now."""

    desired: Desired
    held: Held

    @property
    def key(self) -> Identity:
        """Name the release."""
        return self.desired.key


class Remove(Struct, frozen=True):
    """Uninstall a release; one that is `desired` by `Uninstall`, whatever client installed it."""

    key: Identity
    held: Held
    desired: Desired | None = None


class Leave(Struct, frozen=True):
    """Leave a release as it is, and nobody's."""

    key: Identity
    held: Held


class Plan(Struct, frozen=True):
    """Operations in their order; removals begin only after all `steps`."""

    steps: tuple[Deploy | Await | Claim | Remove, ...] = ()
    removals: tuple[Remove | Leave, ...] = ()
    unchanged: tuple[Identity, ...] = ()

    @property
    def idle(self) -> bool:
        """Say whether there is nothing to do."""
        return not self.steps and not self.removals

    def uncertain(self, held: Mapping[Identity, Held]) -> dict[Identity, Held]:
        """Say what is held from the moment on in which the first step may have been taken."""
        unsure = dict(held)
        for step in (*self.steps, *self.removals):
            if isinstance(step, Claim | Await):
                continue
            old, secret = step.held, False
            if isinstance(step, Deploy):
                old, secret = step.held or _new(step.desired), step.desired.secret
            assert old
            unsure[step.key] = replace(old, digest="", secret=secret or old.secret)
        return unsure


def plan(
    releases: Sequence[Desired],
    held: Mapping[Identity, Held],
    tier: int,
    *,
    releases_all: bool = False,
) -> Plan:
    """Plan the operations from the releases of the inventory to the desired ones, in their order.

    A release that lost an object is deployed again. One that is deployed as desired, but by another
    `tier`, is only claimed; one that is not ready yet is only read. By `releases_all` nothing is
    removed.
    """
    mine = {key: each for key, each in held.items() if each.release}
    broken = {each.part_of for each in held.values() if each.part_of and not each.digest}
    desired = {each.key: each for each in releases}
    same = {
        key
        for key, each in desired.items()
        if key in mine and mine[key].digest == each.digest and place_of(key) not in broken
    }
    settled = {key for key in same if _is_settled(mine[key], tier)}
    steps = [
        _keep_step(each, mine[key]) if key in same else _step_of(each, mine.get(key))
        for key, each in desired.items()
        if key not in settled
    ]
    removals = [
        Leave(key, each) if releases_all or _is_removed(each) else Remove(key, each)
        for key, each in mine.items()
        if key not in desired
    ]
    # The last release may depend on those before it.
    return Plan(tuple(steps), tuple(reversed(removals)), tuple(sorted(settled)))


def place_of(key: Identity) -> str:
    """Name a release as what it consists of does."""
    return f"{key.namespace}/{key.name}"


def _keep_step(desired: Desired, held: Held) -> Await | Claim:
    assert held.release
    return Await(desired, held) if held.release.ready_by else Claim(desired.key, held)


def _step_of(desired: Desired, held: Held | None) -> Deploy | Remove:
    if desired.chart.unwanted:
        return Remove(desired.key, held or _new(desired), desired)
    return Deploy(desired, held)


def _new(desired: Desired) -> Held:
    return Held("", desired.ref, release=HeldRelease(removal=desired.chart.removal))


def _is_settled(held: Held, tier: int) -> bool:
    assert held.release
    if held.release.ready_by or held.release.kept_until:
        return False
    return held.release.tier == tier


def _is_removed(held: Held) -> bool:
    return held.release is not None and held.release.removed
