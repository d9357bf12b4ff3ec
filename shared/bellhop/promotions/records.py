"""Tables of promotions: the state of each, its releases, and the charts and files of these."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bellhop.state.promotion import FrozenContent, Pin, PromotionState, Release
from bellhop.state.table import SealedTable, Table


class Promotions(Table[PromotionState, str]):
    """The state of each promotion, by name."""

    kind = PromotionState
    partition, sort = "promotion", "{name}"
    in_key = ()
    published: Mapping[str, object] = {"unpublished": ()}


class Releases(SealedTable[Release, str, int]):
    """Releases by promotion and number; their inputs are sealed, as some are Secrets."""

    kind = Release
    partition, sort = "release/{promotion}", "{number}"
    sealed = ("spec", "inputs")

    def heads(self, promotion: str) -> list[Release]:
        """Return the releases of a promotion without their inputs, the newest first."""
        found = map(self.read_item, self.items(promotion))
        return sorted(found, key=lambda each: each.number, reverse=True)

    def prune(self, promotion: str, held: Collection[int], most: int) -> None:
        """Delete releases but those that are held, and so many of the newest."""
        for each in self.heads(promotion)[most:]:
            if each.number not in held:
                self.delete(promotion, each.number)


class Pins(SealedTable[Pin, str, int, str]):
    """Charts and files by promotion, release and name; release 0 has those that have moved."""

    kind = Pin
    partition, sort = "pin/{promotion}", "{release}/{key}"
    sealed = ("description",)

    def of(self, promotion: str) -> list[Pin]:
        """Return all pins of a promotion."""
        return [stored.value for _, stored in self.rows(promotion)]


class FrozenContents(SealedTable[FrozenContent, str, str]):
    """Contents of charts and files by promotion and digest."""

    kind = FrozenContent
    partition, sort = "frozen/{promotion}", "{key}"
    sealed = ("content",)
