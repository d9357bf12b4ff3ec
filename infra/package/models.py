"""Make AWS' descriptions of its services as long as what is read of them.

The SDK reads them when a client is made, so that each cold start waits for it. Four fifths of them
are documentation, and of where services are called they tell for four hundred.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from typing import Any

from infra.package.parts import SERVICES

_DATA = re.compile(r"botocore/data/.+\.json(\.gz)?")
_LICENCES = re.compile(r"(botocore-[^/]+\.dist-info/).+")
_ENDPOINTS = "botocore/data/endpoints.json"
_NOTICE = (
    "Changed by Bellhop: what botocore/data holds is without its documentation and its spaces,"
    f" and endpoints.json tells of {', '.join(SERVICES)} alone.\n"
)
"""The licence asks that changes are told of."""


def shortened(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the files of a distribution, those that describe services shortened."""
    short = {place: _short(place, files[place]) for place in files if _DATA.fullmatch(place)}
    licences = {found[1] for place in files if (found := _LICENCES.fullmatch(place))}
    told = {f"{folder}CHANGES": _NOTICE.encode() for folder in licences if short}
    return {**files, **short, **told}


def _short(place: str, content: bytes) -> bytes:
    packed = place.endswith(".gz")
    model = _without_words(json.loads(gzip.decompress(content) if packed else content))
    if place == _ENDPOINTS:
        for partition in model["partitions"]:
            services = partition["services"]
            partition["services"] = {name: services[name] for name in SERVICES if name in services}
    text = json.dumps(model, separators=(",", ":")).encode()
    # The time would be another each time.
    return gzip.compress(text, mtime=0) if packed else text


def _without_words(value: Any) -> Any:
    """Empty the documentation, which the SDK looks for; a field that is called so stays."""
    if isinstance(value, list):
        return [_without_words(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "" if key == "documentation" and isinstance(each, str) else _without_words(each)
        for key, each in value.items()
    }
