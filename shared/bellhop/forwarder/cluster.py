"""The forwarder's own cluster: through a kubeconfig or, in a pod, through its service account.

Tokens of service accounts last an hour: the files are read again when one is refused.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.local.files import read_at_most
from bellhop.clusters.kubeconfig import LARGEST, Kubeconfig, sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.errors import BellhopError, InvalidError, MissingError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def connect(
    kubeconfig: Path | None,
    environ: Mapping[str, str] = os.environ,
    account: Path = ACCOUNT,
) -> KubeClient:
    """Make the client of the forwarder's own cluster.

    Raises:
        InvalidError: the kubeconfig is not one that is taken.
        MissingError: there is neither a kubeconfig nor a service account.
    """

    def read() -> Kubeconfig:
        return _of_file(kubeconfig) if kubeconfig else _of_account(environ, account)

    def renew(_refused: Kubeconfig) -> Kubeconfig | None:
        try:
            return read()
        except BellhopError:
            # The client then reports the refusal itself, and asks again at the next one.
            return None

    # A forwarder may run beside its API server, as in a laboratory.
    return KubeClient("here", read(), renew=renew, reach=LOCAL)


def _of_file(path: Path) -> Kubeconfig:
    try:
        content = read_at_most(path, LARGEST)
    except OSError as error:
        raise InvalidError(f"the kubeconfig '{path}' cannot be read: {error.strerror}") from error
    return sanitise(content, reach=LOCAL)


def _of_account(environ: Mapping[str, str], account: Path) -> Kubeconfig:
    host, port = (environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port:
        raise MissingError(
            "this is not a pod of a cluster, so there is no API server to ask; give --kubeconfig"
        )
    try:
        token = (account / "token").read_text("ascii").strip()
        authority = (account / "ca.crt").read_bytes()
    except (OSError, ValueError) as error:
        raise MissingError(
            f"the pod has no usable service account in '{account}'; mount its token, "
            "or give --kubeconfig"
        ) from error
    address = f"[{host}]" if ":" in host else host
    return Kubeconfig(
        server=f"https://{address}:{port}",
        ca_data=base64.b64encode(authority).decode(),
        token=token,
    )
