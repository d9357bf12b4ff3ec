"""Paths of a release's objects that other managers decide, by `driftExclusions`.

Helm writes a chart as a whole. So the values of others are patched into the objects that it writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from bellhop.core.gvk import ObjectKey
from bellhop.rendering import secrecy
from bellhop.rendering.drift_exclusions import kept, paths
from bellhop.state.content import Exclusion, PatchText, Target
from bellhop.state.profile import Profile


def excluded_of(profile: Profile) -> tuple[Exclusion, ...]:
    """Return what a profile excludes, as each of its charts has it."""
    return next((each.how.excluded for each in profile.contents if each.chart), ())


def keeping(
    excluded: Iterable[Exclusion], objects: Iterable[dict[str, Any]]
) -> Iterator[PatchText]:
    """Yield patches that keep excluded paths of objects as they are in their cluster."""
    for there in objects:
        operations = kept(there, paths(excluded, there))
        if operations:
            yield PatchText(
                json.dumps(operations),
                "driftExclusions",
                plain=True,
                secret=there["kind"] == secrecy.KIND,
                target=_only(ObjectKey.of(there)),
            )


def _only(key: ObjectKey) -> Target:
    """Return the target that is one object, which a chart may write without its namespace."""
    gvk, namespace, name = key
    return Target(
        group=re.escape(gvk.group),
        kind=re.escape(gvk.kind),
        namespace=f"(|{re.escape(namespace)})",
        name=re.escape(name),
    )
