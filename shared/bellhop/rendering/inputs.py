"""What a profile is made of, as it was declared: so a change of that is told from an event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bellhop.api.kinds import ConfigMap, Declaration, Secret
from bellhop.core.digest import digest
from bellhop.rendering.event_contents import Ref
from bellhop.rendering.origin_labels import GENERATED

_LENGTH = 16

Find = Callable[[Ref], ConfigMap | Secret | None]


class Inputs:
    """Looks up what a profile is made of, and notes what was declared of it.

    What a generator wrote is not noted: it changes with events.
    """

    def __init__(self, find: Find, *rules: Declaration) -> None:
        self._find = find
        self.noted = {f"{each.kind} {each.place}": _mark(each) for each in rules}

    def find(self, ref: Ref) -> ConfigMap | Secret | None:
        """Look up what a ref names, and note it."""
        found = self._find(ref)
        if found and not GENERATED.items() <= found.metadata.labels.items():
            self.noted[str(ref)] = _mark(found)
        return found


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield what was declared otherwise before: `ConfigMap default/web changed`."""
    for name in sorted({*before, *after}):
        if name not in before:
            yield f"{name} added"
        elif name not in after:
            yield f"{name} removed"
        elif before[name] != after[name]:
            yield f"{name} changed"


def written_mark(manifest: Mapping[str, Any]) -> str:
    """Return what a recipe notes of a manifest, as it was written."""
    return digest(manifest)[:_LENGTH]


def _mark(declared: Declaration) -> str:
    return written_mark(declared.written)
