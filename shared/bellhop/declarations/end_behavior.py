"""End behavior of what is about to be deleted: it counts as it was declared last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from bellhop.api.kinds import ClusterProfile, DeclarationKey, EventTrigger
from bellhop.catalog.catalog import Catalog
from bellhop.declarations.diff import PROFILES, PROMOTION, TRIGGERS, Key
from bellhop.profiles.records import Place, place
from bellhop.state.concurrency import until_written
from bellhop.state.records import Records


def note_endings(records: Records, before: Catalog, keys: Iterable[Key]) -> None:
    """Write the last declared end behavior into the profiles of manifests about to be deleted.

    A trigger or profile may get `LeavePolicies`, or a dry run, and be deleted before any worker has
    acted on that. Its profiles would still have the former behavior, and their add-ons would be
    removed. Workers read a profile before the catalog: a worker with an older catalog loses its
    write, since the profile has changed. A profile that is created at that moment has nothing
    deployed.

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
        elif key[0] == PROMOTION:
            for each in sorted(before.stages_of([rule])):
                yield before.profiles[each], Place("", "", each)
        elif key[0] in TRIGGERS and rule in before.triggers:
            declared = before.triggers[rule]
            for head in records.profiles.heads(rule):
                if not declared.policy.ends_like(head):
                    yield declared, place(head)


@until_written("delete '{declared.rule}' yet")
def _note(records: Records, declared: ClusterProfile | EventTrigger, which: Place) -> None:
    kept = records.profiles.head(*which)
    if kept is None or declared.policy.ends_like(kept.value):
        return
    noted = replace(
        kept.value,
        **declared.policy.ending,
        # If the deletion dies here, its clusters are still to hear of that.
        told=False,
    )
    records.profiles.put_head(noted, expect=kept.token)
