"""Stand in for Terraform providers where only their schemas are asked for.

    with SchemaProvider(PLACE) as provider:
        terraform validate, terraform test, with provider.environment in the environment

They are no providers: they have the schemas that `tests.lab.google_schema` made, and the values
that the documentation lists, and nothing else. With them the real Terraform finds arguments, blocks
and types that there are not, what is missing, and a value that is none of those listed. They plan
and apply nothing: tests of modules replace them by `mock_provider`, which asks for schema and
judgement. Whether Google takes what is valid here only Google knows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from tests.lab.google_schema_wire import UNKNOWN, field, texts, unpacked

_NESTING = {"single": 1, "list": 2, "set": 3}
_SERVICE = "tfplugin5.Provider"
_ERROR = 1
_KINDS = ((2, "resource_schemas"), (3, "data_source_schemas"), (8, "ephemeral_resource_schemas"))
"""Fields of the answer to GetSchema."""

_NOTHING = (
    *("Configure", "GetFunctions", "GetMetadata", "GetResourceIdentitySchemas"),
    *("PrepareProviderConfig", "Stop", "ValidateDataSourceConfig"),
    "ValidateEphemeralResourceConfig",
)
"""An empty answer, which says that all is valid."""


class SchemaProvider:
    """A plugin for each provider of a file of schemas; Terraform uses those that already run."""

    def __init__(self, schemas: Path) -> None:
        found = json.loads(schemas.read_text())["provider_schemas"]
        self._plugins = {
            address.partition("/")[2]: _Plugin(provider) for address, provider in found.items()
        }

    @property
    def environment(self) -> dict[str, str]:
        """The variable by which Terraform takes these for the providers themselves."""
        plugins = {
            name: {
                "Protocol": "grpc",
                "ProtocolVersion": 5,
                "Pid": os.getpid(),
                "Test": True,
                "Addr": {"Network": "tcp", "String": f"127.0.0.1:{each.port}"},
            }
            for name, each in self._plugins.items()
        }
        return {"TF_REATTACH_PROVIDERS": json.dumps(plugins)}

    def __enter__(self) -> Self:
        for each in self._plugins.values():
            each.server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in [each.server.stop(None) for each in self._plugins.values()]:
            each.wait()


class _Plugin:
    """One provider in this process, on a port of its own."""

    def __init__(self, provider: Mapping[str, Any]) -> None:
        self._provider = provider
        self._schema = _written(provider)
        self.server = grpc.server(ThreadPoolExecutor(4))
        methods: dict[str, Callable[[bytes], bytes]] = dict.fromkeys(_NOTHING, _nothing)
        methods |= {
            "GetSchema": self._answer_schema,
            "ValidateResourceTypeConfig": self._validation,
        }
        self.server.add_generic_rpc_handlers(
            [
                grpc.method_handlers_generic_handler(
                    _SERVICE, {n: _raw(m) for n, m in methods.items()}
                )
            ]
        )
        self.port = self.server.add_insecure_port("127.0.0.1:0")

    def _answer_schema(self, _request: bytes) -> bytes:
        return self._schema

    def _validation(self, request: bytes) -> bytes:
        """Complain of values that are none of those that their argument may have."""
        asked = dict(texts(request))
        name = asked[1].decode()
        block = self._provider["resource_schemas"][name]["block"]
        given = unpacked(dict(texts(asked[2]))[1])
        return b"".join(
            field(1, field(1, _ERROR) + field(2, f"Unlisted value in {name}") + field(3, path))
            for path in _unlisted(block, given)
        )


def _unlisted(block: Mapping[str, Any], given: Any) -> Iterator[str]:
    if not isinstance(given, dict):
        return
    for name, attribute in block.get("attributes", {}).items():
        value = given.get(name)
        listed = value if isinstance(value, list) else [value]
        for each in listed if "values" in attribute else []:
            if each not in (None, UNKNOWN, *attribute["values"]):
                yield f'{name} is "{each}", and may be {", ".join(attribute["values"])}.'
    for name, nested in block.get("block_types", {}).items():
        inner = given.get(name)
        for each in inner if isinstance(inner, list) else [inner]:
            yield from _unlisted(nested["block"], each)


def _written(provider: Mapping[str, Any]) -> bytes:
    """Write the answer to GetSchema."""
    encoded = field(1, _versioned(provider["provider"]))
    for number, kind in _KINDS:
        for name, schema in provider.get(kind, {}).items():
            encoded += field(number, field(1, name) + field(2, _versioned(schema)))
    plans_destroying = field(1, 1)
    return encoded + field(6, plans_destroying)


def _versioned(schema: Mapping[str, Any]) -> bytes:
    return field(1, schema["version"]) + field(2, _block(schema["block"]))


def _block(block: Mapping[str, Any]) -> bytes:
    encoded = b""
    for name, each in sorted(block.get("attributes", {}).items()):
        flags = ((4, "required"), (5, "optional"), (6, "computed"), (10, "write_only"))
        encoded += field(
            2,
            field(1, name)
            + field(2, json.dumps(each["type"]))
            + b"".join(field(number, each.get(flag, False)) for number, flag in flags),
        )
    for name, each in sorted(block.get("block_types", {}).items()):
        encoded += field(
            3,
            field(1, name)
            + field(2, _block(each["block"]))
            + field(3, _NESTING[each["nesting_mode"]])
            + field(4, each.get("min_items", 0))
            + field(5, each.get("max_items", 0)),
        )
    return encoded


def _nothing(_request: bytes) -> bytes:
    return b""


def _raw(answer: Callable[[bytes], bytes]) -> grpc.RpcMethodHandler:
    """Make a method whose requests and answers are bytes as they come."""
    return grpc.unary_unary_rpc_method_handler(lambda request, _: answer(request))
