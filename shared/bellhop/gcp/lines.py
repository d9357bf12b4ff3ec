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
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from bellhop.logs import Log, as_json

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


class CloudLog(Log):
    """Writes lines for a project's logs."""

    def __init__(self, project: str, stream: TextIO | None = None, **always: Any) -> None:
        # functions-framework puts another stream before it for as long as a request takes.
        super().__init__(stream if stream is not None else sys.__stdout__, **always)
        self._project = project

    def line(self, told: dict[str, Any]) -> dict[str, Any]:
        """Return what is told, and beside it what Cloud Logging looks for."""
        labels = {
            label: str(told[field])[:_LABEL_LIMIT]
            for field, label in LABELS.items()
            if told.get(field)
        }
        whole = dict(told)
        if labels:
            whole[_GOOGLES + "labels"] = labels
        if trace := told.get("trace"):
            number = str(trace).rjust(_TRACE_DIGITS, "0")
            whole[_GOOGLES + "trace"] = f"projects/{self._project}/traces/{number}"
        digest = hashlib.sha256(as_json(told).encode()).hexdigest()
        whole[_GOOGLES + "insertId"] = digest[:_TRACE_DIGITS]
        return whole
