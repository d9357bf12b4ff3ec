"""Build the zips.

    wheels ─► tree of an architecture ─► compiled ─► a zip for each stage, and SHA256SUMS last

The same sources, the same lock and the same Python make the same bytes, wherever and whenever:
times, rights and order are fixed, and what is compiled names the folder that Lambda unpacks to.
Code travels compiled as well, since nothing can be written beside it there, and each cold start
would compile it anew. Each file is moved to its name in one step; sums that are there are those
of a build that was ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bellhop.errors import PermanentError
from infra.package.interpreter import find_interpreter
from infra.package.modules import Reached, reached
from infra.package.parts import closed, distributions, kept
from infra.package.wheels import ARCHITECTURES, LOCK, fetch

STAGES = ("ingest", "evaluate", "deploy", "sweep", "schedule")
SUMS = "SHA256SUMS"

_UNFINISHED = ".unfinished"
_TASK = "/var/task"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # The oldest time that a zip can tell.
_RIGHTS = 0o100644 << 16


def build(
    into: Path, *, stages: Iterable[str] = STAGES, architectures: Iterable[str] = ARCHITECTURES
) -> Mapping[str, Path]:
    """Build the zips of stages into a folder; return them by their names.

    Raises:
        InvalidError: a distribution is not locked.
        MissingError: there is no Python of Lambda's version.
        UnreachableError: wheels were not fetched before, and cannot be now.
    """
    wanted = {stage: reached(f"functions.{stage}.aws") for stage in stages}
    into.mkdir(parents=True, exist_ok=True)
    sums = {}
    with _alone(into):
        (into / SUMS).unlink(missing_ok=True)
        for architecture in architectures:
            for stage, content in _zips(wanted, architecture):
                name = f"{stage}-{architecture}.zip"
                sums[name] = hashlib.sha256(content).hexdigest()
                _put(into / name, content)
        lines = [f"{digest}  {name}\n" for name, digest in sorted(sums.items())]
        _put(into / SUMS, "".join(lines).encode())
    return {name: into / name for name in sums}


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other builds out of a folder, however this one ends, and remove what a killed one left.

    A second one waits, and builds it all again.
    """
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        for left in folder.glob(f"*{_UNFINISHED}"):
            left.unlink()
        yield
    finally:
        os.close(held)


def _zips(wanted: Mapping[str, Reached], architecture: str) -> Iterator[tuple[str, bytes]]:
    """Make the zips of one architecture, one stage after the other."""
    files = {place: path for each in wanted.values() for place, path in each.files.items()}
    tree = {place: path.read_bytes() for place, path in files.items()}
    named = {stage: distributions(one.others) for stage, one in wanted.items()}
    wheels = _wheels(set().union(*named.values()), architecture)
    of_wheel = {name: kept(wheel) for name, wheel in wheels.items()}
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
        yield stage, _zipped(chosen)


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


def _zipped(files: Mapping[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as opened:
        for place, content in sorted(files.items()):
            entry = zipfile.ZipInfo(place, _EPOCH)
            entry.create_system = 3  # Unix, wherever it is built.
            entry.external_attr = _RIGHTS
            entry.compress_type = zipfile.ZIP_DEFLATED
            opened.writestr(entry, content, compresslevel=6)
    return whole.getvalue()


def _put(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all."""
    unfinished = path.with_name(f"{path.name}{_UNFINISHED}")
    unfinished.write_bytes(content)
    unfinished.replace(path)
