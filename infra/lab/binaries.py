"""Find the control plane's programs, wherever the user keeps them.

`KUBEBUILDER_ASSETS` comes first because it is where Kubernetes developers already point their
test binaries, then PATH, then the cache that `infra.lab.build` fills.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bellhop.errors import MissingError, PermanentError

BUILT_VERSION = "1.20.2"
"""The Kubernetes release that Debian's source package holds, and so the cache's folder name."""

APISERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
ETCD = "etcd"
KUBECTL = "kubectl"

HOW_TO_GET_THEM = (
    "set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd (envtest's binaries will "
    "do), or put them on PATH"
)


@dataclass(frozen=True)
class Binaries:
    """The programs of one control plane; those that are None were not found and are optional."""

    apiserver: Path
    etcd: Path
    controller_manager: Path | None
    kubectl: Path | None
    version: tuple[int, int]
    """Major and minor release of the API server, on which its flags depend."""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Name the folder that built binaries are kept in; it need not exist."""
    root = environ.get("XDG_CACHE_HOME") or ""
    # The XDG rules: a relative path is to be ignored.
    base = Path(root) if root.startswith("/") else Path(environ.get("HOME") or "~").expanduser()
    if not root.startswith("/"):
        base /= ".cache"
    return base / "bellhop" / "control-plane" / BUILT_VERSION


def find(environ: Mapping[str, str] = os.environ) -> Binaries:
    """Find the binaries, the first place that has one wins.

    Raises:
        MissingError: There is no kube-apiserver or no etcd; the message says how to get them.
    """
    found = {name: look_up(name, environ) for name in (APISERVER, ETCD, KUBECTL)}
    apiserver, etcd = found[APISERVER], found[ETCD]
    if apiserver is None or etcd is None:
        missing = " and ".join(name for name in (APISERVER, ETCD) if found[name] is None)
        raise MissingError(
            f"cannot start a control plane without {missing}; {HOW_TO_GET_THEM}; on Debian"
            " `python -m infra.lab build` makes them"
        )
    version = release(apiserver)
    return Binaries(
        apiserver=apiserver,
        etcd=etcd,
        controller_manager=_fitting_controller_manager(apiserver, version, environ),
        kubectl=found[KUBECTL],
        version=version,
    )


def look_up(name: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Find one program by its name, None if no place has it."""
    return next(_candidates(name, environ), None)


def release(program: Path) -> tuple[int, int]:
    """Ask a Kubernetes program for its major and minor release.

    Raises:
        PermanentError: The program does not run, or does not say.
    """
    answer = said_version(program)
    if match := re.search(r"v(\d+)\.(\d+)\.", answer):
        return int(match[1]), int(match[2])
    raise PermanentError(f"cannot tell the release of '{program}': it says {answer!r}")


def said_version(program: Path) -> str:
    """Run a program for its version, which also proves that it runs here.

    Raises:
        PermanentError: The program does not run.
    """
    arguments = ["version", "--client"] if program.name == KUBECTL else ["--version"]
    try:
        done = subprocess.run(  # noqa: S603 - the lab's whole purpose is to run these programs
            [program, *arguments], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise PermanentError(f"'{program}' does not run: {error}") from error
    return done.stdout.strip()


def _fitting_controller_manager(
    apiserver: Path, version: tuple[int, int], environ: Mapping[str, str]
) -> Path | None:
    # Envtest ships none, and one of another release speaks APIs that this server lacks: then
    # none at all is better than the cache's.
    for candidate in _candidates(CONTROLLER_MANAGER, environ):
        if candidate.parent == apiserver.parent or release(candidate) == version:
            return candidate
    return None


def _candidates(name: str, environ: Mapping[str, str]) -> Iterator[Path]:
    for folder in _places(environ):
        path = folder / name
        if path.is_file() and os.access(path, os.X_OK):
            yield path.absolute()


def _places(environ: Mapping[str, str]) -> Iterator[Path]:
    if assets := environ.get("KUBEBUILDER_ASSETS"):
        yield Path(assets)
    yield from (Path(part) for part in environ.get("PATH", "").split(os.pathsep) if part)
    yield cache_folder(environ)
