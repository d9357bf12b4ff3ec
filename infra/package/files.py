"""Our own files in a package, and the build ID that names the package after what it is built of.

The Terraform modules compute the same ID from the checkout that they are part of, and ask for the
package of that name: they need no package to plan, and never take one of other sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

_OURS = ("functions/**/*.py", "shared/bellhop/**/*.lua", "shared/bellhop/**/*.py")
_BUILDER = ("infra/package/*.py", "requirements.lock")

SOURCES: Mapping[str, tuple[str, ...]] = {
    "functions": (*_OURS, *_BUILDER, "pyproject.toml"),
    "layer": (*_BUILDER, "shared/bellhop/adapters/programs/*.py"),
}
"""All that decides what is in a package; `packages.tf` of both Terraform modules has the same."""

CLOUDS = ("aws", "gcp")

_LEFT_OUT = ("bellhop/cli/", "bellhop/runtime/embedded/", "bellhop/forwarder/")
"""Packages that no function runs."""


def build_id(kind: str, root: Path = ROOT) -> str:
    """Return the first twelve digits of the digest of all sources, by place and content.

    `kind` is `functions` or `layer`: a layer stays as it is while only our own code changes.
    """
    lines = [
        f"{place} {hashlib.sha256((root / place).read_bytes()).hexdigest()}\n"
        for place in sorted(_places(root, SOURCES[kind]))
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


def own_files(cloud: str) -> Mapping[str, bytes]:
    """Return our files for the functions of a cloud, and the licence, by their places."""
    others = [each for each in CLOUDS if each != cloud]
    found = {place.removeprefix("shared/"): ROOT / place for place in _places(ROOT, _OURS)}
    kept = {place: path for place, path in found.items() if not _of_another(place, others)}
    return {
        place: path.read_bytes() for place, path in {**kept, "LICENSE": ROOT / "LICENSE"}.items()
    }


def _places(root: Path, patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        yield from (str(path.relative_to(root)) for path in root.glob(pattern))


def _of_another(place: str, clouds: Iterable[str]) -> bool:
    """Return whether a file is of another cloud's functions, or of no function."""
    return place.startswith(_LEFT_OUT) or any(
        place.startswith((f"bellhop/runtime/{each}/", f"bellhop/adapters/{each}/"))
        or (place.startswith("functions/") and place.endswith(f"/{each}.py"))
        for each in clouds
    )
