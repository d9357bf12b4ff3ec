"""Limit of a written object's size: etcd refuses one of more than 1.5 MiB."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bellhop.ports.kube import Manifest

MOST_BYTES = 1_000_000
"""Bytes of a written object as JSON; its API server adds some."""

_NOTE = 64
TRUNCATED = "bellhop.dev/truncated"
"""Annotation of an object of which a list is cut: how many items of how many it has."""

OMITTED = "bellhop.dev/omitted"
"""Annotation of an object that is written without its data: the reason."""


def omit_data(manifest: Manifest, reason: str = "", most: int = MOST_BYTES) -> Manifest:
    """Return a ConfigMap or Secret without its data, if there is a reason, or it is too large."""
    size = _measure(manifest)
    if not reason and size <= most:
        return manifest
    metadata = manifest["metadata"]
    why = reason or f"it has {size:,} bytes, and an object at most {most:,}"
    annotations = {**(metadata.get("annotations") or {}), OMITTED: why}
    bare = {name: value for name, value in manifest.items() if name != "data"}
    return {**bare, "metadata": {**metadata, "annotations": annotations}}


def truncate(manifest: Manifest, most: int = MOST_BYTES) -> Manifest:
    """Return an object of at most `most` bytes: its largest list is cut until it fits.

    The annotation names the list that was cut first.
    """
    if _measure(manifest) <= most:
        return manifest
    copy: Manifest = json.loads(json.dumps(manifest))
    annotations = copy["metadata"].setdefault("annotations", {})
    annotations[TRUNCATED] = ""
    first: tuple[list[Any], int] | None = None
    while (size := _measure(copy)) > most:
        largest = max(_lists(copy), key=_measure_own, default=None)
        if largest is None:
            break
        total = len(largest)
        first = first or (largest, total)
        # Its items may differ in size, and the annotation takes some bytes.
        excess = (size - most) * 11 // 10 + _NOTE
        dropped = -(-excess * total // max(_measure_own(largest), 1))
        del largest[max(total - dropped, 0) :]
        annotations[TRUNCATED] = f"{len(first[0])} of {first[1]}"
    return copy


def _lists(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list) and value:
        yield value
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _lists(each)


def _measure_own(found: list[Any]) -> int:
    """Return the bytes of a list less those of the lists in it."""
    inner = sum(_measure(each) for item in found for each in _outermost(item))
    return _measure(found) - inner


def _outermost(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _outermost(each)


def _measure(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
