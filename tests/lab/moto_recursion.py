"""Lambda's recursive loop detection, which moto lacks: its config, and traces of messages.

    PUT, GET /2024-08-31/functions/NAME/recursion-config     {"RecursiveLoop": "Allow"}

A message keeps the trace header of the request that sent it, as SQS has it.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import Any
from urllib.parse import unquote

from moto.awslambda import responses, urls
from moto.awslambda.exceptions import InvalidParameterValueException
from moto.sqs import models as queues
from moto.sqs import responses as requests

from tests.lab.lineages import ALLOW, TERMINATE

_PATH = r"{0}/(?P<api_version>[^/]+)/functions/(?P<function_name>[\w_:%-]+)/recursion-config/?$"

_Responses: Any = responses.LambdaResponse
_Requests: Any = requests.SQSResponse
_Queues: Any = queues.SQSBackend

_trace: ContextVar[str] = ContextVar("trace", default="")
"""The trace header of the request that is answered."""


def teach() -> None:
    """Give moto both, once and for this process."""
    urls.url_paths[_PATH] = _Responses.dispatch
    _Responses.put_function_recursion_config = _put
    _Responses.get_function_recursion_config = _get
    for name in ("send_message", "send_message_batch"):
        setattr(_Requests, name, _tracing(getattr(_Requests, name)))
    _Queues.send_message = _keeping(_Queues.send_message)


def config_of(function: Any) -> str:
    """Return a function's recursion config, of one as moto has it."""
    return getattr(function, "recursive_loop", TERMINATE)


def _put(self: Any) -> Any:
    mode = json.loads(self.body)["RecursiveLoop"]
    if mode not in (ALLOW, TERMINATE):
        raise InvalidParameterValueException(f"RecursiveLoop cannot be {mode!r}")
    self.backend.get_function(_name(self)).recursive_loop = mode
    return _get(self)


def _get(self: Any) -> Any:
    found = config_of(self.backend.get_function(_name(self)))
    return 200, {}, json.dumps({"RecursiveLoop": found})


def _name(request: Any) -> str:
    return unquote(request.path.rstrip("/").rsplit("/", 2)[-2])


def _tracing(send: Any) -> Any:
    def traced(self: Any) -> Any:
        token = _trace.set(self.headers.get("X-Amzn-Trace-Id", ""))
        try:
            return send(self)
        finally:
            _trace.reset(token)

    return traced


def _keeping(send: Any) -> Any:
    def kept(self: Any, *given: Any, **named: Any) -> Any:
        if header := _trace.get():
            attributes = {"AWSTraceHeader": {"DataType": "String", "StringValue": header}}
            named["system_attributes"] = {**attributes, **(named.get("system_attributes") or {})}
        return send(self, *given, **named)

    return kept
