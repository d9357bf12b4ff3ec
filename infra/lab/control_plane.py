"""Run several clusters on one machine, and leave nothing behind.

All share one etcd, each below a prefix of its own: they see nothing of each other, boot in
parallel, and cost one API server each.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Self

from bellhop.errors import BusyError, InvalidError
from infra.lab.binaries import Binaries
from infra.lab.cluster import Cluster
from infra.lab.etcd import Etcd
from infra.lab.processes import Nursery

_LOCK = "lab.lock"
_CHECK_SECONDS = 0.2


class ControlPlane:
    """One etcd and its clusters, from `with` to the end of the block.

    `state_dir` belongs to the lab: it is made, holds data, keys and logs, and is removed at the
    end. One that a killed process has left is taken over.
    """

    def __init__(self, binaries: Binaries, state_dir: Path) -> None:
        self._binaries = binaries
        self._folder = state_dir.absolute()
        self._clusters: dict[str, Cluster] = {}
        self._exits = contextlib.ExitStack()
        self._nursery: Nursery
        self._etcd: Etcd

    @property
    def clusters(self) -> dict[str, Cluster]:
        """Return the clusters by their names."""
        return dict(self._clusters)

    def __enter__(self) -> Self:
        """Claim the folder and start etcd.

        Raises:
            InvalidError: The folder holds something that is not the lab's.
            BusyError: Another process has its lab in the folder.
            UnreachableError: etcd does not come up.
        """
        with contextlib.ExitStack() as exits:
            _claim(self._folder, exits)
            self._nursery = exits.enter_context(Nursery())
            self._etcd = Etcd(self._binaries.etcd, self._folder, self._nursery)
            self._etcd.start()
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exits.close()
        self._clusters.clear()

    def start_cluster(
        self, name: str, *, controllers: bool = False, extra_args: Sequence[str] = ()
    ) -> Cluster:
        """Start a cluster and wait until it serves; may be called from several threads.

        `controllers` starts a controller manager too, which takes seconds more. `extra_args` go
        to the API server, after the lab's own and so over them.

        Raises:
            InvalidError: The name is taken, or cannot be a folder's.
            UnreachableError: It does not come up; the message ends with the log's last lines.
            MissingError: there is no program for the controllers.
        """
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
            raise InvalidError(f"cannot call a cluster '{name}': use a-z, 0-9 and '-'")
        folder = self._folder / "clusters" / name
        try:
            folder.mkdir(parents=True, mode=0o700)
        except FileExistsError:
            raise InvalidError(f"there is a cluster '{name}' already") from None
        cluster = Cluster(name, folder, self._binaries, self._etcd, self._nursery)
        self._exits.callback(cluster.close)
        cluster.boot(controllers=controllers, extra_args=extra_args)
        self._clusters[name] = cluster
        return cluster

    def start_clusters(self, *names: str, controllers: bool = False) -> list[Cluster]:
        """Start clusters in parallel; returns them in the order of the names.

        Raises:
            BellhopError: As `start_cluster`, for the first that fails.
        """
        with ThreadPoolExecutor(len(names)) as threads:
            try:
                boots = [
                    threads.submit(self.start_cluster, name, controllers=controllers)
                    for name in names
                ]
                # CPython hears a Ctrl-C that comes just before a wait only after it.
                while wait(boots, _CHECK_SECONDS).not_done:
                    pass
                return [boot.result() for boot in boots]
            except KeyboardInterrupt:
                self._nursery.close()  # Nobody waits for a boot whose program has ended.
                raise


def _claim(folder: Path, exits: contextlib.ExitStack) -> None:
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    lock_path = folder / _LOCK
    if any(folder.iterdir()) and not lock_path.exists():
        raise InvalidError(f"cannot use '{folder}' as the lab's folder: it holds other things")
    lock = exits.enter_context(lock_path.open("w"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BusyError(f"another process has its lab in '{folder}'") from None
    exits.callback(shutil.rmtree, folder, ignore_errors=True)
    _empty(folder)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()
