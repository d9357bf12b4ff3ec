"""The secret store for clusters of the configuration: a denial names the setting that grants it.

In a cloud the functions read kubeconfigs, and store and delete them only where the Terraform module
has `configuration_cluster`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bellhop.errors import CloudDeniedError, DeniedError
from bellhop.ports.store import Secrets

_GRANT = "set `configuration_cluster = true` in the installation's Terraform module"


class KubeconfigStore:
    """The secrets of an installation, of which the functions may read more than they may write."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def read(self, name: str) -> bytes:
        return self._secrets.read(name)

    def put(self, name: str, value: bytes) -> None:
        """Write a secret.

        Raises:
            DeniedError: the functions may not.
        """
        with _explain("store", name):
            self._secrets.put(name, value)

    def delete(self, name: str) -> None:
        """Delete a secret.

        Raises:
            DeniedError: the functions may not.
        """
        with _explain("delete", name):
            self._secrets.delete(name)

    def names(self, prefix: str = "") -> Iterator[str]:
        return self._secrets.names(prefix)


@contextmanager
def _explain(verb: str, name: str) -> Iterator[None]:
    try:
        yield
    except CloudDeniedError as error:
        cluster = name.partition("/")[2]
        reason = error.context.get("reason", "")
        by_command = ", or run `bellhop register cluster`" if verb == "store" else ""
        raise DeniedError(
            f"cannot {verb} the kubeconfig of cluster '{cluster}': the cloud denies it"
            f" ({reason}); {_GRANT}{by_command}"
        ) from error
