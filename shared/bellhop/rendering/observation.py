"""From what clusters send to what we keep of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import check_key, check_uid, check_version, version_of
from bellhop.errors import InvalidError
from bellhop.state.match import Observation


def observe(cluster: str, manifest: Mapping[str, Any], now: datetime) -> Observation:
    """Return the observation of a stored object, without managedFields."""
    metadata = dict(manifest.get("metadata") or {})
    metadata.pop("managedFields", None)
    kept = {**manifest, "metadata": metadata}
    return Observation(
        cluster=cluster,
        key=ObjectKey.of(kept),
        uid=str(metadata.get("uid") or ""),
        resource_version=version_of(metadata),
        manifest=kept,
        seen_at=now,
    )


def bury(cluster: str, key: ObjectKey, uid: str, version: int, now: datetime) -> Observation:
    """Return the tombstone of an object that is known to be deleted."""
    return Observation(cluster, key, uid, version, None, now)


def read_observation(cluster: str, manifest: Any, now: datetime) -> Observation:
    """Return the observation of an object in a request, which may say anything.

    Raises:
        InvalidError: no API server has such an object.
    """
    if not isinstance(manifest, Mapping):
        raise InvalidError("cannot take an object: it must be a map")
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping):
        raise InvalidError("cannot take an object: it has no metadata")
    for kind in ("labels", "annotations"):
        texts = metadata.get(kind)
        if texts is not None and not _are_texts(texts):
            raise InvalidError(f"cannot take an object: its {kind} are not texts by name")
    names = (manifest.get("apiVersion"), manifest.get("kind"), metadata.get("name"))
    if not all(isinstance(name, str) and name for name in names):
        raise InvalidError("cannot take an object: it has no kind or name")
    if not isinstance(metadata.get("namespace") or "", str):
        raise InvalidError("cannot take an object: what names it must be a string")
    if not isinstance(metadata.get("resourceVersion") or "", str):
        raise InvalidError("cannot take an object: its resourceVersion must be a string")
    check_uid(metadata.get("uid"))
    check_version(metadata.get("resourceVersion"))
    observation = replace(observe(cluster, manifest, now), unconfirmed=True)
    check_key(observation.key)
    return observation


def read_tombstone(cluster: str, tombstone: Any, now: datetime) -> Observation:
    """Return the tombstone of an object that a request reports as deleted.

    Raises:
        InvalidError: no API server can have had such an object.
    """
    try:
        key = ObjectKey.parse(tombstone["key"])
        uid, version = tombstone["uid"], tombstone["version"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidError("cannot take what is 'gone': it has no key, uid and version") from error
    check_key(key)
    return bury(cluster, key, check_uid(uid), check_version(version), now)


def read_hint(hint: Any) -> tuple[str, int, ObjectKey]:
    """Return uid, resource version before the write, and key of an object that may change.

    Raises:
        InvalidError: no API server can have such an object.
    """
    try:
        key = ObjectKey.parse(hint["key"])
        uid, before = hint["uid"], hint["before"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidError("cannot take a 'hint': it has no key, uid and version") from error
    check_key(key)
    return check_uid(uid), check_version(before), key


def _are_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())
