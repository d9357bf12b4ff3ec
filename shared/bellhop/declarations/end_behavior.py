"""Have profiles say how their add-ons end, before what says so is deleted.

A trigger or profile may be given `LeavePolicies`, or tried dry, and be deleted before anybody has
worked on that. Then its profiles still say what was declared before, and their add-ons would be
removed. So the profiles are written before the manifest is deleted. Workers read a profile before
the catalog: one that has read an older catalog loses its write, since the profile is another one.
A profile that is made for the first time at that moment has nothing that others rely on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from bellhop.api.kinds import ClusterProfile, DeclarationKey, EventTrigger
from bellhop.catalog.catalog import Catalog
from bellhop.declarations.diff import PROFILES, TRIGGERS, Key
from bellhop.profiles.records.pending_removals import Place
from bellhop.profiles.records.profiles import place
from bellhop.state.concurrency import until_written
from bellhop.state.record import Profile
from bellhop.state.records import Records


def note_endings(records: Records, before: Catalog, keys: Iterable[Key]) -> None:
    """Write into the profiles of what is about to be deleted how it was declared last.

    Raises:
        StaleError: other writers keep winning; nothing is deleted yet.
    """
    for declared, found in _ending(records, before, keys):
        _note(records, declared, found)


def _ending(
    records: Records, before: Catalog, keys: Iterable[Key]
) -> Iterator[tuple[ClusterProfile | EventTrigger, Place]]:
    for key in keys:
        rule = DeclarationKey(*key).rule
        if key[0] in PROFILES and rule in before.profiles:
            yield before.profiles[rule], Place("", "", rule)
        elif key[0] in TRIGGERS and rule in before.triggers:
            declared = before.triggers[rule]
            heads = (each for each in records.profiles.heads(rule) if _differs(declared, each))
            yield from ((declared, place(each)) for each in heads)


@until_written("delete '{declared.rule}' yet")
def _note(records: Records, declared: ClusterProfile | EventTrigger, which: Place) -> None:
    kept = records.profiles.head(*which)
    if kept is None or not _differs(declared, kept.value):
        return
    noted = replace(
        kept.value,
        leaves_policies=declared.leaves_policies,
        sync=declared.sync,
        # If the deletion dies here, its clusters are still to hear of that.
        told=False,
    )
    records.profiles.put_head(noted, expect=kept.token)


def _differs(declared: ClusterProfile | EventTrigger, profile: Profile) -> bool:
    """Say whether a profile would end in another way; one that is tried dry removes nothing."""
    dry = declared.sync == "DryRun", profile.sync == "DryRun"
    return dry[0] != dry[1] or profile.leaves_policies != declared.leaves_policies
