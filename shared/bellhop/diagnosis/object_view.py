"""One object of a cluster: what is known of it, and what a look into the cluster shows."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct

from bellhop.core.gvk import CLOUD_EVENT, GVK, ObjectKey
from bellhop.core.identity import version_of
from bellhop.diagnosis import overview
from bellhop.errors import BellhopError, MissingError, StaleError, UnreachableError
from bellhop.installation.installation import Installation
from bellhop.state.record import Observation

LOOK_SECONDS = 5.0
"""How long a cluster may take to show an object: who asks sits before a screen."""

_MOST_NAMES = 10_000

T = TypeVar("T")


class ObjectView(Struct, frozen=True):
    """What is known of an object, and what is there; `blind` says why nobody could look."""

    key: ObjectKey
    kept: Observation | None
    there: Mapping[str, Any] | None
    blind: str = ""
    lost: str = ""

    @property
    def manifest(self) -> Mapping[str, Any] | None:
        """Return the newest manifest, None of an object that is not there."""
        if not self.blind:
            return self.there
        return self.kept.manifest if self.kept else None

    @property
    def behind(self) -> bool:
        """Say whether the cluster has something else than what is known."""
        if self.blind:
            return False
        known = self.kept.manifest if self.kept else None
        if known is None or self.there is None:
            return known is not self.there
        return _version(known) != _version(self.there)


def see(here: Installation, cluster: str, key: ObjectKey) -> ObjectView:
    """Read what is known of an object, and look at it in its cluster, for a few seconds at most."""
    kept, lost = None, ""
    try:
        found = here.records.observations.get(cluster, key)
        kept = found.value if found else None
    except StaleError as error:
        lost = str(error)
    try:
        there = within(LOOK_SECONDS, lambda: _look(here, cluster, key))
    except BellhopError as error:
        return ObjectView(key, kept, None, str(error), lost)
    return ObjectView(key, kept, there, "", lost)


def known_names(here: Installation, cluster: str, gvk: GVK) -> list[str]:
    """List the objects of a kind that are known in a cluster, as NAMESPACE/NAME or NAME."""
    heads = here.records.observations.heads(cluster, gvk)
    return [
        "/".join(filter(None, (each.key.namespace, each.key.name)))
        for each in islice(heads, _MOST_NAMES)
        if not each.gone
    ]


def alike(here: Installation, cluster: str, key: ObjectKey) -> str:
    """Name an object that may have been meant, with its namespace; empty if none looks like it."""
    asked = "/".join(filter(None, (key.namespace, key.name)))
    known = known_names(here, cluster, key.gvk)
    same = [each for each in known if each.rpartition("/")[2] == key.name]
    near = same or difflib.get_close_matches(asked, known, n=1)
    return near[0] if near else ""


def within(seconds: float, act: Callable[[], T]) -> T:
    """Do something that may hang, and wait for it a bounded time.

    Raises:
        UnreachableError: it takes longer; it is left to itself.
        BellhopError: it failed.
    """
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(act())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise UnreachableError(f"the cluster did not answer within {seconds:g} s")
    return done[0]


def _look(here: Installation, cluster: str, key: ObjectKey) -> Mapping[str, Any] | None:
    if key.gvk == CLOUD_EVENT:
        raise MissingError("no cluster has CloudEvents: what is kept is what was sent")
    record = here.records.clusters.get(cluster)
    circuit = here.records.circuits.get(cluster)
    if record is None or (circuit and not circuit.value.closing):
        # A cluster that does not answer keeps off all but its probe, and so us.
        raise UnreachableError(overview.health(here, cluster).message)
    kube = here.access.open(cluster, version=record.value.credentials)
    try:
        return kube.get(*key)
    except MissingError as error:
        raise MissingError(f"the cluster serves no {key.gvk.kind} in any version") from error


def _version(manifest: Mapping[str, Any]) -> tuple[str, int]:
    metadata = manifest.get("metadata") or {}
    return str(metadata.get("uid") or ""), version_of(metadata)
