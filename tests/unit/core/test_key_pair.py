"""Keys of clusters, of the server and of a message server reach OpenSSL only by memory."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.core.key_pair import load_key_pair

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIFE = timedelta(days=2)

_WATCHED = """
import ssl, sys
from pathlib import Path
from bellhop.core.key_pair import load_key_pair

certificate, key = (Path(each).read_bytes() for each in sys.argv[1:])
written = []

def watch(event, given):
    if event == "open" and not isinstance(given[0], int) and set(given[1] or "") & set("wax+"):
        written.append(given[0])

sys.addaudithook(watch)
load_key_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, key)
print(written)
"""


def pair() -> tuple[bytes, bytes]:
    authority = make_authority("keys", now=NOW, validity=LIFE)
    return issue(authority, ["keys.example.com"], now=NOW, validity=LIFE)


def descriptors() -> set[str]:
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def test_no_file_is_written_for_a_key(tmp_path: Path) -> None:
    paths = [tmp_path / "certificate.pem", tmp_path / "key.pem"]
    for path, pem in zip(paths, pair(), strict=True):
        path.write_bytes(pem)
    nowhere = {**os.environ, "TMPDIR": "/proc/nowhere"}

    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, *paths],
        capture_output=True,
        text=True,
        check=False,
        env=nowhere,
    )

    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_pair_without_a_last_line_is_loaded_and_leaves_no_file_open() -> None:
    certificate, key = pair()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    before = descriptors()

    load_key_pair(context, certificate.strip(), key.strip())

    assert descriptors() == before


@pytest.mark.parametrize("damage", ["another key", "no key", "no certificate", "encrypted"])
def test_a_pair_that_is_none_is_refused_and_leaves_no_file_open(damage: str) -> None:
    certificate, key = pair()
    encrypted = load_pem_private_key(key, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    given = {
        "another key": (certificate, pair()[1]),
        "no key": (certificate, b""),
        "no certificate": (b"", key),
        "encrypted": (certificate, encrypted),
    }[damage]
    before = descriptors()

    with pytest.raises(OSError):  # noqa: PT011 - OpenSSL's words differ by version.
        load_key_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), *given)

    assert descriptors() == before
