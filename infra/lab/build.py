"""Make sure that the control plane's binaries are there: find them, or make what is missing.

Finished programs are moved into the cache one by one, each in one step and the API server last,
so that a reader of the cache never sees half of one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from bellhop.errors import BellhopError, MissingError, PermanentError
from infra.lab import debian, kubernetes
from infra.lab.binaries import (
    APISERVER,
    CONTROLLER_MANAGER,
    ETCD,
    HOW_TO_GET_THEM,
    KUBECTL,
    Binaries,
    cache_folder,
    find,
    look_up,
    said_version,
)
from infra.lab.progress import Progress
from infra.lab.workshop import Workshop, only_one, remove_leftovers, workshop

Builder = Callable[[AbstractSet[str], Workshop], Mapping[str, Path]]

_NEEDED_BYTES = 4 * 10**9  # The compiler's cache and the unpacked source: 2.6 GB, measured.


def build(
    progress: Progress,
    environ: Mapping[str, str] = os.environ,
    builder: Builder | None = None,
    *,
    controllers: bool = True,
) -> Binaries:
    """Find the binaries, after making those that are missing; a second run waits for the first.

    Without a builder they are made from Debian's packages; without `controllers` no controller
    manager is made.

    Raises:
        MissingError: Some are missing and this machine cannot make them.
        UnreachableError: No mirror of Debian's archive answers.
        PermanentError: A step of the making failed.
    """
    if missing(environ, controllers=controllers):
        cache = cache_folder(environ)
        cache.parent.mkdir(parents=True, exist_ok=True)
        with only_one(cache.parent / "lock", progress):
            remove_leftovers(cache.parent)
            if programs := missing(
                environ, controllers=controllers
            ):  # The one we waited for may have made them.
                _make(
                    programs, cache, progress, builder or _build_from_debian(programs, cache.parent)
                )
    return find(environ)


def missing(environ: Mapping[str, str] = os.environ, *, controllers: bool = True) -> set[str]:
    """Name the programs that have to be made."""
    names = {name for name in (APISERVER, ETCD, KUBECTL) if look_up(name, environ) is None}
    apiserver = look_up(APISERVER, environ)
    ours = apiserver is None or apiserver.parent == cache_folder(environ)
    # A controller manager must fit the server: ours cannot complete somebody else's.
    if controllers and ours and not os.access(cache_folder(environ) / CONTROLLER_MANAGER, os.X_OK):
        names.add(CONTROLLER_MANAGER)
    return names


def _make(programs: AbstractSet[str], cache: Path, progress: Progress, builder: Builder) -> None:
    names = ", ".join(sorted(programs))
    progress.say(f"making {names}, to be kept in {cache}: {_how_long(programs)}.")
    with workshop(cache.parent, progress) as shop:
        try:
            made = builder(programs, shop)
        except BellhopError as error:
            raise type(error)(f"{error}; {HOW_TO_GET_THEM}") from error
        progress.stage("checking")
        for program in made.values():
            said_version(program)
        cache.mkdir(exist_ok=True)
        for name in sorted(made, key=lambda name: name == APISERVER):
            made[name].chmod(0o755)
            made[name].replace(cache / name)
    progress.say(f"done in {progress.elapsed():.0f} s.")


def _how_long(programs: AbstractSet[str]) -> str:
    if not programs & kubernetes.COMPILED:
        return "it takes a minute, once"
    return (
        f"it takes about {kubernetes.MINUTES} minutes, once, nearly all of it to compile"
        f" Kubernetes; to save them, {HOW_TO_GET_THEM}"
    )


def _build_from_debian(programs: AbstractSet[str], folder: Path) -> Builder:
    names = ", ".join(sorted(programs))
    if not debian.is_at_hand():
        raise MissingError(
            f"cannot make {names} here: this is not Debian with apt and its archive keyring;"
            f" {HOW_TO_GET_THEM}"
        )
    if shutil.disk_usage(folder).free < _NEEDED_BYTES:
        raise PermanentError(f"cannot make {names}: '{folder}' has less than 4 GB free")
    return kubernetes.make
