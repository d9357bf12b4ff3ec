"""Credentials of a role that somebody assumes, by credentials of his own.

STS gives them for an hour; the SDK asks for new ones some minutes before that, in the middle of
whatever a command does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.credentials import CredentialResolver, DeferredRefreshableCredentials

SESSION = "bellhop"
"""What CloudTrail calls the session; who has begun it, its event `AssumeRole` tells."""

Assume = Callable[[Mapping[str, str]], Mapping[str, Any]]
"""Asks STS to assume a role."""


def provider_of(
    role: str, assume: Assume, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> CredentialResolver:
    """Make what gives a session of the SDK the credentials of a role; nothing is called yet."""

    def fetch() -> dict[str, str]:
        told = assume({"RoleArn": role, "RoleSessionName": SESSION})["Credentials"]
        return {
            "access_key": told["AccessKeyId"],
            "secret_key": told["SecretAccessKey"],
            "token": told["SessionToken"],
            "expiry_time": told["Expiration"].isoformat(),
        }

    return CredentialResolver([_Provider(fetch, now)])


class _Provider:
    """What the SDK asks for credentials."""

    METHOD = CANONICAL_NAME = "assume-role"

    def __init__(self, fetch: Callable[[], Mapping[str, str]], now: Callable[[], datetime]) -> None:
        self._fetch = fetch
        self._now = now

    def load(self) -> Any:
        return DeferredRefreshableCredentials(self._fetch, self.METHOD, time_fetcher=self._now)
