"""Profiles as they are to be applied: heads that say where, payloads that say what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bellhop.errors import MissingError
from bellhop.model.record import Content, Profile
from bellhop.ports.store import ANY
from bellhop.records.codec import decode, encode
from bellhop.records.payloads import Payloads, Sealed
from bellhop.records.table import Kept


@dataclass(frozen=True, slots=True)
class _Contents:
    contents: tuple[Content, ...]


class Profiles:
    """Profiles by trigger, source cluster and name."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, trigger: str, cluster: str, name: str) -> Kept[Profile] | None:
        """Read a profile.

        Raises:
            MissingError: its contents are lost; `head` reads the rest.
        """
        found = self._payloads.get(f"profile/{trigger}", f"{cluster}/{name}")
        return Kept(_profile(found), found.item.token) if found else None

    def head(self, trigger: str, cluster: str, name: str) -> Kept[Profile] | None:
        """Read a profile without its contents, for who only asks where it goes."""
        item = self._payloads.store.get(f"profile/{trigger}", f"{cluster}/{name}")
        return Kept(_head(self._payloads.head(item)), item.token) if item else None

    def of(self, trigger: str, cluster: str = "") -> Iterator[Profile]:
        """Yield the profiles a trigger generated, in all or one source cluster, for people.

        Of one whose contents are lost the error says so.
        """
        prefix = f"{cluster}/" if cluster else ""
        for item in self._payloads.store.query(f"profile/{trigger}", prefix=prefix):
            try:
                found = self._payloads.open(item)
            except MissingError as error:
                if not item.value.get("wide"):
                    yield replace(_head(item.value), error=str(error), error_code=error.code)
                continue
            if found:
                yield _profile(found)

    def heads(self, trigger: str, cluster: str = "") -> Iterator[Profile]:
        """Yield the profiles a trigger generated as `of` does, without their contents."""
        prefix = f"{cluster}/" if cluster else ""
        for item in self._payloads.store.query(f"profile/{trigger}", prefix=prefix):
            head = self._payloads.head(item)
            if head:
                yield _head(head)

    def put(self, profile: Profile, *, expect: str | None = ANY) -> str:
        """Write a profile and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        payload = encode(_Contents(profile.contents)) if profile.contents else None
        return self._payloads.put(*_place(profile), _clear(profile), payload, expect=expect)

    def put_head(self, profile: Profile, *, expect: str | None = ANY) -> str:
        """Write all of a profile but its contents, which stay what they are; return its token.

        Raises:
            StaleError: something else than `expect` is there, or nothing.
        """
        return self._payloads.put_head(*_place(profile), _clear(profile), expect=expect)

    def delete(self, trigger: str, cluster: str, name: str, *, expect: str | None = ANY) -> bool:
        """Delete a profile that holds nothing any more; say whether it was there.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._payloads.delete(f"profile/{trigger}", f"{cluster}/{name}", expect=expect)


def _place(profile: Profile) -> tuple[str, str]:
    return f"profile/{profile.trigger}", f"{profile.cluster}/{profile.name}"


def _clear(profile: Profile) -> dict[str, Any]:
    return encode(profile, omit=("contents",))


def _head(head: Mapping[str, Any]) -> Profile:
    return decode(Profile, head, contents=())


def _profile(found: Sealed) -> Profile:
    contents = decode(_Contents, found.payload).contents if found.payload else ()
    return decode(Profile, found.head, contents=contents)
