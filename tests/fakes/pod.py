"""What nodes and the service network do for the forwarder's pods, where there are neither.

A Deployment's container runs as a process, with the identity of its service account; its Service
leads to that process, by a name outside (type ExternalName), which API servers follow. Port and
path, certificate and name are those that registration made.
"""

from __future__ import annotations

import errno
import json
import os
import random
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.engine.wiring import NAME, NAMESPACE
from bellhop.model.gvk import GVK
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery, Process

ROOT = Path(__file__).parents[2]
DEPLOYMENT = GVK("apps", "v1", "Deployment")
SERVICE = GVK("", "v1", "Service")
_INHERITED = ("PATH", "HOME", "COVERAGE_PROCESS_CONFIG")


class Pod:
    """The one pod of the forwarder's Deployment in a cluster."""

    def __init__(self, cluster: Cluster, folder: Path, nursery: Nursery) -> None:
        self._cluster = cluster
        self._nursery = nursery
        self._kubeconfig = folder / "pod.kubeconfig"
        self._spool = folder / "pod-spool"
        self.log = folder / "pod.log"
        self.admin = KubeClient("pod", sanitise(cluster.kubeconfig(), reach=HERE), reach=HERE)

    def run(self, program: Sequence[str] = (sys.executable, "-m", "bellhop.forwarder")) -> Process:
        """Start what the Deployment says, and have its Service lead there."""
        deployment = self.admin.get(DEPLOYMENT, NAMESPACE, NAME)
        service = self.admin.get(SERVICE, NAMESPACE, NAME)
        assert deployment, "no forwarder is installed"
        assert service, "no Service leads to the forwarder"
        spec = deployment["spec"]["template"]["spec"]
        [container], [port] = spec["containers"], service["spec"]["ports"]
        address = _address(port["port"])
        self._log_in(spec["serviceAccountName"])
        given = dict(each.split("=") for each in container["args"])
        given |= {
            "--listen": f"{address}:{port['port']}",
            "--health": "127.0.0.1:0",
            "--spool": str(self._spool),
            "--kubeconfig": str(self._kubeconfig),
        }
        self._lead_to(address)
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return self._nursery.start(
            [*program, *(f"{option}={value}" for option, value in given.items())],
            self.log,
            cwd=ROOT,
            env={**environment, "PYTHONPATH": str(ROOT / "shared")},
        )

    def _log_in(self, account: str) -> None:
        """Mount the account's token, as a kubeconfig."""
        config = sanitise(self._cluster.kubeconfig(), reach=HERE).to_dict()
        token = self.admin.token_request(NAMESPACE, account)
        config["users"][0]["user"] = {"token": token}
        self._kubeconfig.write_text(json.dumps(config))

    def _lead_to(self, address: str) -> None:
        outside: dict[str, Any] = {"type": "ExternalName", "externalName": address}
        inside = dict.fromkeys(("clusterIP", "clusterIPs", "selector"))
        self.admin.merge(SERVICE, NAMESPACE, NAME, {"spec": {**outside, **inside}})

    def close(self) -> None:
        """Close the connections; the process ends with its nursery."""
        self.admin.close()


def _address(port: int) -> str:
    """Choose an address of this machine alone where nobody listens on the Service's port."""
    while True:
        address = ".".join(["127", *(str(random.randint(1, 254)) for _ in range(3))])
        try:
            with socket.create_server((address, port)):
                return address
        except PermissionError:
            reason = f"may not listen on port {port}, where API servers call the Service"
            pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
