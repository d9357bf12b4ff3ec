"""Changes of manifests and clusters: held if they remove too much, published, and resumed.

Every change is noted before it is made, and the note is deleted after all its effects are
published. `resume`, which the schedule calls, finishes changes that a crash interrupted.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.records import UPGRADED_FROM
from bellhop.declarations.cluster_selection import SetSelector
from bellhop.declarations.deletion_guard import RemovalGuard
from bellhop.declarations.diff import Key
from bellhop.declarations.fan_out import ChangeFanOut
from bellhop.declarations.records import HeldRemoval, Rule
from bellhop.errors import MissingError
from bellhop.settings import Settings
from bellhop.state.messages import Publisher
from bellhop.state.records import Records

_RELEASED, _RULES = "released", "rules"
"""Keys of a pending release: the held change that it releases, and the rules that it concerns."""


class ChangeWriter:
    """Notes changes, publishes their effects, and releases those that are held."""

    def __init__(
        self, records: Records, catalogs: Catalogs, publisher: Publisher, settings: Settings
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._fan_out = ChangeFanOut(records, publisher, settings)
        self._removals = RemovalGuard(records, settings)
        self._selector = SetSelector(records, catalogs, self._fan_out, self._removals)
        self.held: Sequence[HeldRemoval] = ()
        """Add-ons that the last change by this object would have removed, and that are held."""
        self._also: frozenset[Rule] = frozenset()

    def _note_change(self, keys: Iterable[tuple[str, str, str]], **more: Any) -> str:
        self._records.moves.refuse()
        name = uuid.uuid4().hex
        self._records.pending.put(name, {"keys": [list(key) for key in keys], **more})
        return name

    def _publish_effects(
        self,
        keys: Sequence[Key],
        before: Catalog | None,
        pending: str,
        after: Catalog | None = None,
        held: Sequence[HeldRemoval] = (),
    ) -> None:
        """Publish the effects of a change, select clusters of sets again, and delete the note."""
        after = after or self._catalogs.known()
        self._removals.settle(before, after, keys, held)
        self._fan_out.publish_effects(keys, before, after)
        if before is None or before.choosing or after.choosing:
            chosen = self._selector.settle()
            self.held = [*self.held, *(each for each in chosen if each not in self.held)]
        self._records.pending.delete(pending)

    def resume(self) -> int:
        """Finish changes that were begun and abandoned; return how many there were."""
        abandoned = self._records.pending.abandoned()
        upgrades = {name: each for name, each in abandoned.items() if UPGRADED_FROM in each}
        for name, change in abandoned.items():
            if _RELEASED in change:
                rules = [(trigger, profile) for trigger, profile in change[_RULES]]
                self._withdraw_released(name, change[_RELEASED], rules)
            elif name not in upgrades:
                self._finish(name, [(key[0], key[1], key[2]) for key in change["keys"]])
        if upgrades:
            self._finish_upgrades(upgrades)
        return len(abandoned)

    def _finish(self, pending: str, keys: Sequence[Key]) -> None:
        """Publish all that may follow from a change of which no more is known than its objects."""
        for kind, namespace, cluster in keys:
            if kind == "Cluster" and self._records.clusters.get(f"{namespace}/{cluster}") is None:
                self._forget(f"{namespace}/{cluster}")
        self._records.catalog.change("declared", "clusters", keys=keys)
        self._publish_effects(keys, None, pending)

    def _finish_upgrades(self, upgrades: Mapping[str, Mapping[str, Any]]) -> None:
        """Have all that read cluster versions rendered again, for any number of upgrades at once.

        Selections, destinations and resyncs do not depend on versions.
        """
        self._records.catalog.change("clusters")
        after = self._catalogs.known()
        clusters = dict(after.clusters)
        for change in upgrades.values():
            [(_, namespace, name)] = change["keys"]
            new = after.clusters.get(f"{namespace}/{name}")
            # Of several versions since then any other one than that of now.
            if new and change[UPGRADED_FROM] != new.kubernetes:
                clusters[new.key] = replace(new, kubernetes=change[UPGRADED_FROM])
        before = after.with_clusters(after.revision, clusters.values(), after.choices)
        upgraded = [each for key, each in after.clusters.items() if clusters[key] != each]
        keys = [("Cluster", each.namespace, each.name) for each in upgraded]
        self._fan_out.publish_effects(keys, before, after)
        for pending in upgrades:
            self._records.pending.delete(pending)

    def release(self, change: str, only: Collection[Rule] | None = None) -> list[HeldRemoval]:
        """Remove the add-ons that are held of a change, of `only` some rules; return what they are.

        Raises:
            MissingError: nothing is held of it.
        """
        every = (each.value for each in self._records.removals.all())
        found = [each for each in every if each.change == change]
        found = [each for each in found if only is None or each.rule in only]
        if not found:
            raise MissingError(
                f"cannot release change '{change}': nothing of it is held; `bellhop get held` lists"
                " what is"
            )
        rules = [each.rule for each in found]
        pending = self._note_change(
            [], **{_RELEASED: change, _RULES: [list(each) for each in rules]}
        )
        self._withdraw_released(pending, change, rules)
        return found

    def _withdraw_released(self, pending: str, change: str, rules: Iterable[Rule]) -> None:
        """Hold nothing of a change any more, and have deploy remove it."""
        rules = list(rules)
        for rule in rules:
            kept = self._records.removals.get(rule)
            if kept and kept.value.change == change:
                # A writer that adds to the held change keeps its name, and is released with it.
                self._records.removals.delete(rule)
        self._fan_out.withdraw(self._catalogs.known(), rules)
        self._records.pending.delete(pending)

    def hold_also(self, rules: Iterable[Rule]) -> None:
        """Hold what later changes remove of some rules: all of one command take too much."""
        self._also = frozenset(rules)

    def _forget(self, key: str) -> None:
        """Delete a cluster, and publish the profiles there, some of which only wait to leave it."""
        self._records.forget_cluster(key)
        self._forget_traces(key)

    def _forget_traces(self, key: str) -> None:
        self._fan_out.publish_profiles(key)
        self._records.forget_traces(key)
