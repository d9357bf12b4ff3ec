"""Profiles by the names that people know them by, where a trigger has a template of names.

Records know a profile by a name of ours, which nobody else can have. What profileNameFormat was
rendered to may change, and be refused; it is read and written where people ask.
"""

from __future__ import annotations

from functools import cached_property

from bellhop.core.generated_names import profile_shown
from bellhop.errors import MissingError
from bellhop.installation.installation import Installation


class Titled:
    """What people call the profiles that triggers generated, as far as these name them."""

    def __init__(self, here: Installation) -> None:
        self._here = here

    def shown(self, name: str) -> str:
        """Return the name by which people know a profile."""
        return self._titles.get(name, name)

    def with_kind(self, name: str) -> str:
        """Return that name after the profile's kind."""
        return profile_shown(self.shown(name))

    @cached_property
    def _titles(self) -> dict[str, str]:
        naming = [
            name
            for name, trigger in self._here.catalogs.known().triggers.items()
            if trigger.spec.profile_name_format
        ]
        return {
            each.name: each.title
            for trigger in naming
            for each in self._here.records.profiles.heads(trigger)
            if each.title
        }


def trigger_meant(here: Installation, word: str) -> str:
    """Return the trigger that a word names, where no profile has that name; empty for none."""
    triggers = here.catalogs.known().triggers
    if word not in triggers or meant(here, word) != word:
        return ""
    if here.records.manifests.has("ClusterProfile", "", word) or here.records.profiles.head(
        "", "", word
    ):
        return ""
    made = any(each.name == word for name in triggers for each in here.records.profiles.heads(name))
    return "" if made else word


def made_by(here: Installation, trigger: str, cluster: str = "") -> list[str]:
    """Return our names of the profiles that a trigger made, and that hold something.

    With a cluster only those that go there, or are still to leave it.

    Raises:
        MissingError: there are none.
    """
    names = [
        each.name
        for each in here.records.profiles.heads(trigger)
        if each.number and (not cluster or each.may_name(cluster))
    ]
    if not names:
        raise MissingError(
            f"trigger '{trigger}' has made no profile that holds anything"
            f"{f' for {cluster!r}' if cluster else ''}; `bellhop describe"
            f" eventtrigger {trigger}` says why"
        )
    return names


def meant(here: Installation, word: str) -> str:
    """Return our name of the profile that people call so; the word itself where none is."""
    kept = here.records.titles.get("ClusterProfile", word) if word else None
    if kept is None:
        return word
    title = kept.value
    try:
        head = here.records.profiles.head(title.trigger, title.cluster, title.profile)
    except MissingError:
        return title.profile
    return title.profile if head and ("ClusterProfile", word) in head.value.titles else word
