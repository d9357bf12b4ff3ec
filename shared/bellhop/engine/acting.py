"""What a CloudEvent does to a trigger's add-ons: it brings them, or takes them away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellhop.engine.catalog import cluster_object
from bellhop.engine.cloud_events import event_of
from bellhop.engine.instantiate import Fields
from bellhop.errors import InvalidError
from bellhop.gotemplate import Limits
from bellhop.model.gvk import CLOUD_EVENT, ObjectKey
from bellhop.model.kinds import EventTrigger
from bellhop.model.record import Cluster

CREATE, DELETE = "Create", "Delete"

Matched = Sequence[tuple[ObjectKey, Mapping[str, Any]]]
"""What matches a source, by key."""


def standing(
    trigger: EventTrigger, cluster: Cluster, matched: Matched, limits: Limits
) -> tuple[Matched, Matched]:
    """Part what counts for a trigger from the CloudEvents that take away what theirs brought.

    Raises:
        TemplateError: the trigger's cloudEventAction fails.
        InvalidError: it was rendered to something else.
    """
    if trigger.cloud_event_action == CREATE:
        return matched, ()
    ending = {
        key
        for key, manifest in matched
        if key.gvk == CLOUD_EVENT and action(trigger, cluster, manifest, limits) == DELETE
    }
    stays = [each for each in matched if each[0] not in ending]
    return stays, [each for each in matched if each[0] in ending]


def action(
    trigger: EventTrigger, cluster: Cluster, manifest: Mapping[str, Any], limits: Limits
) -> str:
    """Render what an event does for a trigger: Create or Delete.

    Raises:
        TemplateError: the template fails.
        InvalidError: it was rendered to something else, which may be data, and is not told.
    """
    root = {
        "MatchingResource": None,
        "Resource": None,
        "CloudEvent": dict(event_of(manifest)),
        "Cluster": cluster_object(cluster),
    }
    fields = Fields(root, limits, trigger.annotations)
    said = fields.text(trigger.cloud_event_action, "cloudEventAction").strip()
    if said not in {CREATE, DELETE}:
        raise InvalidError(
            f"cannot tell what a CloudEvent does for {trigger.kind} '{trigger.name}': its"
            " cloudEventAction was rendered to neither Create nor Delete",
            where="cloudEventAction",
        )
    return said
