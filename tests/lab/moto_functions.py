"""Run moto's functions from the zips that they were made of, as the service would, by their roles.

Moto runs functions in Docker, or answers for them. Here `Invoke` goes to tests.lab.lambdas: each
version of a function has its zip, environment and time-out, the credentials of its role, and this
server for AWS; what it writes goes to its log group, if its role may. An invocation that nobody
waits for is waited for all the same.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

from moto.awslambda.models import LambdaFunction, lambda_backends
from moto.core.exceptions import JsonRESTError
from moto.sts.models import sts_backends

from bellhop.errors import ThrottledError
from infra.package.interpreter import machine_architecture
from tests.lab.lambdas import CONCURRENCY, Function, Lambdas
from tests.lab.lineages import ALLOW, MOST, counted
from tests.lab.moto_access import Access, Asked
from tests.lab.moto_recursion import config_of

_SESSION_SECONDS = 3_600


class Runner:
    """The functions of all accounts of a moto server."""

    def __init__(self, folder: Path, access: Access) -> None:
        self._folder = folder
        self._endpoint = ""
        self._access = access
        self._lock = threading.Lock()
        self._lambdas = Lambdas(folder)
        self._declared: dict[str, tuple[object, ...]] = {}
        self._roles: dict[str, set[str]] = defaultdict(set)
        self._hurries: dict[str, list[float]] = defaultdict(list)

    def adopt(self, endpoint: str) -> None:
        """Have moto's functions run here, with AWS at an endpoint."""
        self._endpoint = endpoint
        run = self._run

        def invoke(self: Any, event: Any = None) -> tuple[str, bool, str]:
            return run(self, event)

        functions: Any = LambdaFunction
        functions._invoke_lambda = invoke

    def kill(self, role: str) -> None:
        """Kill what is at work with the credentials of a role."""
        with self._lock:
            names = set(self._roles[role])
        for name in names:
            self._lambdas.kill(name)

    def hurry(self, function: str, seconds: float) -> None:
        """Give the next event of a function another time-out."""
        with self._lock:
            self._hurries[function].append(seconds)

    def _run(self, function: Any, event: Any) -> tuple[str, bool, str]:
        """Return the answer, whether it is an error, and what was written."""
        with self._lock:
            hurries = self._hurries[function.function_name]
            seconds = hurries.pop(0) if hurries else None
        trace, times = counted(function.function_name, _traces(event))
        if times > MOST and config_of(_newest(function)) != ALLOW:
            raise _LoopError
        try:
            name = self._declare(function)
            outcome = self._lambdas.invoke(name, event, seconds=seconds, trace=trace)
        except ThrottledError as error:
            raise _FullError from error
        role = function.role.rpartition("/")[2]
        place = f"arn:aws:logs:{function.region}:{function.account_id}"
        stream = f"{place}:log-group:/aws/lambda/{function.function_name}:log-stream:lab"
        may = (Asked(role, f"logs:{each}", stream) for each in ("CreateLogStream", "PutLogEvents"))
        if all(self._access.allows(each) for each in may) and outcome.logs:
            function.save_logs(outcome.logs)
        return json.dumps(outcome.answer), bool(outcome.error), outcome.logs

    def _declare(self, function: Any) -> str:
        """Declare a version as it is now; return its name here."""
        name = f"{function.function_name}-{function.version}"
        now = (
            function.code_sha_256,
            function.handler,
            function.role,
            function.timeout,
            tuple(function.architectures),
            tuple(sorted(function.environment_vars.items())),
            _room(function),
        )
        with self._lock:
            if self._declared.get(name) != now:
                self._lambdas.replace(name, self._made(name, function))
                self._declared[name] = now
                self._roles[function.role.rpartition("/")[2]].add(name)
        return name

    def _made(self, name: str, function: Any) -> Function:
        if function.architectures != [machine_architecture()]:
            raise RuntimeError(f"'{name}' is made for {function.architectures}, not this machine")
        package = self._folder / f"{name}.zip"
        package.parent.mkdir(parents=True, exist_ok=True)
        package.write_bytes(function.code_bytes)
        session = sts_backends[function.account_id]["aws"].assume_role(
            region_name=function.region,
            role_session_name=function.function_name,
            role_arn=function.role,
            policy="",
            duration=_SESSION_SECONDS,
            external_id="",
        )
        environment = {
            **function.environment_vars,
            "AWS_ACCESS_KEY_ID": session.access_key_id,
            "AWS_SECRET_ACCESS_KEY": session.secret_access_key,
            "AWS_SESSION_TOKEN": session.session_token,
            "AWS_ENDPOINT_URL": self._endpoint,
            "AWS_LAMBDA_FUNCTION_NAME": function.function_name,
            "AWS_LAMBDA_FUNCTION_VERSION": str(function.version),
        }
        return Function(
            package=package,
            handler=function.handler,
            environment=environment,
            seconds=float(function.timeout),
            memory=int(function.memory_size),
            region=function.region,
            concurrency=_room(function),
        )


class _FullError(JsonRESTError):
    """What AWS answers where as many invocations are under way as there may be."""

    code = 429

    def __init__(self) -> None:
        super().__init__("TooManyRequestsException", "Rate Exceeded.")


class _LoopError(JsonRESTError):
    """AWS' answer where a chain has invoked a function too often."""

    code = 400

    def __init__(self) -> None:
        super().__init__("RecursiveInvocationException", "Recursive invocation detected.")


def _traces(event: Any) -> list[str]:
    """Return the trace headers of the messages in an event."""
    records = event.get("Records", ()) if isinstance(event, dict) else ()
    return [each.get("attributes", {}).get("AWSTraceHeader", "") for each in records]


def _newest(function: Any) -> Any:
    """Return a function as it is now: its versions know neither what is reserved nor its config."""
    backend = lambda_backends[function.account_id][function.region]
    return backend.get_function(function.function_name)


def _room(function: Any) -> int:
    """Return how many invocations may be under way."""
    reserved = _newest(function).reserved_concurrency
    return CONCURRENCY if reserved is None else int(reserved)
