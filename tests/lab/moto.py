"""Start AWS on this machine: a moto server on loopback, with the few manners that it lacks.

Moto answers as AWS does to most of what Bellhop asks, and forgets it all when it ends. What runs
in its process is moto_server.py; here is what a test holds of it:

    from tests.lab.moto import Moto

    with Moto(folder) as moto:
        client = boto3.client("dynamodb", endpoint_url=moto.url, region_name=REGION, ...)
        moto.fail("dynamodb:PutItem", code="ThrottlingException", status=400)
"""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bellhop.errors import UnreachableError
from infra.lab.processes import Nursery

REGION = "eu-west-1"
PARTITIONS, LEADING = "ForAllValues:StringLike", "dynamodb:LeadingKeys"
"""Where a policy names the partitions of a table that a role may read or write."""
OTHERS = "ForAllValues:StringNotLike"
"""Where it names those that the role may not."""
ACCESS_KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET_KEY = "test"

_ROOT = Path(__file__).parents[2]
_BOOT_SECONDS = 60.0
_REMOVED = ("AWS_", "COVERAGE_")
_LISTENING = re.compile(r"^listening on (\d+)$", re.MULTILINE)


class Moto:
    """One moto server; it ends with its starter."""

    def __init__(self, folder: Path) -> None:
        self._log_path = folder / "moto.log"
        self._functions = folder / "functions"
        self._nursery = Nursery()
        self._port = 0

    @property
    def url(self) -> str:
        """Return the endpoint of every service."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start and wait until it answers.

        Raises:
            UnreachableError: it does not come up; the message ends with its last log lines.
        """
        # What a laptop's environment says of AWS is nobody's business here, and nobody wants to
        # know which lines of moto are run.
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(_REMOVED)
        }
        process = self._nursery.start(
            [sys.executable, "-m", "tests.lab.moto_server", self._functions],
            self._log_path,
            cwd=_ROOT,
            env=environment,
        )
        until = time.monotonic() + _BOOT_SECONDS
        while time.monotonic() < until and process.wait(0.02) is None:
            if found := _LISTENING.search(self._log_path.read_text("utf-8", "replace")):
                self._port = int(found[1])
                return
        raise UnreachableError(f"moto did not start, its last words: {process.last_words()}")

    def close(self) -> None:
        """End it."""
        self._nursery.close()

    def requests(self) -> dict[str, int]:
        """Count the requests since the start, by `service:Operation`; where REST, by method."""
        answer: dict[str, int] = self._call("GET", "requests")
        return answer

    def fail(
        self,
        operation: str,
        *,
        status: int = 0,
        code: str = "",
        served: bool = False,
        role: str = "",
        times: int = 1,
    ) -> None:
        """Have the next requests for an operation fail, by an answer or, without status, by none.

        `served` says that each is done before: only the answer is lost. With a `role` it is about
        that role's requests only.
        """
        answer = {"status": status, "code": code, "served": served, "kills": False}
        fault = {"operation": operation, "role": role, "after": 0, **answer}
        self._call("POST", "faults", [fault] * times)

    def kill(self, role: str, operation: str, *, served: bool = False, after: int = 0) -> None:
        """Kill the function of a role when it asks for an operation, `after` so many times.

        `served` says that this is done before.
        """
        answer = {"status": 0, "code": "", "served": served, "kills": True}
        self._call(
            "POST", "faults", [{"operation": operation, "role": role, "after": after, **answer}]
        )

    def hurry(self, function: str, seconds: float) -> None:
        """Have a function that does not answer its next event within so long run out of time."""
        self._call("POST", "hurries", {"function": function, "seconds": seconds})

    def pass_visibility(self, longer: float) -> None:
        """Have messages come again that are hidden for longer than so many seconds from now on."""
        self._call("POST", "time", longer)

    def access(self) -> list[dict[str, Any]]:
        """Return the requests of roles: role, action, resource, whether they may, and how often."""
        answer: list[dict[str, Any]] = self._call("GET", "access")
        return answer

    def forget_access(self) -> None:
        """Forget the requests of roles so far."""
        self._call("DELETE", "access")

    def forgive(self) -> int:
        """Forget the failures that were asked for and did not happen; say how many there were."""
        left: int = self._call("DELETE", "faults")
        return left

    def _call(self, method: str, what: str, body: Any = None) -> Any:
        return _post(self.url, method, what, body)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def pass_time(url: str, seconds: float) -> None:
    """Have so much time pass for the messages of a server, by its URL: hidden and delayed ones."""
    _post(url, "POST", "passed", seconds)


def _post(url: str, method: str, what: str, body: Any) -> Any:
    connection = http.client.HTTPConnection(url.rpartition("/")[2], timeout=30)
    try:
        connection.request(method, f"/lab/{what}", json.dumps(body))
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()
