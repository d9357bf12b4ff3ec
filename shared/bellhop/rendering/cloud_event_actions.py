"""The effect of a CloudEvent on a trigger's add-ons: it deploys them, deletes them, or neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bellhop.api.kinds import EventTrigger
from bellhop.catalog.catalog import cluster_object
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.errors import InvalidError
from bellhop.gotemplate import Limits
from bellhop.rendering.cloud_events import event_of
from bellhop.rendering.event_fields import Fields
from bellhop.state.cluster import Cluster

CREATE, DELETE = "Create", "Delete"
NOTHING = ""
"""The output of a template for an event that changes nothing."""

_EACH = (CREATE, DELETE, NOTHING)

Matched = Sequence[tuple[ObjectKey, Mapping[str, Any]]]
"""The matches of a source, by key."""


class Standing(NamedTuple):
    """The matches of a trigger, the CloudEvents that are over, and those that change nothing."""

    stays: Matched
    over: Matched = ()
    idle: Matched = ()


def divide_matches(
    trigger: EventTrigger, cluster: Cluster, matched: Matched, limits: Limits
) -> Standing:
    """Divide the matches of a trigger from the CloudEvents that delete what earlier ones deployed.

    One whose action is rendered to nothing does neither.

    Raises:
        TemplateError: the trigger's cloudEventAction fails.
        InvalidError: it was rendered to something else.
    """
    if trigger.cloud_event_action == CREATE:
        return Standing(matched)
    said = [
        render_action(trigger, cluster, manifest, limits) if key.gvk == CLOUD_EVENT else CREATE
        for key, manifest in matched
    ]
    acts = list(zip(matched, said, strict=True))
    return Standing(*([each for each, does in acts if does == what] for what in _EACH))


def render_action(
    trigger: EventTrigger, cluster: Cluster, manifest: Mapping[str, Any], limits: Limits
) -> str:
    """Render what an event does for a trigger: Create, Delete or nothing.

    Raises:
        TemplateError: the template fails.
        InvalidError: it was rendered to something else, which may be data, and is not quoted.
    """
    root = {
        "MatchingResource": None,
        "Resource": None,
        "CloudEvent": dict(event_of(manifest)),
        "Cluster": cluster_object(cluster),
    }
    fields = Fields(root, limits, trigger.annotations)
    said = fields.text(trigger.cloud_event_action, "cloudEventAction").strip()
    if said not in _EACH:
        raise InvalidError(
            f"cannot determine what a CloudEvent does for {trigger.kind} '{trigger.name}': its"
            " cloudEventAction was rendered to something else than Create, Delete or nothing",
            where="cloudEventAction",
        )
    return said
