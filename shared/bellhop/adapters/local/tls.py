"""TLS for the server: one context, and cheroot's way to use it.

The handshake is left to the worker that serves the connection: cheroot's own adapter shakes hands
in the thread that accepts, where one slow client would hold up all others.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import Any

from cheroot.makefile import StreamReader, StreamWriter
from cheroot.ssl import Adapter

from bellhop.errors import InvalidError

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: forward secrecy and authenticated encryption only; 1.3 has nothing else."""

_ENVIRON = {"wsgi.url_scheme": "https", "HTTPS": "on"}


def make_context(certificate_pem: bytes, key_pem: bytes) -> ssl.SSLContext:
    """Make the context of a server that speaks TLS 1.2 and 1.3."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    load(context, certificate_pem, key_pem)
    return context


def load(context: ssl.SSLContext, certificate_pem: bytes, key_pem: bytes) -> None:
    """Have a context use a certificate, with its chain, from its next connection on.

    Raises:
        InvalidError: they are not PEM, or do not belong together.
    """
    # OpenSSL reads files alone; this one is in memory, so that the key meets no disk.
    descriptor = os.memfd_create("bellhop-certificate", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(certificate_pem.strip() + b"\n" + key_pem)
        file.flush()
        try:
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        except (ssl.SSLError, OSError) as error:
            raise InvalidError(
                "The server's certificate could not be used: it or its key is not PEM, "
                "or they do not belong together."
            ) from error


class TlsAdapter(Adapter):
    """What cheroot asks of TLS."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context

    def bind(self, sock: socket.socket) -> socket.socket:
        """Return the listening socket as it is."""
        return sock

    def wrap(self, sock: socket.socket) -> tuple[ssl.SSLSocket, dict[str, str]]:
        """Return the accepted socket, to shake hands later, and the request's environment."""
        secure = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        return secure, self.get_environ()

    def get_environ(self) -> dict[str, str]:
        """Return what a request over TLS has in its environment."""
        return dict(_ENVIRON)

    def makefile(self, sock: ssl.SSLSocket, mode: str = "r", bufsize: int = -1) -> Any:
        """Return a file to read requests from or to write responses to."""
        return (StreamReader if "r" in mode else StreamWriter)(sock, mode, bufsize)
