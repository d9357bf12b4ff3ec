"""Run functions as Lambda does, from their zips and under AWS' own runtime client, on this machine.

    with Lambdas(folder) as lambdas:
        lambdas.replace("ingest", Function(zip, "functions.ingest.aws.handle", environment))
        outcome = lambdas.invoke("ingest", event)

What is played: a process for each invocation at a time, used again for the next one and frozen in
between; time-outs, kills, crashes, and handlers that cannot be imported; a new version of the code
while invocations of the older go on; a limit of concurrency. What is not: memory, scaling and its
pace, and the other architecture. The caller gives credentials in the environment, as Lambda's
service does. Event source mappings and the like are the callers of `invoke`.
"""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bellhop.errors import MissingError, ThrottledError
from infra.lab.processes import Nursery
from tests.lab.lineages import counted
from tests.lab.runtime import Answer, Environment, Runtime, open_runtime

ACCOUNT = "123456789012"
CONCURRENCY = 10
"""How many invocations of a function may be under way, if nobody says otherwise."""

_LAYERS = "/opt/"
"""Where Lambda unpacks layers; in a function's environment it is read as where they are here."""


@dataclass(frozen=True)
class Function:
    """A function as it is declared; `layers` are zips, or folders that have a folder `python`."""

    package: Path
    handler: str
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 60.0
    memory: int = 512
    concurrency: int = CONCURRENCY
    layers: Sequence[Path] = ()
    region: str = "eu-west-1"


@dataclass(frozen=True)
class Outcome:
    """What became of one invocation.

    `error` is the type of the failure, empty if there was none; then `answer` describes it, as it
    is answered to the invoker. `began` is how long a new process took until it asked for an
    event, zero for one that was there; `took` is how long the event took after that, in seconds.
    """

    answer: Any
    error: str
    logs: str
    began: float
    took: float


class Lambdas:
    """All functions of an account, each under its name, in a folder that is theirs only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._nursery = Nursery()
        self._lock = threading.Lock()
        self._versions: dict[str, _Version] = {}
        self._places: dict[str, list[Path]] = {}
        self._count = 0
        self._runtime: Runtime | None = None

    def replace(self, name: str, function: Function) -> None:
        """Declare a function, or declare it again; what is under way ends as what it began as."""
        with self._lock:
            if self._runtime is None:
                self._runtime = open_runtime(self._folder / "runtime")
            self._count += 1
            place = self._folder / f"{name}-{self._count}"
            self._places.setdefault(name, []).append(place)
            new = _Version(name, function, place, self._runtime, self._nursery)
            old = self._versions.get(name)
            self._versions[name] = new
        if old:
            old.retire()

    def invoke(
        self, name: str, event: Any, *, seconds: float | None = None, trace: str = ""
    ) -> Outcome:
        """Have a function answer an event, and wait for it; may be called from several threads.

        `seconds` is the time-out of this event, if it is not the function's, and `trace` its trace
        header.

        Raises:
            MissingError: there is no such function.
            ThrottledError: as many invocations as it may have are under way.
        """
        with self._lock:
            version = self._versions.get(name)
        if version is None:
            raise MissingError(f"cannot invoke '{name}': there is no such function")
        return version.invoke(json.dumps(event).encode(), seconds, trace or counted(name, ())[0])

    def kill(self, name: str) -> None:
        """Kill the processes of a function that are at work, in the middle of it."""
        with self._lock:
            version = self._versions.get(name)
        if version:
            version.kill()

    def logs(self, name: str) -> str:
        """Return all that a function has written, process by process."""
        streams = sorted(
            self._folder.glob(f"{name}-*/*.log"), key=lambda path: path.stat().st_ctime
        )
        return "".join(path.read_text("utf-8", "replace") for path in streams)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            versions, self._versions = self._versions, {}
        for version in versions.values():
            version.retire()
        self._nursery.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Version:
    """One version of a function, unpacked, and its processes."""

    def __init__(
        self, name: str, function: Function, place: Path, runtime: Runtime, nursery: Nursery
    ) -> None:
        self._name = name
        self._function = function
        self._place = place
        self._runtime = runtime
        self._nursery = nursery
        self._lock = threading.Lock()
        self._idle: list[Environment] = []
        self._busy: set[Environment] = set()
        self._count = 0
        self._retired = False
        _unpack(function.package, place / "task")
        for layer in function.layers:
            _unpack(layer, place / "layers")

    def invoke(self, event: bytes, seconds: float | None, trace: str) -> Outcome:
        """Have a process that is idle, or a new one, answer."""
        with self._lock:
            if len(self._busy) >= self._function.concurrency:
                raise ThrottledError(
                    f"cannot invoke '{self._name}': {len(self._busy)} invocations are under way;"
                    " wait"
                )
            environment = self._idle.pop() if self._idle else self._new()
            self._busy.add(environment)
        try:
            answer = environment.invoke(event, trace, seconds)
        finally:
            with self._lock:
                self._busy.remove(environment)
                kept = environment.alive and not self._retired
                if kept:
                    self._idle.append(environment)
            if not kept:
                environment.close()
        return _outcome(answer)

    def kill(self) -> None:
        """Kill what is at work."""
        with self._lock:
            for environment in self._busy:
                environment.kill()

    def retire(self) -> None:
        """Take no process again, and end those that are idle."""
        with self._lock:
            self._retired = True
            idle, self._idle = self._idle, []
        for environment in idle:
            environment.close()

    def _new(self) -> Environment:
        self._count += 1
        function, name, task = self._function, self._name, self._place / "task"
        variables = {
            "AWS_DEFAULT_REGION": function.region,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_python{self._runtime.python}",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": str(self._count),
            "AWS_REGION": function.region,
            "LAMBDA_TASK_ROOT": str(task),
            "_HANDLER": function.handler,
            **{key: self._placed(value) for key, value in function.environment.items()},
        }
        arn = f"arn:aws:lambda:{function.region}:{ACCOUNT}:function:{name}"
        return Environment(
            self._runtime,
            [task, self._place / "layers" / "python"],
            variables,
            arn=arn,
            seconds=function.seconds,
            log_path=self._place / f"{self._count:04}.log",
            nursery=self._nursery,
        )

    def _placed(self, value: str) -> str:
        if not value.startswith(_LAYERS):
            return value
        return str(self._place / "layers" / value.removeprefix(_LAYERS))


def _outcome(answer: Answer) -> Outcome:
    body: Any = json.loads(answer.body) if answer.body else None
    error = str(body.get("errorType") or "Unhandled") if answer.failed else ""
    return Outcome(body, error, answer.logs, answer.began, answer.took)


def _unpack(package: Path, into: Path) -> None:
    if package.is_dir():
        into.mkdir(parents=True, exist_ok=True)
        (into / "python").symlink_to(package / "python")
        return
    with zipfile.ZipFile(package) as opened:
        opened.extractall(into)
        for entry in opened.infolist():
            # A zip of ours says what may be run; others may say nothing.
            if rights := entry.external_attr >> 16 & 0o777:
                (into / entry.filename).chmod(rights | 0o600)
