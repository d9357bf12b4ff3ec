"""The kinds that count in a cluster, by its gate: all others are dropped before they are kept."""

from __future__ import annotations

from collections.abc import Iterable

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.ingest.admission import Watched
from bellhop.state.record import IngestPolicy


class RelevantKinds:
    """Kinds that sources ask for, profiles hold, or templates read."""

    def __init__(self, gate: IngestPolicy) -> None:
        self.asked = Watched(gate.kinds)
        self._held, self._followed = Watched(gate.held), Watched(gate.followed)
        more = [each for each in (*gate.held, *gate.followed) if each.gvk not in self.asked]
        self.all = Watched([*gate.kinds, *more]) if more else self.asked

    def unasked(self, kinds: Iterable[str]) -> list[str]:
        """Return those of some kinds, as `str` names them, that do not count in any version."""
        found = ((kind, *kind.rpartition("/")) for kind in kinds)
        return [kind for kind, at, _, name in found if not self.all.versions(GVK.parse(at, name))]

    def held(self, key: ObjectKey) -> bool:
        """Say whether a profile may hold an object of this kind against drift."""
        return bool(self._held.versions(key.gvk))

    def followed(self, key: ObjectKey) -> bool:
        """Say whether templates may read an object of this kind."""
        return bool(self._followed.versions(key.gvk))
