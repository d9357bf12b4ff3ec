"""TLS contexts of a kubeconfig's authority and key pair, shared by all clients with the same.

A context takes a third of a millisecond and seventeen kilobytes. Clusters of one fleet may share an
authority; a client that is opened again, or whose token only was replaced, uses the same context.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
import threading
from collections.abc import Iterable
from weakref import WeakValueDictionary

from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.key_pair import load_key_pair
from bellhop.errors import InvalidError


class Contexts:
    """Contexts by what they are made of, each for as long as somebody has it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: WeakValueDictionary[bytes, ssl.SSLContext] = WeakValueDictionary()

    def of(self, cluster: str, kubeconfig: Kubeconfig) -> ssl.SSLContext:
        """Return the context of a kubeconfig.

        Raises:
            InvalidError: a certificate or the key in it is damaged.
        """
        parts = (
            kubeconfig.ca_data,
            kubeconfig.client_certificate_data,
            kubeconfig.client_key_data,
        )
        mark = hashlib.sha256(" ".join(parts).encode()).digest()
        with self._lock:
            context = self._made.get(mark)
            if context is None:
                context = self._made[mark] = _made(cluster, kubeconfig)
            return context


CONTEXTS = Contexts()
"""Those of this process."""


class _Shared(ssl.SSLContext):
    """A context that is not written to any more once threads connect with it."""

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        """Leave them as they are.

        urllib3 sets the same ones before each handshake: OpenSSL would free the former ones while
        another thread's handshake copies them.
        """


def _made(cluster: str, kubeconfig: Kubeconfig) -> ssl.SSLContext:
    part = "certificate-authority-data"
    try:
        context = _Shared(ssl.PROTOCOL_TLS_CLIENT)
        super(_Shared, context).set_alpn_protocols(["http/1.1"])
        authority = base64.b64decode(kubeconfig.ca_data).decode("ascii")
        if authority:
            context.load_verify_locations(cadata=authority)
        else:
            context.load_default_certs()
        if kubeconfig.client_certificate_data:
            part = "client-certificate-data or client-key-data"
            load_key_pair(
                context,
                base64.b64decode(kubeconfig.client_certificate_data),
                base64.b64decode(kubeconfig.client_key_data),
            )
    except (ssl.SSLError, ValueError) as exc:
        said = f"cannot use the kubeconfig of cluster '{cluster}': {part} is damaged"
        raise InvalidError(
            f"{said}; register the cluster again",
            given=f"{said}; give a kubeconfig in which it is whole",
        ) from exc
    return context
