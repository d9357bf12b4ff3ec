"""Metrics of what runs in clusters, from where users keep them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar, Protocol

from bellhop.core.structs import Redacted


class Credentials(Redacted, frozen=True):
    """How a metrics server is signed in to; `authority` is PEM, or empty for the system's."""

    secret_fields: ClassVar[Collection[str]] = ("token", "password")
    token: str = ""
    username: str = ""
    password: str = ""
    authority: str = ""


ANONYMOUS = Credentials()
"""Without credentials, and with the system's authorities."""


class Metrics(Protocol):
    """Queries metrics."""

    def query(
        self, url: str, queries: Mapping[str, str], credentials: Credentials, seconds: float
    ) -> Mapping[str, float]:
        """Return the number that each query finds, by its name; one that finds none is left out.

        All of them together take at most so many `seconds`.

        Raises:
            InvalidError: the address may not be called, or a query gives no single number.
            DeniedError: the credentials are refused.
            TooLargeError: an answer is larger than is taken.
            UnreachableError: nobody answers, or not in time.
        """
        ...
