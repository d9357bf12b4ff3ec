"""Build the zips for AWS: one for all functions on an architecture, and one for each layer.

    uv installs ─► our files ─► compiled ─► functions-ARCHITECTURE-ID.zip ─┬─► SHA256SUMS last
    uv installs ──────────────────────────► layer-cel-ARCHITECTURE-ID.zip ─┤
    Helm, kubectl ────────────────────────► layer-helm-x86_64-ID.zip ──────┘

The ID is of the sources: a zip of other sources has another name. Code travels compiled as well,
since nothing can be written beside it there, and each cold start would compile it again.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bellhop.errors import PermanentError
from infra.package.distributions import EXCLUDED, LAYERS, declared, install, kept, pinned
from infra.package.files import build_id, own_files
from infra.package.interpreter import ARCHITECTURES, find_interpreter
from infra.package.programs import ARCHITECTURE, PLACES, programs
from infra.package.zips import filled, zipped

STAGES = ("ingest", "evaluate", "deploy", "charts", "sweep", "schedule")

_TASK = "/var/task"


def build(
    into: Path, *, architectures: Iterable[str] = ARCHITECTURES, charts: bool = True
) -> Mapping[str, Path]:
    """Build the zips into a folder, in place of what was there; return them without the ID.

    The layer of Helm and kubectl is built for their one architecture.

    Raises:
        MissingError: there is no Python of Lambda's version, or no Helm or kubectl.
        PermanentError: uv cannot install what is locked.
    """
    beyond = programs() if charts else {}
    made = {}
    with filled(into) as folder:
        for architecture in architectures:
            for what, content in _zips(architecture, beyond):
                name = f"{what}-{architecture}"
                identity = build_id(what.partition("-")[0])
                made[name] = folder.put(f"{name}-{identity}.zip", content)
    return made


def _zips(architecture: str, beyond: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    yield "functions", _functions(architecture)
    for layer, distribution in LAYERS.items():
        yield f"layer-{layer}", _layer(architecture, distribution)
    if beyond and architecture == ARCHITECTURE:
        yield "layer-helm", zipped(beyond, PLACES.values())


def _functions(architecture: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        install(root, architecture, *declared("aws"), excluded=EXCLUDED["aws"])
        for place, content in own_files("aws").items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_bytes(content)
        _compile(root)
        return zipped(kept(root))


def _layer(architecture: str, distribution: str) -> bytes:
    """Make a layer, for the folder that Lambda looks for modules in."""
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder), architecture, pinned(distribution))
        files = kept(Path(folder))
        return zipped({f"python/{place}": content for place, content in files.items()})


def _compile(root: Path) -> None:
    """Compile what is Python; nobody compares it with its source, as both are of one zip."""
    options = ["--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", _TASK, "-q"]
    done = subprocess.run(  # noqa: S603 - Lambda's Python, with arguments of ours
        [find_interpreter(), "-I", "-S", "-m", "compileall", *options, str(root)],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": "0"},
    )
    if done.returncode:
        raise PermanentError(f"cannot compile the packages: {done.stdout[-500:]}")
