"""One cluster of the lab: an API server, a controller manager on request, and its credentials."""

from __future__ import annotations

import base64
import http.client
import json
import secrets
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from bellhop.errors import MissingError, UnreachableError
from infra.lab.baseline import Baseline
from infra.lab.binaries import Binaries
from infra.lab.certificates import write_certificates
from infra.lab.etcd import Etcd
from infra.lab.flags import SERVED_ADDRESSES, controller_flags, server_flags
from infra.lab.port import Port
from infra.lab.processes import Nursery, Process

_BOOT_SECONDS = 240.0  # Three on an idle machine; 90 were too few at a load of 25 on two cores.
_CALM_SECONDS = 0.1


class Cluster:
    """A running cluster; made by `ControlPlane.start_cluster`.

    Its administrator (group system:masters) holds `token`, its certificate is signed by `ca_pem`.
    Without controllers nothing collects garbage, namespaces stay Terminating, and the aggregated
    ClusterRoles (admin, edit, view) are empty.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        binaries: Binaries,
        etcd: Etcd,
        nursery: Nursery,
    ) -> None:
        self.name = name
        self.token = secrets.token_urlsafe(24)
        self.log_path = folder / "kube-apiserver.log"
        self._folder = folder
        self._binaries = binaries
        self._etcd = etcd
        self._nursery = nursery
        self._port = Port()
        self._baseline = Baseline(etcd, f"/{name}/")
        self._server: Process | None = None
        self._controllers: Process | None = None
        self._flags: list[str] = []
        self.ca_pem = write_certificates(folder, name, SERVED_ADDRESSES)
        tokens = folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n', "ascii")

    @property
    def server(self) -> str:
        """Return the API server's URL, which stays the same when it is stopped and started."""
        return f"https://127.0.0.1:{self._port.number}"

    @property
    def running(self) -> bool:
        """Return whether the API server runs."""
        return self._server is not None and self._server.returncode() is None

    def kubeconfig(self, path: Path | None = None) -> dict[str, Any]:
        """Make the administrator's kubeconfig; with a path also write it there, only for us."""
        authority = base64.b64encode(self.ca_pem.encode("ascii")).decode("ascii")
        config: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": self.name,
                    "cluster": {"server": self.server, "certificate-authority-data": authority},
                }
            ],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": "admin"}}],
            "current-context": self.name,
        }
        if path is not None:
            path.touch(mode=0o600)
            path.chmod(0o600)
            path.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
        return config

    def boot(self, *, controllers: bool, extra_args: Sequence[str]) -> None:
        """Start for the first time and remember how the empty cluster looks.

        Raises:
            UnreachableError: It does not come up; the message ends with the log's last lines.
            MissingError: there is no program for the controllers.
        """
        if controllers and self._binaries.controller_manager is None:
            raise MissingError(
                f"cannot run controllers for '{self.name}': there is no kube-controller-manager of"
                " the API server's release beside it or on PATH"
            )
        flags = server_flags(
            self._folder,
            etcd=self._etcd.url,
            prefix=f"/{self.name}",
            port=self._port.number,
            controllers=controllers,
        )
        self._flags = [*flags, *extra_args]
        self.start()
        if controllers:
            self._start_controllers()
        self._baseline.take(_CALM_SECONDS)

    def start(self) -> None:
        """Start the API server, again at the same URL, and wait until it serves.

        Raises:
            UnreachableError: It does not come up; the message ends with the log's last lines.
        """
        if self.running:
            return
        self._server = self._nursery.start([self._binaries.apiserver, *self._flags], self.log_path)
        # `default` and its service appear shortly after the server calls itself ready.
        default = "/api/v1/namespaces/default"
        self._await(
            self._server, lambda: self._serves("/readyz", default, f"{default}/services/kubernetes")
        )

    def stop(self) -> None:
        """Stop only the API server; its data stays, and its port is refused until `start`."""
        if self._server is not None:
            self._server.stop()

    def freeze(self) -> None:
        """Have the API server take connections and answer nobody, until `thaw`."""
        if self._server is not None:
            self._server.freeze()

    def thaw(self) -> None:
        """Have a frozen API server go on."""
        if self._server is not None:
            self._server.thaw()

    def remember(self) -> Baseline:
        """Remember how every object is now, once nothing changes, for `reset`."""
        baseline = Baseline(self._etcd, f"/{self.name}/")
        baseline.take(_CALM_SECONDS)
        return baseline

    def reset(self, to: Baseline | None = None) -> None:
        """Set every object back to how it was after boot, or when a baseline was remembered.

        It is quick, and allowed while stopped.

        Raises:
            UnreachableError: Something keeps writing to the cluster.
        """
        (to or self._baseline).restore(self._get if self.running else None)

    def close(self) -> None:
        """Give the port back; the processes end with their nursery."""
        self._port.release()

    def _start_controllers(self) -> None:
        kubeconfig = self._folder / "controllers.yaml"
        self.kubeconfig(kubeconfig)
        flags = controller_flags(
            self._folder, kubeconfig=kubeconfig, version=self._binaries.version
        )
        assert self._binaries.controller_manager is not None
        self._controllers = self._nursery.start(
            [self._binaries.controller_manager, *flags],
            self._folder / "kube-controller-manager.log",
        )
        self._await(self._controllers, self._has_what_controllers_make)

    def _has_what_controllers_make(self) -> bool:
        role = json.loads(self._get("/apis/rbac.authorization.k8s.io/v1/clusterroles/edit")[1])
        default = "/api/v1/namespaces/default"
        return bool(role.get("rules")) and self._serves(
            f"{default}/serviceaccounts/default", f"{default}/configmaps/kube-root-ca.crt"
        )

    def _await(self, process: Process, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + _BOOT_SECONDS
        while time.monotonic() < until and process.returncode() is None:
            try:
                if condition():
                    return
            except (OSError, http.client.HTTPException):
                pass  # Not listening yet, or already ended, which the loop finds out.
            time.sleep(0.03)
        process.stop()
        raise UnreachableError(
            f"cannot start cluster '{self.name}'; the last words of '{process.log_path.stem}':"
            f" {process.last_words()}"
        )

    def _serves(self, *paths: str) -> bool:
        return all(self._get(path)[0] == http.client.OK for path in paths)

    def _get(self, path: str) -> tuple[int, bytes]:
        context = ssl.create_default_context(cadata=self.ca_pem)
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port.number, context=context, timeout=30
        )
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()
