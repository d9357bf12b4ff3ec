"""The forwarder's own cluster: through a kubeconfig or, in a pod, through its service account.

Tokens of service accounts last an hour: the files are read again when one is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.service_account import read_account
from bellhop.adapters.local.files import read_at_most
from bellhop.clusters.kubeconfig import LARGEST, Kubeconfig, sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.errors import BellhopError, InvalidError, MissingError


def connect(
    kubeconfig: Path | None,
    environ: Mapping[str, str] = os.environ,
    account: Path | None = None,
) -> KubeClient:
    """Make the client of the forwarder's own cluster.

    Raises:
        InvalidError: the kubeconfig is not one that is taken.
        MissingError: there is neither a kubeconfig nor a service account.
    """

    def read() -> Kubeconfig:
        return _read_file(kubeconfig) if kubeconfig else _read_account(environ, account)

    def renew(_refused: Kubeconfig) -> Kubeconfig | None:
        try:
            return read()
        except BellhopError:
            # The client then reports the refusal itself, and asks again at the next one.
            return None

    # A forwarder may run beside its API server, as in a laboratory.
    return KubeClient("here", read(), renew=renew, reach=LOCAL)


def _read_file(path: Path) -> Kubeconfig:
    try:
        content = read_at_most(path, LARGEST)
    except OSError as error:
        raise InvalidError(f"the kubeconfig '{path}' cannot be read: {error.strerror}") from error
    return sanitise(content, reach=LOCAL)


def _read_account(environ: Mapping[str, str], account: Path | None) -> Kubeconfig:
    try:
        return read_account(environ, account)
    except MissingError as error:
        raise MissingError(f"{error}, or give --kubeconfig") from error
