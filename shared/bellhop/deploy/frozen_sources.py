"""Charts and files as a release of a promotion has them, whatever a tag or branch has become.

first deployment of a release   found ─► content is stored ─► pin ─► used
all later ones                  pin ─► content
previews                        pin ─► content, or an error: they fetch and store nothing
those of the first stage        is it still so? another one is noted, and makes a new release
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from bellhop.core.digest import digest
from bellhop.errors import BellhopError, MissingError, StaleError
from bellhop.ports.store import ABSENT
from bellhop.rendering.inputs import MissingInputError
from bellhop.state.delays import counting_timer
from bellhop.state.messages import Promote
from bellhop.state.profile import Profile
from bellhop.state.promotion import MOVED, FrozenContent, Pin, place_of
from bellhop.state.records import Records

Description = Mapping[str, Any]
"""A source: its `digest`, and what else is needed to use it."""


class FoundSource(NamedTuple):
    """A source as it is now, and what fetches its content."""

    description: Description
    fetch: Callable[[], bytes]


class FrozenSources:
    """Pins of releases, and the contents that they name, for the profiles of stages."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def pin(self, profile: Profile, name: str, find: Callable[[], FoundSource]) -> Description:
        """Return a source as the release of a stage has it; its content is stored then.

        Raises:
            BellhopError: it is not pinned yet, and cannot be found.
            MissingInputError: it is not pinned yet, and the profile is only compared.
        """
        rollout, key = profile.rollout, digest(name)
        kept = self._records.pins.get(rollout.promotion, rollout.release, key)
        if kept is None:
            if profile.is_draft:
                raise MissingInputError(
                    f"cannot compare {name}: release {rollout.release} of promotion"
                    f" '{rollout.promotion}' does not have it yet; the first cluster that gets the"
                    " release fetches it"
                )
            return self._put(profile, key, name, find())
        if rollout.leads and not profile.is_draft:
            self._watch(profile, key, name, kept.value, find)
        return kept.value.description

    def find_digest(self, profile: Profile, name: str) -> str:
        """Return the digest of a source in the release of a stage; empty if it is not pinned."""
        rollout = profile.rollout
        kept = self._records.pins.get(rollout.promotion, rollout.release, digest(name))
        return str(kept.value.description["digest"]) if kept else ""

    def _put(self, profile: Profile, key: str, name: str, found: FoundSource) -> Description:
        promotion, release = profile.rollout.promotion, profile.rollout.release
        place = place_of(found.description["digest"])
        if self._records.frozen.token(promotion, place) == ABSENT:
            text = base64.b64encode(found.fetch()).decode()
            with suppress(StaleError):
                self._records.frozen.put(FrozenContent(promotion, place, text), expect=ABSENT)
        with suppress(StaleError):
            pin = Pin(promotion, release, key, {**found.description, "name": name})
            self._records.pins.put(pin, expect=ABSENT)
            return found.description
        # Another cluster of the stage was quicker.
        kept = self._records.pins.get(promotion, release, key)
        return kept.value.description if kept else found.description

    def _watch(
        self,
        profile: Profile,
        key: str,
        name: str,
        pin: Pin,
        find: Callable[[], FoundSource],
    ) -> None:
        """Note that a source has become another one; one that cannot be found has not."""
        try:
            found = find().description
        except BellhopError:
            return
        promotion = profile.rollout.promotion
        moved = self._records.pins.get(promotion, MOVED, key)
        known = moved.value.description if moved else pin.description
        if found["digest"] in ("", known["digest"]):
            return
        self._records.pins.put(Pin(promotion, MOVED, key, {**found, "name": name}))
        self._records.timers.gather(counting_timer(promotion), Promote(promotion).message().body)

    def content(self, profile: Profile, mark: str) -> bytes:
        """Return the stored content of a digest.

        Raises:
            MissingError: it is lost.
        """
        kept = self._records.frozen.get(profile.rollout.promotion, place_of(mark))
        if kept is None:
            raise MissingError(
                f"cannot deploy release {profile.rollout.release} of promotion"
                f" '{profile.rollout.promotion}': a chart or file of it is lost; promote another"
                " release"
            )
        return base64.b64decode(kept.value.content)
