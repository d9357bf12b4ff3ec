"""Status of the objects that users write, computed from records and the catalog.

Nothing is read from a cluster: the caller knows the generation of the object, and the status that
was written last, of which the times of conditions are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from bellhop.api.sveltos_cluster import KIND as CLUSTER
from bellhop.configuration.cluster_status import read_cluster_status
from bellhop.configuration.conditions import State, make_conditions
from bellhop.configuration.definitions import DEFINITIONS
from bellhop.configuration.objects import Observed, RoleRequestStatus, SveltosClusterStatus, to_json
from bellhop.configuration.profiles import make_profile_status, make_request_status, own_place
from bellhop.configuration.promotions import make_promotion_status
from bellhop.configuration.rules import (
    make_classifier_status,
    make_health_status,
    make_set_status,
    make_trigger_status,
)
from bellhop.core.identity import ROLE_REQUEST
from bellhop.installation import InstallationView

_NOTHING: Mapping[str, Any] = {}
_TYPES = {each.kind: each.status for each in DEFINITIONS}


def make_status(
    here: InstallationView,
    kind: str,
    namespace: str,
    name: str,
    *,
    generation: int = 0,
    previous: Mapping[str, Any] = _NOTHING,
    refusal: State | None = None,
) -> dict[str, Any] | None:
    """Return the status of an object that a user wrote.

    None of an object that is not known, and of a kind that has no status. A `refusal` is the
    state of an object that is not in force: the other fields are those of the version that is.
    The result may be larger than an API server takes: see `limits`.
    """
    found = _make(here, kind, namespace, name)
    status, state = found or (_make_empty(kind), None)
    state = refusal or state
    if refusal and isinstance(status, SveltosClusterStatus | RoleRequestStatus):
        status = replace(status, failure_message=refusal.message)
    if status is None or state is None:
        return None
    return observe(here, status, state, generation, previous)


def observe(
    here: InstallationView,
    status: Observed,
    state: State,
    generation: int,
    previous: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a status with the conditions of a state, as JSON has it."""
    now = here.records.clock.now()
    conditions = make_conditions(state, generation, previous, now)
    whole = replace(status, observed_generation=generation, conditions=conditions)
    return to_json(whole)


def _make(
    here: InstallationView, kind: str, namespace: str, name: str
) -> tuple[Observed, State] | None:
    rule = f"{namespace}/{name}" if namespace else name
    if kind == "EventTrigger":
        return make_trigger_status(here, name)
    if kind in ("ClusterProfile", "Profile"):
        return make_profile_status(here, own_place(kind, namespace, name))
    if kind == "ClusterPromotion":
        return make_promotion_status(here, name)
    if kind in ("ClusterSet", "Set"):
        return make_set_status(here, rule)
    if kind == "Classifier":
        return make_classifier_status(here, name)
    if kind == "ClusterHealthCheck":
        return make_health_status(here, name)
    if kind == ROLE_REQUEST:
        return make_request_status(here, own_place(kind, namespace, name))
    return read_cluster_status(here, rule) if kind == CLUSTER else None


def _make_empty(kind: str) -> Observed | None:
    found = _TYPES.get(kind)
    return found() if found and issubclass(found, Observed) else None
