"""Load a certificate and its key into OpenSSL, which reads them only from files.

The file lies in memory and has no name, so that no key meets a disk.
"""

from __future__ import annotations

import os
import ssl


def load_key_pair(context: ssl.SSLContext, certificate_pem: bytes, key_pem: bytes) -> None:
    """Load a certificate, with its chain, and its key into a context.

    Raises:
        OSError: one is not PEM, the key is encrypted, or they do not belong together; mostly the
            `ssl.SSLError` among them.
    """
    descriptor = os.memfd_create("bellhop-key-pair", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(certificate_pem.strip() + b"\n" + key_pem)
        file.flush()
        # An empty password: an encrypted key fails instead of asking on the terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
