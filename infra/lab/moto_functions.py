"""Run moto's functions from the zips that they were made of, as the service would, by their roles.

Moto runs functions in Docker, or answers for them. Here `Invoke` goes to infra.lab.lambdas: each
version of a function has its zip, environment and time-out, the credentials of its role, and this
server for AWS; what it writes goes to its log group, if its role may. An invocation that nobody
waits for is waited for all the same.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from moto.awslambda.models import LambdaFunction
from moto.sts.models import sts_backends

from bellhop.errors import ThrottledError
from infra.lab.lambdas import Function, Lambdas
from infra.lab.moto_access import Access, Asked
from infra.package.wheels import machine_architecture

_SESSION_SECONDS = 3_600


class Runner:
    """The functions of all accounts of a moto server."""

    def __init__(self, folder: Path, endpoint: str, access: Access) -> None:
        self._folder = folder
        self._endpoint = endpoint
        self._access = access
        self._lock = threading.Lock()
        self._lambdas = Lambdas(folder)
        self._declared: dict[str, tuple[object, ...]] = {}

    def adopt(self) -> None:
        """Have moto's functions run here."""
        run = self._run

        def invoke(self: Any, event: Any = None) -> tuple[str, bool, str]:
            return run(self, event)

        functions: Any = LambdaFunction
        functions._invoke_lambda = invoke  # noqa: SLF001 - the one place where moto runs them

    def _run(self, function: Any, event: Any) -> tuple[str, bool, str]:
        """Return the answer, whether it is an error, and what was written."""
        try:
            outcome = self._lambdas.invoke(self._declare(function), event)
        except ThrottledError as error:
            return json.dumps({"errorType": "Throttled", "errorMessage": str(error)}), True, ""
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
        )
        with self._lock:
            if self._declared.get(name) != now:
                self._lambdas.replace(name, self._made(name, function))
                self._declared[name] = now
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
        )
