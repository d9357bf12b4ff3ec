"""Files that a URL serves, as `remoteURL` of a profile or trigger names them."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from bellhop.core.redaction import Redacted


class Remote(Redacted, frozen=True):
    """A URL (`http://`, `https://` or `oci://`), and how it is downloaded.

    What was downloaded counts for so many `seconds`. `authority` is PEM, or empty for the system's;
    by `plain` an OCI registry is called without TLS.
    """

    secret_fields: ClassVar[Collection[str]] = ("token", "password")
    url: str
    seconds: float = 300.0
    token: str = ""
    username: str = ""
    password: str = ""
    authority: str = ""
    insecure: bool = False
    plain: bool = False
