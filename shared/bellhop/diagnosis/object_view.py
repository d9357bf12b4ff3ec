"""One object of a cluster: its last observation, and its present state in the cluster."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct

from bellhop.core.gvk import CLOUD_EVENT, GVK, ObjectKey
from bellhop.core.identity import version_of
from bellhop.diagnosis import cluster_status
from bellhop.diagnosis.calls import ask_all
from bellhop.errors import BellhopError, MissingError, StaleError, UnreachableError
from bellhop.installation import Installation
from bellhop.state.match import Observation

READ_SECONDS = 5.0
"""Time for a cluster to return an object: a person waits at a screen."""

_MOST_NAMES = 10_000

T = TypeVar("T")


class ObjectView(Struct, frozen=True):
    """The last observation of an object, and its present state; `blind` is why that is unknown."""

    key: ObjectKey
    kept: Observation | None
    there: Mapping[str, Any] | None
    blind: str = ""
    lost: str = ""

    @property
    def manifest(self) -> Mapping[str, Any] | None:
        """The newest manifest; None of an object that does not exist."""
        if not self.blind:
            return self.there
        return self.kept.manifest if self.kept else None

    @property
    def behind(self) -> bool:
        """Whether the cluster has another version than the observation."""
        if self.blind:
            return False
        known = self.kept.manifest if self.kept else None
        if known is None or self.there is None:
            return known is not self.there
        return _version_of(known) != _version_of(self.there)


def read_object_view(here: Installation, cluster: str, key: ObjectKey) -> ObjectView:
    """Read the observation of an object, and call its cluster, for a few seconds at most."""
    kept, lost = None, ""
    try:
        found = here.records.observations.get(cluster, key)
        kept = found.value if found else None
    except StaleError as error:
        lost = str(error)
    try:
        there = call_with_timeout(READ_SECONDS, lambda: _read_object(here, cluster, key))
    except BellhopError as error:
        return ObjectView(key, kept, None, str(error), lost)
    return ObjectView(key, kept, there, "", lost)


def list_known_names(here: Installation, cluster: str, gvk: GVK) -> list[str]:
    """Return the observed objects of a kind in a cluster, as NAMESPACE/NAME or NAME."""
    heads = here.records.observations.heads(cluster, gvk)
    return [
        "/".join(filter(None, (each.key.namespace, each.key.name)))
        for each in islice(heads, _MOST_NAMES)
        if not each.gone
    ]


def find_similar(here: Installation, cluster: str, key: ObjectKey) -> str:
    """Return the nearest known name, with its namespace; empty if none is near."""
    asked = "/".join(filter(None, (key.namespace, key.name)))
    known = list_known_names(here, cluster, key.gvk)
    same = [each for each in known if each.rpartition("/")[2] == key.name]
    near = same or difflib.get_close_matches(asked, known, n=1)
    return near[0] if near else ""


def call_with_timeout(seconds: float, act: Callable[[], T]) -> T:
    """Call something that may hang; an UnreachableError says that it takes longer."""
    answers = ask_all(["cluster"], lambda _: act(), seconds)
    if not answers:
        raise UnreachableError(f"the cluster did not answer within {seconds:g} s")
    return answers["cluster"]


def _read_object(here: Installation, cluster: str, key: ObjectKey) -> Mapping[str, Any] | None:
    if key.gvk == CLOUD_EVENT:
        raise MissingError("no cluster has CloudEvents: what is kept is what was sent")
    record = here.records.clusters.get(cluster)
    circuit = here.records.circuits.get(cluster)
    if record is None or (circuit and not circuit.value.closing):
        # A cluster that does not answer keeps off all but its probe, and so us.
        raise UnreachableError(cluster_status.read_health(here, cluster).message)
    kube = here.access.open(cluster, version=record.value.credentials)
    try:
        return kube.get(*key)
    except MissingError as error:
        raise MissingError(f"the cluster serves no {key.gvk.kind} in any version") from error


def _version_of(manifest: Mapping[str, Any]) -> tuple[str, int]:
    metadata = manifest.get("metadata") or {}
    return str(metadata.get("uid") or ""), version_of(metadata)
