"""Google's Secret Manager on this machine: a server that its own client library talks gRPC to.

Of it there is no emulator. Where it could be kind it is as strict as Google: what is newest, and
what there is, it shows late; only a request for a version by its number gets the truth.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import grpc
from google.cloud.secretmanager_v1 import types
from google.protobuf.empty_pb2 import Empty

_SERVICE = "google.cloud.secretmanager.v1.SecretManagerService"
LATE_SECONDS = 0.25
"""How long the newest version is not listed."""

_LIMIT = 65_536
_LONGEST_ID = 255
_State = types.SecretVersion.State


@dataclass
class _Version:
    data: bytes
    state: Any = _State.ENABLED
    added_at: float = field(default_factory=time.monotonic)


class SecretManager:
    """One server with the secrets of all projects; it ends with its process."""

    def __init__(self) -> None:
        self._secrets: dict[str, list[_Version]] = {}
        self._kept: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._pool = futures.ThreadPoolExecutor(8, thread_name_prefix="secrets")
        self._server = grpc.server(self._pool)
        self._port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.add_generic_rpc_handlers((self._handler(),))

    @property
    def address(self) -> str:
        """Return the address on which it listens."""
        return f"127.0.0.1:{self._port}"

    def alive(self, project: str) -> dict[str, list[int]]:
        """Return the secrets of a project, and which of their versions are not destroyed."""
        start = f"projects/{project}/secrets/"
        with self._lock:
            return {
                name.removeprefix(start): [
                    number
                    for number, each in enumerate(versions, 1)
                    if each.state is not _State.DESTROYED
                ]
                for name, versions in self._secrets.items()
                if name.startswith(start)
            }

    def kept(self, project: str) -> list[dict[str, Any]]:
        """Return the places in which a project's secrets were to be kept when they were made."""
        with self._lock:
            return [
                type(each).to_dict(each)
                for name, each in self._kept.items()
                if name.startswith(f"projects/{project}/secrets/")
            ]

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.stop(None).wait()
        self._pool.shutdown()

    def _handler(self) -> Any:
        answers: dict[str, Callable[[Any, Any], Any]] = {
            "CreateSecret": self._create,
            "DeleteSecret": self._delete,
            "AddSecretVersion": self._add,
            "AccessSecretVersion": self._access,
            "ListSecretVersions": self._list,
            "DestroySecretVersion": self._destroy,
        }
        return grpc.method_handlers_generic_handler(
            _SERVICE, {name: self._method(name, answer) for name, answer in answers.items()}
        )

    def _method(self, name: str, answer: Callable[[Any, Any], Any]) -> Any:
        def locked(request: Any, context: Any) -> Any:
            with self._lock:
                return answer(request, context)

        def written(message: Any) -> bytes:
            plain = message if isinstance(message, Empty) else type(message).pb(message)
            content: bytes = plain.SerializeToString()
            return content

        return grpc.unary_unary_rpc_method_handler(
            locked,
            request_deserializer=getattr(types, f"{name}Request").deserialize,
            response_serializer=written,
        )

    def _create(self, request: Any, context: Any) -> Any:
        name = f"{request.parent}/secrets/{request.secret_id}"
        if name in self._secrets:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "it exists")
        letters = request.secret_id.replace("-", "").replace("_", "")
        if len(request.secret_id) > _LONGEST_ID or not (letters.isascii() and letters.isalnum()):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no id of a secret")
        if "replication" not in request.secret:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no replication")
        self._secrets[name] = []
        self._kept[name] = request.secret.replication
        return types.Secret(name=name)

    def _delete(self, request: Any, context: Any) -> Any:
        self._found(request.name, context)
        del self._secrets[request.name]
        return Empty()

    def _add(self, request: Any, context: Any) -> Any:
        versions = self._found(request.parent, context)
        if not 0 < len(request.payload.data) <= _LIMIT:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no payload that is taken")
        versions.append(_Version(request.payload.data))
        return types.SecretVersion(name=f"{request.parent}/versions/{len(versions)}")

    def _access(self, request: Any, context: Any) -> Any:
        version = self._version(request.name, context)
        if version.state is not _State.ENABLED:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it is not enabled")
        return types.AccessSecretVersionResponse(name=request.name, payload={"data": version.data})

    def _list(self, request: Any, context: Any) -> Any:
        versions = list(enumerate(self._late(self._found(request.parent, context)), 1))
        listed = [
            types.SecretVersion(name=f"{request.parent}/versions/{number}", state=each.state)
            for number, each in reversed(versions)
        ]
        return types.ListSecretVersionsResponse(versions=listed[: request.page_size or 100])

    def _destroy(self, request: Any, context: Any) -> Any:
        version = self._version(request.name, context)
        if version.state is _State.DESTROYED:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it is destroyed")
        version.state, version.data = _State.DESTROYED, b""
        return types.SecretVersion(name=request.name, state=version.state)

    def _found(self, name: str, context: Any) -> list[_Version]:
        if name not in self._secrets:
            context.abort(grpc.StatusCode.NOT_FOUND, "there is no such secret")
        return self._secrets[name]

    def _version(self, name: str, context: Any) -> _Version:
        secret, _, number = name.rpartition("/versions/")
        versions = self._found(secret, context)
        if number == "latest":
            versions = self._late(versions)
            number = str(len(versions))
        if not 0 < int(number) <= len(versions):
            context.abort(grpc.StatusCode.NOT_FOUND, "there is no such version")
        return versions[int(number) - 1]

    def _late(self, versions: list[_Version]) -> list[_Version]:
        then = time.monotonic() - LATE_SECONDS
        return [each for each in versions if each.added_at <= then]
