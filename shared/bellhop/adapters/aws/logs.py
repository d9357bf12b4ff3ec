"""Log lines of an installation's functions, read from CloudWatch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.core.log_tail import Line, follow
from bellhop.errors import MissingError

_PAUSE = 2.0
_ABSENT = frozenset({"ResourceNotFoundException"})


class CloudWatchLogs:
    """The lines of an installation; `groups` are its log groups by stage."""

    def __init__(
        self,
        services: Services,
        groups: Mapping[str, str],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._services = services
        self._groups = groups
        self._sleep = sleep

    def read(self, since: datetime) -> Sequence[Line]:
        """Return all lines since a moment, by time.

        Raises:
            MissingError: a log group is not there.
        """
        found = [line for stage in self._groups for line in self._read_group(stage, since)]
        return sorted(found)

    def follow(
        self, since: datetime, *, wait: Callable[[str], None] = lambda _: None
    ) -> Iterator[Line]:
        """Yield lines since a moment, and each that comes, for ever; none is yielded twice.

        If CloudWatch does not answer, the request is repeated, and `wait` gets the reason.
        """
        # CloudWatch's instants are milliseconds: the time of a line may lie before `since`.
        since = since.replace(microsecond=since.microsecond // 1000 * 1000)
        yield from follow(
            self._read_group, self._groups, since, wait=wait, pause=lambda: self._sleep(_PAUSE)
        )

    def _read_group(self, stage: str, since: datetime) -> Iterator[Line]:
        """Yield one function's lines page by page; a page may be empty though more follow."""
        group = self._groups[stage]
        request: dict[str, Any] = {
            "logGroupName": group,
            "startTime": int(since.timestamp() * 1000),
        }
        while True:
            try:
                answer = self._services.call(
                    "logs",
                    "filter_log_events",
                    request,
                    doing=f"read the log group '{group}'",
                    taken=_ABSENT,
                )
            except RefusedError as error:
                raise MissingError(
                    f"cannot read the logs of {stage}: there is no log group '{group}'; apply"
                    " Terraform again"
                ) from error
            for each in answer.get("events", ()):
                at = datetime.fromtimestamp(each["timestamp"] / 1000, UTC)
                yield Line(at, stage, str(each["eventId"]), each["message"])
            if not answer.get("nextToken"):
                return
            request["nextToken"] = answer["nextToken"]
