"""Hints at templates over all that is declared: what `apply`, `render` and reports show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from bellhop.api.kinds import (
    ClusterProfile,
    ConfigMap,
    DeclarationKey,
    EventTrigger,
    PolicyRef,
    Secret,
)
from bellhop.catalog.catalog import Catalog
from bellhop.core.names import is_template

if TYPE_CHECKING:
    from bellhop.rendering.event_contents import Ref

Find = Callable[[str, str, str], ConfigMap | Secret | None]
"""Looks a ConfigMap or Secret up by kind, namespace and name."""


def of_trigger(
    catalog: Catalog, trigger: EventTrigger, find: Find, namespace: str = ""
) -> Iterator[str]:
    """Yield the hints at one trigger; a ref without a namespace is looked up in `namespace`."""
    held = list(_held(trigger.policy_refs, find, namespace))
    if held:
        from bellhop.diagnosis import template_hints as advice  # noqa: PLC0415 - it loads what renders

        source = catalog.sources.get(trigger.event_source_name)
        yield from advice.of_trigger(trigger, source, held)


def of_changed(catalog: Catalog, changed: Collection[DeclarationKey], find: Find) -> Iterator[str]:
    """Yield the hints at triggers and profiles that changed, or of which a part did."""
    for trigger in triggers(catalog, changed):
        said = of_trigger(catalog, trigger, find)
        yield from (f"{trigger.kind} '{trigger.name}': {each}" for each in said)
    for profile in profiles(catalog, changed):
        held = list(_held(profile.policy_refs, find, ""))
        if held:
            from bellhop.diagnosis import template_hints as advice  # noqa: PLC0415 - it loads what renders

            said = advice.of_profile(held)
            yield from (f"{profile.kind} '{profile.place}': {each}" for each in said)


def triggers(catalog: Catalog, changed: Collection[DeclarationKey]) -> Iterator[EventTrigger]:
    """Yield the triggers that changed, or of which a part did."""
    for trigger in catalog.triggers.values():
        source = DeclarationKey("EventSource", "", trigger.event_source_name)
        if trigger.key in changed or source in changed or _names(trigger, changed):
            yield trigger


def profiles(catalog: Catalog, changed: Collection[DeclarationKey]) -> Iterator[ClusterProfile]:
    """Yield users' own profiles that changed, or of which a part did."""
    for profile in catalog.profiles.values():
        if profile.key in changed or _names(profile, changed):
            yield profile


def _names(rule: EventTrigger | ClusterProfile, changed: Collection[DeclarationKey]) -> bool:
    return any(
        DeclarationKey(ref.kind, ref.namespace, ref.name) in changed for ref in rule.holder_refs
    )


def _held(
    refs: Iterable[PolicyRef], find: Find, namespace: str
) -> Iterator[tuple[Ref, ConfigMap | Secret]]:
    for ref in refs:
        place = ref.namespace or namespace
        if ref.files or not place or is_template(place + ref.name):
            continue
        holder = find(ref.kind, place, ref.name)
        if holder:
            from bellhop.rendering.event_contents import Ref  # noqa: PLC0415 - as above

            yield Ref(ref.kind, place, ref.name, ref.optional), holder
