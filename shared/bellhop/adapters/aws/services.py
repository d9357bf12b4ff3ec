"""Services of AWS: clients made when they are needed, and calls with a deadline.

The SDK's own repetitions are switched off. A write that was repeated must know it: its condition
may fail on what it has written itself, and a token that two attempts shared would come back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import boto3.session
import botocore.session
from botocore.config import Config
from botocore.credentials import CredentialResolver, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import Loader, create_loader
from botocore.signers import RequestSigner

from bellhop.adapters.aws.errors import code_of, translate
from bellhop.core.attempts import Attempts

CONNECT_SECONDS = 2
READ_SECONDS = 5
LAST_TRY_SECONDS = 10
"""No attempt of a call begins later than this after the first one."""

_CONNECTIONS = 32
_SIGNED_SECONDS = 60

Request = Mapping[str, Any]


class RefusedError(Exception):
    """An answer that the caller handles: its code, and its content."""

    def __init__(self, code: str, answer: Mapping[str, Any]) -> None:
        super().__init__(code)
        self.code = code
        self.answer = answer


class Services:
    """Calls by the SDK's names of a service and an operation; shared between threads.

    Without region, endpoint, profile or keys there are those that AWS' SDK finds in its
    environment; `keys` are the id, the secret and, of those that end, the token. With a `role` they
    assume it, and all else is called by that.
    """

    def __init__(
        self,
        *,
        region: str = "",
        endpoint: str = "",
        keys: tuple[str, ...] | None = None,
        profile: str = "",
        role: str = "",
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._region = region
        self._endpoint = endpoint
        self._keys = keys
        self._profile = profile
        self._role = role
        self._attempts = Attempts(LAST_TRY_SECONDS, seconds=seconds, sleep=sleep)
        self._lock = threading.Lock()
        self._session: Any = None
        self._clients: dict[tuple[str, str], Any] = {}

    def call(
        self,
        service: str,
        operation: str,
        request: Request | Callable[[], Request],
        *,
        doing: str,
        taken: frozenset[str] = frozenset(),
        region: str = "",
    ) -> dict[str, Any]:
        """Return the answer to a request, its body read; `request` may be made for each attempt.

        Raises:
            RefusedError: the answer is one of the codes in `taken`.
            BellhopError: anything else, mapped, once trying again has not helped.
        """

        def once() -> dict[str, Any]:
            asked = request() if callable(request) else request
            try:
                return self._once(self.client(service, region), operation, asked)
            except ClientError as error:
                if code_of(error) in taken:
                    raise RefusedError(code_of(error), error.response) from error
                raise

        failures = (BotoCoreError, ClientError, OSError)
        return self._attempts.make(once, failures, lambda error: translate(error, doing))

    def signed(
        self, service: str, query: str, headers: Mapping[str, str], *, doing: str, region: str
    ) -> str:
        """Return the signed address of a request; anybody who has it can send it, within a minute.

        Raises:
            BellhopError: there are no credentials to sign it with.
        """
        try:
            client = self.client(service, region)
            signer = RequestSigner(
                client.meta.service_model.service_id,
                region,
                service,
                "v4",
                self._session.get_credentials(),
                self._session.events,
            )
            request: dict[str, Any] = {
                "method": "GET",
                "url": f"{client.meta.endpoint_url}/?{query}",
                "headers": dict(headers),
                "body": {},
                "context": {},
            }
            signed: str = signer.generate_presigned_url(
                request, region_name=region, expires_in=_SIGNED_SECONDS, operation_name=""
            )
        except BotoCoreError as error:
            raise translate(error, doing) from error
        return signed

    def assuming(self, role: str, external_id: str, *, doing: str) -> Services:
        """Return services of a role that these assume now; they end after an hour at most.

        Raises:
            BellhopError: STS does not let them.
        """
        asked = {"RoleArn": role, "RoleSessionName": SESSION}
        if external_id:
            asked["ExternalId"] = external_id
        made = self.call("sts", "assume_role", asked, doing=doing)["Credentials"]
        keys = made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"]
        return Services(region=self._region, endpoint=self._endpoint, keys=keys)

    def rest(self, number: int) -> None:
        """Rest after so many attempts: twice as long at most each time, so that who met part."""
        self._attempts.rest(number)

    def client(self, service: str, region: str = "") -> Any:
        """Return the client of a service, made when it is asked for first."""
        with self._lock:  # The SDK's sessions, unlike its clients, are for one thread at a time.
            if (service, region) not in self._clients:
                self._clients[service, region] = self._make_client(service, region or self._region)
            return self._clients[service, region]

    def close(self) -> None:
        """Close the connections; a later call makes new ones."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def _once(self, client: Any, operation: str, request: Request) -> dict[str, Any]:
        answer: dict[str, Any] = getattr(client, operation)(**request)
        if "Body" in answer:
            answer["Body"] = answer["Body"].read()
        return answer

    def _make_client(self, service: str, region: str) -> Any:
        if self._session is None:
            self._session = self._begun()
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 1},
            max_pool_connections=_CONNECTIONS,
            tcp_keepalive=True,
            s3={"addressing_style": "path" if self._endpoint else "auto"},
            user_agent_extra="bellhop",
        )
        return self._session.client(
            service,
            region_name=region or None,
            endpoint_url=self._endpoint or None,
            config=config,
        )

    def _begun(self) -> Any:
        """Begin a session of the SDK, by the credentials that count."""
        core = botocore.session.Session(profile=self._profile or None)
        models = core.get_config_variable("data_path")
        core.register_component("data_loader", _loader_of(models))
        if self._role:
            core.register_component("credential_provider", provider_of(self._role, self._assume))
        elif self._keys:
            core.set_credentials(*self._keys)
        return boto3.session.Session(botocore_session=core)

    def _assume(self, request: Request) -> dict[str, Any]:
        """Have STS give the credentials of the role, by those that count without it."""
        own = Services(
            region=self._region, endpoint=self._endpoint, keys=self._keys, profile=self._profile
        )
        try:
            return own.call("sts", "assume_role", request, doing=f"assume the role {self._role!r}")
        finally:
            own.close()


@cache
def _loader_of(models: str | None) -> Loader:
    """Return what reads the SDK's models of services, once in a process: they are long."""
    return create_loader(models)


SESSION = "bellhop"
"""The name of the session in CloudTrail; its event `AssumeRole` names the caller."""

Assume = Callable[[Mapping[str, str]], Mapping[str, Any]]
"""Asks STS to assume a role."""


def provider_of(
    role: str, assume: Assume, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> CredentialResolver:
    """Make what gives a session of the SDK the credentials of a role; nothing is called yet."""

    def fetch() -> dict[str, str]:
        made = assume({"RoleArn": role, "RoleSessionName": SESSION})["Credentials"]
        return {
            "access_key": made["AccessKeyId"],
            "secret_key": made["SecretAccessKey"],
            "token": made["SessionToken"],
            "expiry_time": made["Expiration"].isoformat(),
        }

    return CredentialResolver([_Provider(fetch, now)])


class _Provider:
    """A source of credentials for the SDK."""

    METHOD = CANONICAL_NAME = "assume-role"

    def __init__(self, fetch: Callable[[], Mapping[str, str]], now: Callable[[], datetime]) -> None:
        self._fetch = fetch
        self._now = now

    def load(self) -> Any:
        return DeferredRefreshableCredentials(self._fetch, self.METHOD, time_fetcher=self._now)
