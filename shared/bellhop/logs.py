"""Log lines as JSON on a stream: severity, message, time, and what else is known.

A line is a constant sentence and keys with values: `log.info("Applied a profile", profile=…)`.
"""

from __future__ import annotations

import json
import sys
import threading
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO


class Log:
    """Writes one JSON object a line; safe to share between threads."""

    def __init__(self, stream: TextIO | None = None, **always: Any) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self._always = always
        self._lock = threading.Lock()

    def info(self, message: str, **fields: Any) -> None:
        """Write what went as it should."""
        self._write("INFO", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """Write what somebody may want to look at."""
        self._write("WARNING", message, fields)

    def error(self, message: str, error: BaseException | None = None, **fields: Any) -> None:
        """Write what failed; an error nobody foresaw comes with its traceback."""
        if error is not None:
            fields["stack_trace"] = "".join(traceback.format_exception(error))
        self._write("ERROR", message, fields)

    def _write(self, severity: str, message: str, fields: dict[str, Any]) -> None:
        told = {
            "severity": severity,
            "message": message,
            "time": datetime.now(UTC).isoformat(),
            **self._always,
            **fields,
        }
        text = as_json(self.line(told))
        # Where lines cannot be written, on a full disk say, the work goes on without them.
        with self._lock, suppress(OSError):
            self._stream.write(text + "\n")
            self._stream.flush()

    def line(self, told: dict[str, Any]) -> dict[str, Any]:
        """Return what is written for what is told; a place where logs go may want more."""
        return told


def as_json(line: dict[str, Any]) -> str:
    """Write a line."""
    # JSON leaves DEL as it is, which terminals do not.
    return json.dumps(line, default=str).replace("\x7f", "\\u007f")
