"""The command lines of the control plane's programs, for a release."""

from __future__ import annotations

from pathlib import Path

_SERVICE_RANGE = "10.0.0.0/24"
_CONTROLLERS = (
    "garbagecollector,namespace,serviceaccount,serviceaccount-token,clusterrole-aggregation,"
    "root-ca-cert-publisher,deployment,replicaset,statefulset,daemonset,job"
)
_WITHOUT_PLAIN_PORTS = (1, 24)

SERVED_ADDRESSES = ("127.0.0.1", "10.0.0.1")
"""Names in the server's certificate: its listeners, and the `kubernetes` service."""


def server_flags(
    folder: Path, *, etcd: str, prefix: str, port: int, controllers: bool
) -> list[str]:
    """List the API server's flags; its keys and tokens are in `folder`."""
    key = folder / "sa.key"
    flags = [
        f"--etcd-servers={etcd}",
        f"--etcd-prefix={prefix}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        # The lab holds the port too, see `Port`.
        "--permit-port-sharing=true",
        f"--cert-dir={folder}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        f"--service-cluster-ip-range={_SERVICE_RANGE}",
        "--allow-privileged=true",
        # There is one server and nobody to reach it from inside: no leases to keep up.
        "--endpoint-reconciler-type=none",
        # Saves a fifth of a second at boot; nobody competes here.
        "--enable-priority-and-fairness=false",
    ]
    if not controllers:
        # Pods would wait for service accounts that nobody makes.
        flags.append("--disable-admission-plugins=ServiceAccount")
    return flags


def controller_flags(folder: Path, *, kubeconfig: Path, version: tuple[int, int]) -> list[str]:
    """List the controller manager's flags, of a set that needs no nodes."""
    flags = [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--service-account-private-key-file={folder / 'sa.key'}",
        f"--root-ca-file={folder / 'ca.crt'}",
        f"--controllers={_CONTROLLERS}",
    ]
    if version < _WITHOUT_PLAIN_PORTS:  # Older ones open one by default.
        flags.append("--port=0")
    return flags
