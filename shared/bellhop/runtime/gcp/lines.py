"""Log lines in the names that Cloud Logging takes out of what a function writes.

    severity, message, time                the entry's own; everything else is its payload
    logging.googleapis.com/labels          who asks `labels.cluster="prod/eu-1"` finds the line
    logging.googleapis.com/trace           all lines that follow from one ring are shown as one
    logging.googleapis.com/insertId        one line that comes twice is shown once

The payload has the same fields as anywhere, those that make labels among them, so that a query
says the same in both clouds.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from typing import Any

from bellhop.logs import JsonFormatter, as_json

LABELS: Mapping[str, str] = {
    "cluster": "cluster",
    "source": "eventsource",
    "trigger": "eventtrigger",
    "profile": "profile",
    "stage": "stage",
}
"""The label that is made of a field."""

_GOOGLES = "logging.googleapis.com/"
_TRACE_DIGITS = 32
_LABEL_LIMIT = 1024
"""Characters of a label's value that are kept, well below what an entry may have."""


class CloudFormatter(JsonFormatter):
    """Writes records for a project's logs."""

    def __init__(self, project: str) -> None:
        super().__init__()
        self._project = project

    def entry(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return the fields of a record, and beside them what Cloud Logging looks for."""
        entry = super().entry(record)
        digest = hashlib.sha256(as_json(entry).encode()).hexdigest()
        more: dict[str, Any] = {_GOOGLES + "insertId": digest[:_TRACE_DIGITS]}
        labels = {
            label: str(entry[field])[:_LABEL_LIMIT]
            for field, label in LABELS.items()
            if entry.get(field)
        }
        if labels:
            more[_GOOGLES + "labels"] = labels
        if trace := entry.get("trace"):
            number = str(trace).rjust(_TRACE_DIGITS, "0")
            more[_GOOGLES + "trace"] = f"projects/{self._project}/traces/{number}"
        return {**entry, **more}
