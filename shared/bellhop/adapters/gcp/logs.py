"""Log lines of an installation's functions, read from Cloud Logging.

All functions are asked for at once, and only for decisions and errors: a project may read its
logs sixty times a minute.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bellhop.adapters.gcp.services import RefusedError, Services
from bellhop.core.log_tail import Line, follow
from bellhop.errors import MissingError

_URL = "https://logging.googleapis.com/v2/entries:list"
_PAUSE = 4.0
_PAGE = 1000
_ALL = "all"
_RELEVANT = "(jsonPayload.what:* OR severity>=WARNING)"
_ABSENT = frozenset({"NOT_FOUND"})


class CloudLogs:
    """The lines of an installation's functions; `services` are their names on Cloud Run by stage.

    `place` is the project, or the view of a bucket, in which they are. A line's text is its entry.
    """

    def __init__(
        self,
        services: Services,
        place: str,
        functions: Mapping[str, str],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._services = services
        self._place = place
        self._stages = {function: stage for stage, function in functions.items()}
        self._sleep = sleep

    def read(self, since: datetime) -> Sequence[Line]:
        """Return all lines since a moment, by time.

        Raises:
            MissingError: the project, or the view, is not there.
        """
        return sorted(self._read(_ALL, since))

    def follow(
        self, since: datetime, *, wait: Callable[[str], None] = lambda _: None
    ) -> Iterator[Line]:
        """Yield lines since a moment, and each that comes, for ever; none is yielded twice.

        If Cloud Logging does not answer, the request is repeated, and `wait` gets the reason.
        """
        yield from follow(self._read, [_ALL], since, wait=wait, pause=lambda: self._sleep(_PAUSE))

    def _read(self, _group: str, since: datetime) -> Iterator[Line]:
        """Yield lines page by page; a page may be empty though more follow."""
        request: dict[str, Any] = {
            "resourceNames": [self._place],
            "filter": self._filter(since),
            "orderBy": "timestamp asc",
            "pageSize": _PAGE,
        }
        while True:
            answer = self._query(request)
            for each in answer.get("entries", ()):
                at = datetime.fromisoformat(each["timestamp"]).astimezone(UTC)
                labels = each.get("resource", {}).get("labels", {})
                stage = self._stages.get(labels.get("service_name", ""), "")
                yield Line(at, stage, f"{each['timestamp']} {each['insertId']}", json.dumps(each))
            if not answer.get("nextPageToken"):
                return
            request["pageToken"] = answer["nextPageToken"]

    def _filter(self, since: datetime) -> str:
        names = " OR ".join(f'"{each}"' for each in self._stages)
        return (
            'resource.type="cloud_run_revision"'
            f" AND resource.labels.service_name=({names})"
            f' AND timestamp>="{since.astimezone(UTC).isoformat()}" AND {_RELEVANT}'
        )

    def _query(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            answer = self._services.ask(
                "POST",
                _URL,
                doing=f"read the logs of '{self._place}'",
                taken=_ABSENT,
                body=json.dumps(request).encode(),
                headers={"Content-Type": "application/json"},
            )
        except RefusedError as error:
            raise MissingError(
                f"cannot read the logs: there is no '{self._place}'; apply Terraform again"
            ) from error
        found: Mapping[str, Any] = json.loads(answer)
        return found
