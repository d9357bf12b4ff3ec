"""The patches that ConfigMaps and Secrets hold, which `patchesFrom` names."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.api.kinds import ConfigMap, Secret
from bellhop.errors import MissingError
from bellhop.rendering.inputs import INSTANTIATE, TEMPLATE, Ref, entries_of, missing
from bellhop.state.content import PatchText

FIELD = "patchesFrom"


def held_patches(ref: Ref, holder: ConfigMap | Secret | None) -> Iterator[PatchText]:
    """Yield the entries of a ConfigMap or Secret as patches, by the names of the entries.

    They are templates of deploy time where its annotations say so.

    Raises:
        MissingError: it is not there, and not optional.
        InvalidError: a Secret has a wrong type, or an entry is no text.
    """
    if holder is None:
        if ref.optional:
            return
        raise MissingError(missing(ref, FIELD))
    plain = not {TEMPLATE, INSTANTIATE} & holder.annotations.keys()
    for entry, text in sorted(entries_of(holder, FIELD).items()):
        source = f"{ref.namespace}/{ref.name}/{entry}"
        yield PatchText(text, source, plain=plain, secret=isinstance(holder, Secret))
