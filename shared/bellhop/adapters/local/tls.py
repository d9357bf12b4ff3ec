"""TLS for the server: one context."""

from __future__ import annotations

import ssl

from bellhop.core.key_pair import load_key_pair
from bellhop.errors import InvalidError

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: forward secrecy and authenticated encryption only; 1.3 has nothing else."""


def make_context(certificate_pem: bytes, key_pem: bytes) -> ssl.SSLContext:
    """Return the context of a server that speaks TLS 1.2 and 1.3.

    Raises:
        InvalidError: certificate and key are not PEM, or do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    try:
        load_key_pair(context, certificate_pem, key_pem)
    except OSError as error:
        raise InvalidError(
            "cannot use the server's certificate: it or its key is not PEM, or they do not belong"
            " together"
        ) from error
    return context
