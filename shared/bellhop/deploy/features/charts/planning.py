"""Decide first, act later: releases that a profile wants in a cluster against those it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.rendering.charts.releases import Desired
from bellhop.state.chart import HeldRelease
from bellhop.state.record import Held


class Deploy(Struct, frozen=True):
    """Install or upgrade a release; `held` says how it was held so far, None of a new one."""

    wanted: Desired
    held: Held | None

    @property
    def key(self) -> Identity:
        """Name the release."""
        return self.wanted.key


class Claim(Struct, frozen=True):
    """Claim a release that stays as it is, for another tier or again: others may win or lose it."""

    key: Identity
    held: Held


class Await(Struct, frozen=True):
    """Read whether a release that was deployed as it is wanted is ready by now."""

    wanted: Desired
    held: Held

    @property
    def key(self) -> Identity:
        """Name the release."""
        return self.wanted.key


class Remove(Struct, frozen=True):
    """Uninstall a release; a `wanted` one is one that is to be gone, whoever made it."""

    key: Identity
    held: Held
    wanted: Desired | None = None


class Leave(Struct, frozen=True):
    """Leave a release as it is, and nobody's."""

    key: Identity
    held: Held


class Plan(Struct, frozen=True):
    """Steps in their order; nothing is taken `back` unless all `forth` was taken."""

    forth: tuple[Deploy | Await | Claim | Remove, ...] = ()
    back: tuple[Remove | Leave, ...] = ()
    unchanged: tuple[Identity, ...] = ()

    @property
    def idle(self) -> bool:
        """Say whether there is nothing to do."""
        return not self.forth and not self.back

    def begun(self, held: Mapping[Identity, Held]) -> dict[Identity, Held]:
        """Say what is held from the moment on in which the first step may have been taken."""
        unsure = dict(held)
        for step in (*self.forth, *self.back):
            if isinstance(step, Claim | Await):
                continue
            old, secret = step.held, False
            if isinstance(step, Deploy):
                old, secret = step.held or _new(step.wanted), step.wanted.secret
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
    """Plan the way from the releases that are held to those that are wanted, in their order.

    What a release consists of counts with it: one that lost an object is deployed again. One that
    is held as it is wanted, but by another `tier`, is claimed only; one that is not ready yet is
    only read. By `releases_all` nothing is removed.
    """
    mine = {key: each for key, each in held.items() if each.release}
    broken = {each.part_of for each in held.values() if each.part_of and not each.digest}
    wanted = {each.key: each for each in releases}
    same = {
        key
        for key, each in wanted.items()
        if key in mine and mine[key].digest == each.digest and place_of(key) not in broken
    }
    settled = {key for key in same if _is_settled(mine[key], tier)}
    forth = [
        _kept(each, mine[key]) if key in same else _forth(each, mine.get(key))
        for key, each in wanted.items()
        if key not in settled
    ]
    back = [
        Leave(key, each) if releases_all or _is_removed(each) else Remove(key, each)
        for key, each in mine.items()
        if key not in wanted
    ]
    # What was deployed last may need what was deployed before it.
    return Plan(tuple(forth), tuple(reversed(back)), tuple(sorted(settled)))


def place_of(key: Identity) -> str:
    """Name a release as what it consists of does."""
    return f"{key.namespace}/{key.name}"


def _kept(wanted: Desired, held: Held) -> Await | Claim:
    assert held.release
    return Await(wanted, held) if held.release.ready_by else Claim(wanted.key, held)


def _forth(wanted: Desired, held: Held | None) -> Deploy | Remove:
    if wanted.chart.unwanted:
        return Remove(wanted.key, held or _new(wanted), wanted)
    return Deploy(wanted, held)


def _new(wanted: Desired) -> Held:
    return Held("", wanted.ref, release=HeldRelease(removal=wanted.chart.removal))


def _is_settled(held: Held, tier: int) -> bool:
    assert held.release
    if held.release.ready_by or held.release.kept_until:
        return False
    return held.release.tier == tier


def _is_removed(held: Held) -> bool:
    return held.release is not None and held.release.removed
