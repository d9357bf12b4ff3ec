"""Logging of every process: one JSON object a line, for Bellhop's records and those of libraries.

An entry point calls `configure` once. Bellhop's own records are a constant sentence with fields,
`log.info("Applied a profile", profile=…)`, written by the logger `bellhop`. Cloud Logging and Error
Reporting take `severity`, `message`, `time` and `stack_trace` out of a line by these names.
"""

from __future__ import annotations

import json
import logging
import reprlib
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

_NAME = "bellhop"
_FIELDS = "bellhop_fields"
_LIBRARIES = ("boto3", "botocore", "google", "nats", "urllib3", "uvicorn")
"""Libraries whose loggers have a level or a propagation of their own, or may be given one."""

_dump = json.JSONEncoder(default=str, allow_nan=False).encode
_ABBREVIATED = reprlib.Repr()
_ABBREVIATED.maxstring = _ABBREVIATED.maxother = 1024


class JsonFormatter(logging.Formatter):
    """Writes any record as one line of printable ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return as_json(self.entry(record))

    def entry(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return the fields of a record; a subclass may add more for its backend."""
        entry = {
            "severity": record.levelname,
            "message": _message(record),
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
        }
        if record.name != _NAME:
            entry["logger"] = record.name
        if record.exc_info:
            entry["stack_trace"] = self.formatException(record.exc_info)
        return {**entry, **getattr(record, _FIELDS, {})}


class Log:
    """Writes Bellhop's records, which have fields; safe to share between threads.

    With a stream it writes only there, whatever the process has configured.
    """

    def __init__(
        self, stream: TextIO | None = None, formatter: logging.Formatter | None = None
    ) -> None:
        self._logger = logging.getLogger(_NAME)
        if stream is not None:
            # Registered by its name, it would be shared by all logs of the process.
            self._logger = logging.Logger(_NAME, logging.INFO)  # noqa: LOG001
            self._logger.addHandler(_handler(stream, formatter))

    def info(self, message: str, **fields: Any) -> None:
        """Write a record at INFO."""
        self._write(logging.INFO, message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """Write a record at WARNING."""
        self._write(logging.WARNING, message, fields)

    def error(self, message: str, error: BaseException | None = None, **fields: Any) -> None:
        """Write a record at ERROR, with the traceback of an error if one is given."""
        self._write(logging.ERROR, message, fields, error)

    def _write(
        self, level: int, message: str, fields: dict[str, Any], error: BaseException | None = None
    ) -> None:
        self._logger.log(level, message, exc_info=error, extra={_FIELDS: fields})


def configure(stream: TextIO | None = None, formatter: logging.Formatter | None = None) -> None:
    """Write the records of all loggers to a stream, standard output if none is given.

    Bellhop's count from INFO up, those of libraries from WARNING up: below it, botocore and urllib3
    write credentials. Handlers that the root logger had, as Lambda's runtime gives it, are removed.
    """
    # Where lines cannot be written, on a full disk say, the work goes on without them.
    logging.raiseExceptions = False
    handler = _handler(stream or sys.stdout, formatter)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(_NAME).setLevel(logging.INFO)
    for name in _LIBRARIES:
        library = logging.getLogger(name)
        library.setLevel(logging.WARNING)
        # Google's libraries keep their records from the root logger by default.
        library.propagate = True


def as_json(entry: dict[str, Any]) -> str:
    """Return an entry as JSON; a field that JSON cannot hold becomes its abbreviated `repr`."""
    try:
        text = _dump(entry)
    except Exception:  # noqa: BLE001 - a cycle, or an object that cannot even be printed
        text = _dump({name: _writable(value) for name, value in entry.items()})
    # JSON leaves DEL as it is, which terminals do not.
    return text.replace("\x7f", "\\u007f")


def _handler(stream: TextIO, formatter: logging.Formatter | None) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter or JsonFormatter())
    return handler


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - a library's arguments do not fit its text
        return _ABBREVIATED.repr((record.msg, record.args))


def _writable(value: Any) -> Any:
    try:
        _dump(value)
    except Exception:  # noqa: BLE001 - as above
        return _ABBREVIATED.repr(value)
    return value
