"""Compares everything that is recorded, and everything that is in the clusters, with the model."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any

from bellhop.core.gvk import ObjectKey
from tests.fakes import rig
from tests.fakes.declared import ALL, EACH, FLIP, HEARD
from tests.fakes.fleet import SERVICE
from tests.fakes.world import Thing, Wish, World


def same(what: str, found: Any, desired: Any) -> None:
    """Compare one thing; a difference says what is too much and what is missing."""
    if found == desired:
        return
    if isinstance(found, dict) and isinstance(desired, dict):
        equal = {key for key, value in found.items() if key in desired and desired[key] == value}
        found, desired = (
            {key: value for key, value in each.items() if key not in equal}
            for each in (found, desired)
        )
    elif isinstance(found, set) and isinstance(desired, set):
        found, desired = found - desired, desired - found
    raise AssertionError(f"{what}: found {found}, and the model wants {desired}")


def check(world: World) -> None:
    """Compare everything with the model; nothing may be left over."""
    for cluster in world.clusters:
        check_cluster(world, cluster)
        check_source(world, cluster)
    if world.hosted:
        check_cluster(world, rig.HOST)
    goes: dict[str, set[str]] = defaultdict(set)
    for wish in world.wishes():
        goes[wish.name] |= set(map(rig.place, wish.destinations))
    triggers = ["each", "all", "flip", "told", ""]
    profiles = {each.name: each for each in rig.profiles(world.fleet, triggers)}
    same("profiles", {*profiles}, {*goes})
    for name, profile in profiles.items():
        same(f"destinations of {name}", {*profile.destinations}, goes[name])
        same(f"what {name} waits for", (profile.leaves, profile.error), (False, ""))
    same("who reads what", rig.readers(world.fleet), _readers(world))
    same("what is left over", rig.left_over(world.fleet), [])


def _readers(world: World) -> set[tuple[str, str]]:
    """Return what is read for which cluster, as the model has it."""
    wishes = [each for each in world.wishes() if each.name == "reads" and world.read()]
    return {(world.read(), rig.place(where)) for each in wishes for where in each.destinations}


def check_cluster(world: World, cluster: str) -> None:
    """Compare a cluster, and all records about it as a destination, with the model."""
    wishes = [wish for wish in world.wishes() if cluster in wish.destinations]
    owners: dict[Thing, Wish] = {}
    for wish in sorted(wishes, key=lambda each: each.tier):
        for thing in wish.objects:
            owners.setdefault(thing, wish)
    _check_objects(world, cluster, owners)
    held = {
        wish.name: mine
        for wish in wishes
        if (mine := {thing for thing, owner in owners.items() if owner is wish})
    }
    same(f"inventories in {cluster}", rig.inventories(world.fleet, cluster), held)
    owned = {thing: (wish.name, wish.tier) for thing, wish in owners.items()}
    same(f"owners in {cluster}", rig.owners(world.fleet, cluster), owned)
    ended = {
        wish.name: ("FailedNonRetriable", "Conflict")
        if any(owners[thing] is not wish for thing in wish.objects)
        else ("FailedNonRetriable", "Missing")
        if wish.lacks
        else ("Provisioned", "")
        for wish in wishes
    }
    same(f"outcomes in {cluster}", rig.outcomes(world.fleet, cluster), ended)


def _check_objects(world: World, cluster: str, owners: dict[Thing, Wish]) -> None:
    """Compare what is there; what others wrote in our place needs only to be there."""
    length = str(len(world.has(cluster) if cluster in world.clusters else {}))
    desired = {
        thing: owner.objects[thing].replace("LEN", length) for thing, owner in owners.items()
    }
    made = world.made(cluster)
    loose = {thing for where, thing in world.anybodys if where == cluster}
    there = {thing: (each.get("data") or {}).get("v", "") for thing, each in made.items()}
    same(
        f"objects in {cluster}",
        {thing: v for thing, v in there.items() if thing not in loose},
        {thing: v for thing, v in desired.items() if thing not in loose},
    )
    same(f"objects missing in {cluster}", loose & desired.keys() - made.keys(), set())
    same(f"what is not in its order in {cluster}", world.kube(cluster).disordered, [])
    same(f"objects of others removed in {cluster}", world.kube(cluster).wronged, [])


def check_source(world: World, cluster: str) -> None:
    """Compare what is known of a cluster as a source with what is in it."""
    matching = {
        (source, str(ObjectKey.of(each)))
        for trigger in (EACH, ALL, FLIP)
        for each in world.matching(cluster, trigger)
        if (source := rig.source_of(world.fleet, trigger[2], cluster))
    }
    known = {str(key) for key in world.standing(cluster)}
    matching |= {(HEARD[2], key) for key in known}
    matching |= {("classifier:rings:0", str(key)) for key in world.of_class(cluster)}
    if world.asked(cluster):
        services = map(ObjectKey.of, world.kube(cluster).objects(SERVICE))
        matching |= {("healthcheck:services", str(key)) for key in services}
    same(f"matches in {cluster}", rig.matches(world.fleet, cluster), matching)
    kube = world.kube(cluster)
    there = {
        str(ObjectKey.of(each))
        for gvk in rig.kinds(world.fleet, cluster)
        for each in kube.objects(gvk)
    }
    same(f"observations in {cluster}", rig.observed(world.fleet, cluster), there | known)
    same(f"health of {cluster}", rig.unwell(world.fleet, cluster), world.unwell(cluster))
    same(f"state of {cluster}", rig.state(world.fleet, cluster), "Healthy")
    digest = hashlib.sha256(world.tokens[cluster].encode()).hexdigest()
    registered = (world.has(cluster), digest)
    same(f"registration of {cluster}", rig.registered(world.fleet, cluster), registered)
