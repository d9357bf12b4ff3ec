"""The processes of an installation on one machine: `bellhop serve`, and a forwarder a cluster."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.programs.program import HELM, KUBECTL
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.errors import BellhopError
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from bellhop.runtime.embedded.state import Embedded, open_state
from bellhop.settings import Settings
from bellhop.state.records import Records
from infra.lab.port import free_port
from infra.lab.processes import Nursery, Process

_READY = 60.0
_DAY = 86_400
_INHERITED = ("PATH", "PYTHONPATH", "HOME", "LANG")


class Registered(Protocol):
    """A cluster of the lab, as the stand uses it."""

    @property
    def name(self) -> str:
        """Return the cluster's name."""
        ...

    def kubeconfig(self, path: Path | None = None) -> dict[str, object]:
        """Make an administrator's kubeconfig, and write it where a path is given."""
        ...


class Stand:
    """One installation: its state folder, its processes, and a way to run the CLI on it."""

    def __init__(
        self, folder: Path, nursery: Nursery, *, settings: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.state = folder / "state"
        self._nursery = nursery
        self._port = free_port()
        self._ports: dict[str, int] = {}
        self._opened: Embedded | None = None
        self.processes: dict[str, Process] = {}
        self.environment = {
            **{name: os.environ[name] for name in _INHERITED if name in os.environ},
            **_programs(),
            **(settings or {}),
            "BELLHOP_STATE": str(self.state),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }
        folder.mkdir(parents=True, exist_ok=True)

    # Bellhop itself -------------------------------------------------------------------------

    def serve(self) -> None:
        """Start `bellhop serve`, again if it was killed, and wait until it answers."""
        argv = [_program(), "serve", "--listen", f"127.0.0.1:{self._port}"]
        log = self.folder / "serve.log"
        begun = log.read_text().count('"Bellhop serves"') if log.exists() else 0
        self._start("serve", argv)
        self._await("serve", lambda: log.read_text().count('"Bellhop serves"') > begun)

    def kill(self, name: str) -> None:
        """Kill a process as a crash would: no chance to tidy up."""
        process = self.processes[name]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(_READY)

    def stop(self, name: str) -> int | None:
        """End a process as an operator would; return its exit status."""
        process = self.processes[name]
        process.stop()
        return process.returncode()

    def bellhop(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command of the CLI on this installation, whatever comes of it."""
        return subprocess.run(  # noqa: S603 - our own program
            [_program(), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            check=False,
            timeout=120,
        )

    def do(self, *arguments: str, stdin: str = "") -> str:
        """Run a command of the CLI that must succeed; return what it printed.

        Raises:
            RuntimeError: it failed; the message is what it said.
        """
        done = self.bellhop(*arguments, stdin=stdin)
        if done.returncode:
            said = done.stderr.strip() or done.stdout.strip()
            raise RuntimeError(f"`bellhop {' '.join(arguments)}` failed: {said}")
        return done.stdout

    # Clusters ---------------------------------------------------------------------------------

    def register(
        self,
        cluster: Registered,
        *more: str,
        namespace: str,
        labels: str,
        forward: bool = True,
    ) -> str:
        """Register a cluster and start its forwarder; return what the CLI printed.

        `more` are further arguments of the command.
        """
        path = self.folder / f"{cluster.name}.kubeconfig"
        cluster.kubeconfig(path)
        port = self._ports.setdefault(cluster.name, free_port())
        said = self.do(
            *("register", "cluster", "--namespace", namespace, "--cluster", cluster.name),
            *("--kubeconfig", str(path), "--labels", labels),
            *(("--forwarder-url", f"https://127.0.0.1:{port}") if forward else ("--no-forwarder",)),
            *more,
        )
        if forward:
            self._write_forwarder_kubeconfig(cluster)
            self.forward(cluster.name)
        return said

    def forward(self, name: str) -> None:
        """Start a cluster's forwarder, again if it was killed, and wait until it listens."""
        port = self._ports[name]
        argv = [
            *(sys.executable, "-m", "bellhop.forwarder"),
            *("--kubeconfig", str(self.folder / f"{name}-forwarder.kubeconfig")),
            *("--listen", f"127.0.0.1:{port}"),
            *("--spool", str(self.folder / f"{name}-spool")),
            *("--health", "127.0.0.1:0"),
        ]
        self._start(f"forwarder-{name}", argv)
        self._await(f"forwarder-{name}", lambda: _listens(port))

    def _write_forwarder_kubeconfig(self, cluster: Registered) -> None:
        """Give the forwarder an identity of its own: its ServiceAccount, never the admin."""
        admin = sanitise(cluster.kubeconfig(), reach=LOCAL)
        client = KubeClient(cluster.name, admin, reach=LOCAL)
        token = client.token_request(NAMESPACE, NAME, seconds=_DAY)
        client.close()
        config = admin.to_dict()
        config["users"][0]["user"] = {"token": token}
        path = self.folder / f"{cluster.name}-forwarder.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))

    def go_on_from(self, other: Stand) -> None:
        """Take a copy of what another stand knows, whose processes have ended, and its ports."""
        self.close()
        shutil.copytree(other.folder, self.folder, dirs_exist_ok=True)
        self._port = other._port
        self._ports = dict(other._ports)

    def settle(self, cluster: str) -> None:
        """Wait until a cluster was resynced after all that was requested until now.

        A resync under way ends later than this, but may have begun before an apply: only when no
        message waits, either, is the cluster as the manifests have it, and stays so.
        """
        asked = datetime.now(UTC)
        resyncs = self._installation().queues["sweep"]

        def resynced() -> bool:
            at = self.records().health.get(cluster).value.swept_at
            left = resyncs.backlog()
            return at is not None and at > asked and not left.waiting + left.held

        deadline = time.monotonic() + _READY
        self.do("resync", cluster)
        while not resynced():
            if time.monotonic() > deadline:
                raise RuntimeError(f"cluster {cluster} is never resynced")
            time.sleep(0.02)

    def records(self) -> Records:
        """Open the installation's records beside the process that serves them."""
        return self._installation().installation.records

    def _installation(self) -> Embedded:
        if self._opened is None:
            self._opened = open_state(self.state, Settings())
        return self._opened

    def close(self) -> None:
        """Close the state folder; the nursery ends the processes."""
        if self._opened:
            self._opened.close()
            self._opened = None

    # Processes ----------------------------------------------------------------------------------

    def _start(self, name: str, argv: list[str]) -> None:
        self.processes[name] = self._nursery.start(
            argv, self.folder / f"{name}.log", cwd=_root(), env=self.environment
        )

    def _await(self, name: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _READY
        process = self.processes[name]
        while not ready():
            if process.returncode() is not None:
                raise RuntimeError(f"cannot start {name}: {process.last_words()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not get ready: {process.last_words()}")
            time.sleep(0.02)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _programs() -> dict[str, str]:
    """Name Helm and kubectl where they are found: the stand has a cache of its own."""
    found = {}
    for program in (HELM, KUBECTL):
        with suppress(BellhopError):
            found[program.variable] = str(program.find())
    return found


def _program() -> str:
    program = Path(sys.executable).parent / "bellhop"
    found = str(program) if program.exists() else shutil.which("bellhop")
    if found is None:
        raise RuntimeError("cannot find the program `bellhop`; install the project first")
    return found


def _root() -> Path:
    return Path(__file__).resolve().parents[2]
