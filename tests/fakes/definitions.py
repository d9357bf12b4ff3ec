"""Definitions as Sveltos' chart installs them: Bellhop's without what Bellhop adds."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from bellhop.configuration.definitions import make_definitions


def sveltos_definitions() -> Iterator[dict[str, Any]]:
    """Yield them: no label of Bellhop, no rules, and a status without conditions."""
    for each in make_definitions(rules=False):
        found = copy.deepcopy(each)
        found["metadata"].pop("labels", None)
        for version in found["spec"]["versions"]:
            status = version["schema"]["openAPIV3Schema"]["properties"].get("status") or {}
            for name in ("conditions", "observedGeneration"):
                status.get("properties", {}).pop(name, None)
        yield found
