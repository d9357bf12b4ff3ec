"""Which profiles are rendered with an object of `mgmt/mgmt`, and where: by the object, one each.

Beside that, by destination and profile, what is read, and whether somebody has seen to it that it
rings. That is there before the former, and goes after it, so that nothing is left that nobody
finds; it is settled only where both are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bellhop.core.digest import digest
from bellhop.core.gvk import Identity
from bellhop.errors import StaleError
from bellhop.ports.store import ANY, Store
from bellhop.state.concurrency import until_written
from bellhop.state.dependency_index import TemplateDependency
from bellhop.state.table import Table

Kind = tuple[str, str]
"""Group and kind."""

_READERS = "reader"
_END = "\U0010ffff"
_DIGEST = 16


class DependencyIndex:
    """Profiles and their destinations by what is read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, TemplateDependency)

    def of(self, key: Identity) -> Iterator[TemplateDependency]:
        """Yield who reads an object; one without a namespace is read whatever namespace is written.

        Nobody can say of a kind that is not served yet whether its objects have one.
        """
        prefix = f"{_place(key)}/" if key.namespace else _place(key)
        for item in self._table.items(_READERS, prefix):
            yield self._table.read(item.value)

    def of_kind(self, kind: Kind) -> Iterator[tuple[Identity, TemplateDependency]]:
        """Yield what is read of a kind, and by whom."""
        for item in self._table.items(_READERS, f"{'/'.join(kind)}/"):
            yield _object(item.sort.rpartition("/")[0]), self._table.read(item.value)

    def first(self, kind: Kind) -> TemplateDependency | None:
        """Return the first of those who read anything of a kind."""
        items = self._table.items(_READERS, f"{'/'.join(kind)}/", limit=1)
        return next((self._table.read(item.value) for item in items), None)

    def kinds(self) -> Iterator[Kind]:
        """Yield the kinds of which anything is read; each costs one look, however much it is."""
        after = ""
        while item := next(self._table.items(_READERS, after=after, limit=1), None):
            group, kind, _ = item.sort.split("/", 2)
            yield group, kind
            after = f"{group}/{kind}/{_END}"

    def note(self, key: Identity, reader: TemplateDependency) -> str:
        """Note that a profile reads an object where it is brought to a destination.

        Return the token for who settles it.
        """
        token = self._beside(key, reader, expect=ANY)
        self._table.put(_READERS, _row(key, reader), reader)
        return token

    def settle(self, key: Identity, reader: TemplateDependency, *, expect: str) -> None:
        """Note that somebody has seen to it that the object rings for a reader.

        Raises:
            StaleError: another one notes it, or strikes it out.
        """
        try:
            self._beside(key, replace(reader, settled=True), expect=expect)
        except StaleError:
            found = self._store.get(*_place_beside(key, reader))
            if found is None or not self._table.read(found.value).settled:
                # It may have been noted after it was struck out: nobody else would find that.
                self.delete(key, reader)
            raise

    def read_for(self, destination: str, profile: str) -> dict[Identity, TemplateDependency]:
        """Return the objects that a profile reads for a destination, and whether it is settled."""
        prefix = f"{profile}:"
        found = self._table.items(f"reads/{destination}", prefix)
        return {
            _object(item.sort.removeprefix(prefix)): self._table.read(item.value) for item in found
        }

    @until_written("strike out '{key}' for '{reader.profile}'")
    def delete(self, key: Identity, reader: TemplateDependency) -> None:
        """Note that a profile reads an object no more where it is brought to a destination.

        Who dies before the end leaves what is not settled: it is noted anew, or struck out again.

        Raises:
            StaleError: others note it all the time.
        """
        place, beside = (_READERS, _row(key, reader)), _place_beside(key, reader)
        row = self._store.get(*place)
        token = self._beside(key, replace(reader, settled=False), expect=ANY)
        try:
            if row:
                self._store.delete(*place, expect=row.token)
            self._store.delete(*beside, expect=token)
        except StaleError:
            found = self._store.get(*beside)
            if found and found.token == token:
                raise
            # Another worker notes it, or strikes it out, since, and sees to both.

    def forget(self, destination: str) -> None:
        """Delete all of a destination."""
        for item in self._table.items(f"reads/{destination}"):
            reader = self._table.read(item.value)
            self.delete(_object(item.sort.removeprefix(f"{reader.profile}:")), reader)

    def _beside(self, key: Identity, reader: TemplateDependency, *, expect: str | None) -> str:
        return self._table.put(*_place_beside(key, reader), reader, expect=expect)


def _place(key: Identity) -> str:
    return f"{key.group}/{key.kind}/{key.name}/{key.namespace}"


def _place_beside(key: Identity, reader: TemplateDependency) -> tuple[str, str]:
    return f"reads/{reader.destination}", f"{reader.profile}:{_place(key)}"


def _object(place: str) -> Identity:
    group, kind, name, namespace = place.split("/")
    return Identity(group, kind, namespace, name)


def _row(key: Identity, reader: TemplateDependency) -> str:
    # In full the names would be longer than the key of an item may be.
    return f"{_place(key)}/{digest([reader.destination, reader.profile])[:_DIGEST]}"
