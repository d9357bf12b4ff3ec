"""The service account of the pod that this process runs in.

Its token lasts an hour, and the kubelet replaces the file in time: each client reads it again.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path

from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.errors import MissingError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which nodes mount token and certificate authority."""


def read_account(environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> Kubeconfig:
    """Return a kubeconfig for the pod's own cluster, with the token of this moment.

    Raises:
        MissingError: this is not a pod, or its account's token is not mounted.
    """
    account = folder or ACCOUNT
    host, port = (environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port:
        raise MissingError("this is not a pod of a cluster, so there is no API server to ask")
    try:
        token = (account / "token").read_text("ascii").strip()
        authority = (account / "ca.crt").read_bytes()
    except (OSError, ValueError) as error:
        raise MissingError(
            f"the pod has no usable service account in '{account}'; mount its token"
        ) from error
    address = f"[{host}]" if ":" in host else host
    return Kubeconfig(
        server=f"https://{address}:{port}",
        ca_data=base64.b64encode(authority).decode(),
        token=token,
    )
