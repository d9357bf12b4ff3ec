"""Hints at templates of all applied manifests, for `apply`, `render` and reports."""

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
    from bellhop.rendering.inputs import Ref

Find = Callable[[str, str, str], ConfigMap | Secret | None]
"""Looks a ConfigMap or Secret up by kind, namespace and name."""


def list_trigger_hints(
    catalog: Catalog, trigger: EventTrigger, find: Find, namespace: str = ""
) -> Iterator[str]:
    """Yield the hints at one trigger; `namespace` is that of refs without one."""
    held = list(_find_holders(trigger.policy_refs, find, namespace))
    if held:
        from bellhop.diagnosis import template_hints as advice  # noqa: PLC0415 - it loads what renders

        source = catalog.sources.get(trigger.event_source_name)
        yield from advice.list_trigger_hints(trigger, source, held)


def list_changed_hints(
    catalog: Catalog, changed: Collection[DeclarationKey], find: Find
) -> Iterator[str]:
    """Yield the hints at triggers and profiles that changed, or that a change concerns."""
    for trigger in list_changed_triggers(catalog, changed):
        said = list_trigger_hints(catalog, trigger, find)
        yield from (f"{trigger.kind} '{trigger.name}': {each}" for each in said)
    for profile in list_changed_profiles(catalog, changed):
        held = list(_find_holders(profile.policy_refs, find, ""))
        if held:
            from bellhop.diagnosis import template_hints as advice  # noqa: PLC0415 - it loads what renders

            said = advice.list_profile_hints(held)
            yield from (f"{profile.kind} '{profile.place}': {each}" for each in said)


def list_changed_triggers(
    catalog: Catalog, changed: Collection[DeclarationKey]
) -> Iterator[EventTrigger]:
    for trigger in catalog.triggers.values():
        source = DeclarationKey("EventSource", "", trigger.event_source_name)
        if trigger.key in changed or source in changed or _refers_to(trigger, changed):
            yield trigger


def list_changed_profiles(
    catalog: Catalog, changed: Collection[DeclarationKey]
) -> Iterator[ClusterProfile]:
    for profile in catalog.profiles.values():
        if profile.key in changed or _refers_to(profile, changed):
            yield profile


def _refers_to(rule: EventTrigger | ClusterProfile, changed: Collection[DeclarationKey]) -> bool:
    return any(
        DeclarationKey(ref.kind, ref.namespace, ref.name) in changed for ref in rule.holder_refs
    )


def _find_holders(
    refs: Iterable[PolicyRef], find: Find, namespace: str
) -> Iterator[tuple[Ref, ConfigMap | Secret]]:
    for ref in refs:
        place = ref.namespace or namespace
        if ref.files or not place or is_template(place + ref.name):
            continue
        holder = find(ref.kind, place, ref.name)
        if holder:
            from bellhop.rendering.inputs import Ref  # noqa: PLC0415 - as above

            yield Ref(ref.kind, place, ref.name, ref.optional), holder
