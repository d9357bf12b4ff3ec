"""Clusters that hang: they take a connection and never say a word, at once or after TLS."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import socket
import ssl
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.runtime.embedded.state import Embedded
from bellhop.state.cluster import Cluster


class Silent:
    """An API server that is reached and never answers; with `tls` its handshake succeeds."""

    def __init__(self, *, tls: bool) -> None:
        now = datetime.now(UTC)
        self._authority = make_authority("silent", now=now, validity=timedelta(days=1))
        self._context = self._served(now) if tls else None
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._connections: list[socket.socket] = []
        self._closed = False
        self.taken = 0
        """How many connections were made."""
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def kubeconfig(self) -> dict[str, Any]:
        """Return a kubeconfig that leads here."""
        authority = base64.b64encode(self._authority.certificate_pem).decode()
        server = f"https://127.0.0.1:{self._socket.getsockname()[1]}"
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "silent",
            "contexts": [{"name": "silent", "context": {"cluster": "silent", "user": "silent"}}],
            "clusters": [
                {
                    "name": "silent",
                    "cluster": {"server": server, "certificate-authority-data": authority},
                }
            ],
            "users": [{"name": "silent", "user": {"token": "token"}}],
        }

    def refuse(self) -> None:
        """Refuse connections from now on, and drop those there are; the port stays ours."""
        place = self._socket.getsockname()
        self.close()
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(place)

    def renew_authority(self) -> None:
        """Have another authority sign the certificate: a kubeconfig of before trusts it no more."""
        now = datetime.now(UTC)
        self._authority = make_authority("renewed", now=now, validity=timedelta(days=1))
        self._context = self._served(now)

    def close(self) -> None:
        """End, and give the port back."""
        self._closed = True
        with contextlib.suppress(OSError):
            # Who waits for a connection would take one more after the socket is closed.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for each in self._connections:
            each.close()

    def _served(self, now: datetime) -> ssl.SSLContext:
        certificate, key = issue(
            self._authority, ["127.0.0.1"], now=now, validity=timedelta(hours=12)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)
        return context

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.taken += 1
            if self._context:
                with contextlib.suppress(OSError):
                    connection = self._context.wrap_socket(
                        connection, server_side=True, do_handshake_on_connect=False
                    )
                    threading.Thread(target=_shake, args=(connection,), daemon=True).start()
            self._connections.append(connection)
            if self._closed:
                # It came while we were closing, and was not seen.
                connection.close()


def _shake(connection: Any) -> None:
    with contextlib.suppress(OSError):
        connection.do_handshake()


def enrol(embedded: Embedded, key: str, silent: Silent, labels: dict[str, str]) -> Cluster:
    """Register a silent cluster: `bellhop register` would not take one that does not answer.

    Its sender's token is its key.
    """
    here = embedded.installation
    namespace, _, name = key.partition("/")
    kubeconfig: Kubeconfig = sanitise(silent.kubeconfig(), reach=LOCAL)
    here.secrets.put(f"kubeconfig/{key}", json.dumps(kubeconfig.to_dict()).encode())
    digest = hashlib.sha256(key.encode()).hexdigest()
    now = datetime.now(UTC)
    cluster = Cluster(
        namespace, name, labels, "v1.34.0", digest, now, credentials=kubeconfig.version
    )
    here.declare.register(cluster)
    return cluster
