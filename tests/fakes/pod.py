"""What nodes and the service network do for the forwarder's pods, where there are neither.

A Deployment's container runs as a process, with the identity of its service account. Its Service
gets a name outside (type ExternalName), which API servers follow, and there its port leads to the
process. Port and path, certificate and name are those that registration made.
"""

from __future__ import annotations

import errno
import json
import os
import random
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.service_account import ACCOUNT
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery, Process
from tests.infra.image import Image
from tests.missing import missing

ROOT = Path(__file__).parents[2]
DEPLOYMENT = GVK("apps", "v1", "Deployment")
SERVICE = GVK("", "v1", "Service")
_POD_PORT = 9443
_INHERITED = ("PATH", "HOME", "COVERAGE_PROCESS_CONFIG")


class Pod:
    """The one pod of the forwarder's Deployment in a cluster."""

    def __init__(self, cluster: Cluster, folder: Path, nursery: Nursery) -> None:
        self._cluster = cluster
        self._nursery = nursery
        self._folder = folder
        self._spool = folder / "pod-spool"
        self._network: Network | None = None
        self.log = folder / "pod.log"
        self.admin = KubeClient("pod", sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)

    def run(self, image: Image | None = None) -> Process:
        """Start what the Deployment says, and have its Service lead there.

        Where there is an image it is run as nodes do, else this checkout is.
        """
        deployment = self.admin.get(DEPLOYMENT, NAMESPACE, NAME)
        service = self.admin.get(SERVICE, NAMESPACE, NAME)
        assert deployment, "no forwarder is installed"
        assert service, "no Service leads to the forwarder"
        spec = deployment["spec"]["template"]["spec"]
        [container], [port] = spec["containers"], service["spec"]["ports"]
        self._network = self._network or Network(port["port"])
        arguments = {
            **dict(each.split("=") for each in container["args"]),
            "--listen": "{}:{}".format(*self._network.target),
            "--health": "127.0.0.1:0",
        }
        token = self.admin.token_request(NAMESPACE, spec["serviceAccountName"])
        self._spool.mkdir(exist_ok=True)
        if image:
            argv, environment = self._container(image, arguments, token), {}
        else:
            argv, environment = self._process(arguments, token)
        process = self._nursery.start(argv, self.log, cwd=ROOT, env=environment)
        self._lead_to(self._network.address)
        return process

    def _process(self, arguments: dict[str, str], token: str) -> tuple[list[str], dict[str, str]]:
        """Run the checkout, with a kubeconfig in the place of the account's mount."""
        config = sanitise(self._cluster.kubeconfig(), reach=LOCAL).to_dict()
        config["users"][0]["user"] = {"token": token}
        kubeconfig = self._folder / "pod.kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        arguments |= {"--spool": str(self._spool), "--kubeconfig": str(kubeconfig)}
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return (
            [sys.executable, "-m", "bellhop.forwarder", *_spelled(arguments)],
            {**environment, "PYTHONPATH": str(ROOT / "shared")},
        )

    def _container(self, image: Image, arguments: dict[str, str], token: str) -> list[str]:
        """Run an image with the account's files where nodes mount them."""
        mount = image.inside(str(ACCOUNT))
        mount.mkdir(parents=True, exist_ok=True)
        (mount / "token").write_text(token)
        (mount / "ca.crt").write_text(self._cluster.ca_pem)
        server = urlsplit(self._cluster.server)
        return image.container(
            _spelled(arguments),
            (self._spool, arguments["--spool"]),
            KUBERNETES_SERVICE_HOST=str(server.hostname),
            KUBERNETES_SERVICE_PORT=str(server.port),
        )

    def _lead_to(self, address: str) -> None:
        outside: dict[str, Any] = {"type": "ExternalName", "externalName": address}
        inside = dict.fromkeys(("clusterIP", "clusterIPs", "selector"))
        self.admin.merge(SERVICE, NAMESPACE, NAME, {"spec": {**outside, **inside}})

    def close(self) -> None:
        """Close the connections; the process ends with its nursery."""
        self.admin.close()
        if self._network:
            self._network.close()


class Network:
    """What is sent to a Service's port at an address of its own, given to its pod."""

    def __init__(self, port: int) -> None:
        self._socket = _listening(port)
        self.address: str = self._socket.getsockname()[0]
        # At this address nobody takes the port until the pod listens.
        self.target = (self.address, _POD_PORT)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Refuse connections from now on."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._socket.accept()
                threading.Thread(target=self._join, args=(caller,), daemon=True).start()

    def _join(self, caller: socket.socket) -> None:
        with suppress(OSError), caller, socket.create_connection(self.target) as pod:
            back = threading.Thread(target=_pass_on, args=(pod, caller), daemon=True)
            back.start()
            _pass_on(caller, pod)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def _listening(port: int) -> socket.socket:
    """Listen on the Service's port at an address of only this machine that is not in use."""
    while True:
        address = ".".join(["127", *(str(random.randint(1, 254)) for _ in range(3))])
        try:
            return socket.create_server((address, port))
        except PermissionError:
            missing(f"may not listen on port {port}, where API servers call the Service")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


def _spelled(arguments: dict[str, str]) -> list[str]:
    return [f"{option}={value}" for option, value in arguments.items()]
