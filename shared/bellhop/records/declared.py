"""What users declared, the number that grows with it, and changes that are under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from bellhop.errors import MissingError, StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.records.payloads import Payloads
from bellhop.records.table import Kept

Manifest = dict[str, Any]


class Manifests:
    """What users declared, by kind, namespace and name; sealed, as Secrets are among it."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, kind: str, namespace: str, name: str) -> Kept[Manifest] | None:
        """Read what a user declared, as it was written.

        Raises:
            MissingError: its payload is lost; declaring it again, or deleting it, is the cure.
        """
        found = self._payloads.get(f"manifest/{kind}", f"{namespace}/{name}")
        return Kept(found.payload, found.item.token) if found else None

    def has(self, kind: str, namespace: str, name: str) -> bool:
        """Say whether there is such a manifest, though its payload may be lost."""
        return self._payloads.store.get(f"manifest/{kind}", f"{namespace}/{name}") is not None

    def of(self, kind: str) -> Iterator[Manifest]:
        """Yield all that users declared of one kind.

        Raises:
            MissingError: the payload of one is lost.
        """
        return (found.payload for found in self._payloads.all(f"manifest/{kind}"))

    def listed(self, kind: str) -> Iterator[tuple[str, Manifest | None]]:
        """Yield namespace/name and manifest of all of one kind; None for one that is lost."""
        for item in self._payloads.store.query(f"manifest/{kind}"):
            try:
                found = self._payloads.open(item)
            except MissingError:
                yield item.sort, None
                continue
            if found:
                yield item.sort, found.payload

    def put(
        self,
        kind: str,
        namespace: str,
        name: str,
        manifest: Mapping[str, Any],
        *,
        expect: str | None = ANY,
    ) -> str:
        """Write what a user declared, and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        sort = f"{namespace}/{name}"
        return self._payloads.put(f"manifest/{kind}", sort, {}, manifest, expect=expect)

    def delete(self, kind: str, namespace: str, name: str, *, expect: str | None = ANY) -> bool:
        """Delete what a user declared; say whether it was there.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._payloads.delete(f"manifest/{kind}", f"{namespace}/{name}", expect=expect)


class CatalogRevision:
    """The number that grows with each change of what users declared."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def revision(self) -> int:
        """Read the number."""
        item = self._store.get("catalog", "revision")
        return int(item.value["number"]) if item else 0

    def raise_revision(self) -> int:
        """Tell every reader that its catalog is out of date; return the new number."""
        old = self._store.get("catalog", "revision")
        number = int(old.value["number"]) + 1 if old else 1
        item = Item("catalog", "revision", {"number": number})
        try:
            self._store.put(item, expect=old.token if old else ABSENT)
        except StaleError:
            # Whoever was quicker has raised it after what we changed was written: for us too.
            return self.revision()
        return number


class Pending:
    """Changes whose follow-up messages may not have been published."""

    def __init__(self, payloads: Payloads, clock: Clock) -> None:
        self._payloads = payloads
        self._clock = clock

    def all(self) -> Iterator[tuple[str, Mapping[str, Any], datetime]]:
        """Yield each change's name, what it was, and when it was noted."""
        for found in self._payloads.all("pending"):
            change = found.head.get("change") if found.payload is None else found.payload
            yield found.item.sort, change or {}, datetime.fromisoformat(found.head["at"])

    def put(self, name: str, change: Mapping[str, Any]) -> None:
        """Note a change before it is made, so that a crash half-way is made good."""
        head = {"at": self._clock.now().isoformat()}
        # As a payload it may name ten thousand objects.
        self._payloads.put("pending", name, head, change, expect=ABSENT)

    def delete(self, name: str) -> None:
        """Note that a change's messages are all published."""
        self._payloads.delete("pending", name)
