"""Build the zips for AWS.

    wheels ─► tree of an architecture ─► compiled ─► a zip for each stage ─┬─► SHA256SUMS last
       └────────────────────────────────────────────► a zip for each layer ┤
    Helm, kubectl ──────────────────────────────────────────► their layer ─┘

The same sources, the same lock and the same Python make the same bytes, wherever and whenever:
what is compiled names the folder that Lambda unpacks to. Code travels compiled as well, since
nothing can be written beside it there, and each cold start would compile it anew.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from bellhop.errors import PermanentError
from bellhop.messages import CHARTS
from infra.package.interpreter import find_interpreter
from infra.package.models import shortened
from infra.package.modules import Reached, reached
from infra.package.parts import LAYERS, closed, distributions, kept
from infra.package.programs import ARCHITECTURE, PLACES, programs
from infra.package.wheels import ARCHITECTURES, LOCK, fetch
from infra.package.zips import filled, zipped

STAGES = ("ingest", "evaluate", "deploy", "charts", "sweep", "schedule")

_TASK = "/var/task"


def build(
    into: Path,
    *,
    stages: Iterable[str] = STAGES,
    layers: Iterable[str] = (),
    architectures: Iterable[str] = ARCHITECTURES,
) -> Mapping[str, Path]:
    """Build the zips of stages and layers into a folder; return them by their names.

    The layer of Helm and kubectl comes with the stage `charts`, for their one architecture.

    Raises:
        InvalidError: a distribution is not locked.
        MissingError: there is no Python of Lambda's version, or no Helm or kubectl.
        UnreachableError: wheels were not fetched before, and cannot be now.
    """
    wanted = {stage: reached(f"functions.{stage}.aws") for stage in stages}
    beside = {f"layer-{layer}": LAYERS[layer] for layer in layers}
    beyond = programs() if CHARTS in wanted else {}
    made = {}
    with filled(into) as folder:
        for architecture in architectures:
            zips = chain(_zips(wanted, architecture), _layers(beside, architecture))
            if beyond and architecture == ARCHITECTURE:
                zips = chain(zips, [("layer-helm", zipped(beyond, PLACES.values()))])
            for what, content in zips:
                name = f"{what}-{architecture}.zip"
                folder.put(name, content)
                made[name] = into / name
    return made


def _zips(wanted: Mapping[str, Reached], architecture: str) -> Iterator[tuple[str, bytes]]:
    """Make the zips of one architecture, one stage after the other."""
    files = {place: path for each in wanted.values() for place, path in each.files.items()}
    tree = {place: path.read_bytes() for place, path in files.items()}
    named = {stage: distributions(one.others) for stage, one in wanted.items()}
    wheels = _wheels(set().union(*named.values()), architecture)
    of_wheel = {name: shortened(kept(wheel)) for name, wheel in wheels.items()}
    for each in of_wheel.values():
        tree |= each
    compiled = _compiled(tree)
    for stage, one in wanted.items():
        places = set(one.files)
        for name in closed(named[stage], wheels):
            places |= of_wheel[name].keys()
        chosen = {place: tree[place] for place in places}
        chosen |= dict(compiled[place] for place in places & compiled.keys())
        chosen["LICENSE"] = (LOCK.parent / "LICENSE").read_bytes()
        yield stage, zipped(chosen)


def _layers(wanted: Mapping[str, Iterable[str]], architecture: str) -> Iterator[tuple[str, bytes]]:
    """Make the layers of one architecture, for the folder that Lambda looks for modules in."""
    for layer, names in wanted.items():
        wheels = _wheels(names, architecture).values()
        files = {place: content for wheel in wheels for place, content in kept(wheel).items()}
        yield layer, zipped({f"python/{place}": content for place, content in files.items()})


def _wheels(names: Iterable[str], architecture: str) -> Mapping[str, Path]:
    """Fetch distributions, and what these say they need, until nothing more is named."""
    wheels: Mapping[str, Path] = {}
    while missing := closed(names, wheels) - wheels.keys():
        wheels = {**wheels, **fetch(missing, architecture)}
    return wheels


def _compiled(tree: Mapping[str, bytes]) -> Mapping[str, tuple[str, bytes]]:
    """Compile what is Python: place and content of the compiled, by the place of the source."""
    interpreter = find_interpreter()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for place, content in tree.items():
            if place.endswith(".py"):
                (root / place).parent.mkdir(parents=True, exist_ok=True)
                (root / place).write_bytes(content)
        # Nobody looks whether they fit their sources: both are of one zip.
        options = ["--invalidation-mode", "unchecked-hash", "-s", folder, "-p", _TASK, "-q"]
        done = subprocess.run(  # noqa: S603 - Lambda's Python, with arguments of ours
            [interpreter, "-I", "-S", "-m", "compileall", *options, folder],
            check=False,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": "0"},
        )
        if done.returncode:
            raise PermanentError(f"cannot compile the packages: {done.stdout[-500:]}")
        found = {}
        for path in root.rglob("*.pyc"):
            source = path.parent.parent / f"{path.name.partition('.')[0]}.py"
            found[str(source.relative_to(root))] = str(path.relative_to(root)), path.read_bytes()
        return found
