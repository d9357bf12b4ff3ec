"""Which profiles were rolled back: whoever applies what they are made of is warned.

Apart from `rollback`, which loads all that makes a profile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from bellhop.api.kinds import DeclarationKey
from bellhop.diagnosis.catalog_hints import profiles, triggers
from bellhop.installation.installation import Installation
from bellhop.state.record import Profile

_LOOKED_AT = 500


def pinned(
    here: Installation,
    changed: Collection[DeclarationKey],
    created: Collection[DeclarationKey] = (),
) -> Iterator[Profile]:
    """Yield profiles that were rolled back, of those that are made of what changed.

    A trigger that was created just now has none, or such as leave since an earlier one of its name
    was deleted. Of one with very many only some are looked at: one is enough to be warned.
    """
    catalog = here.catalogs.known()
    own = (each.rule for each in profiles(catalog, changed))
    heads = (here.records.profiles.head("", "", place) for place in own)
    found = [head.value for head in heads if head]
    for trigger in triggers(catalog, changed):
        if trigger.key in created:
            continue
        found += islice(here.records.profiles.heads(trigger.name), _LOOKED_AT)
    yield from (each for each in found if each.pinned)
