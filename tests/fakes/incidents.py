"""PagerDuty, Opsgenie and Alertmanager on this machine, as strict as their documentation.

Each refuses what the real one refuses, and shows which incidents are open. The rules are those of
PagerDuty's Events API v2, of Opsgenie's Alert API and of Alertmanager's API v2.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

ROUTING_KEY = "0123456789abcdef0123456789abcdef"
GENIE_KEY = "genie-hidden"

_EVENT = {"routing_key", "event_action", "dedup_key", "payload", "client", "client_url"}
_PAYLOAD = {
    "summary": 1024,
    "source": 255,
    "severity": 8,
    "timestamp": 64,
    "component": 255,
    "group": 255,
    "class": 255,
}
_ALERT = {"message": 130, "alias": 512, "description": 15000, "entity": 512, "source": 100}
_CLOSE = {"source": 100, "note": 25000, "user": 100}


@dataclass
class Incidents:
    """What is open, by service and key, with what was sent last; the status of each answer."""

    port: int = 0
    opened: dict[str, Any] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    received: list[Any] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, token: str, body: Any) -> int:
        """Take one request; return the status of its answer."""
        parts = urlsplit(path)
        if parts.path == "/v2/enqueue":
            return self._enqueue(body)
        if parts.path == "/am/api/v2/alerts":
            return self._alerts(body)
        if parts.path.startswith("/v2/alerts"):
            if token != f"GenieKey {GENIE_KEY}":
                return 401
            return self._alert(parts.path, parse_qs(parts.query), body)
        return 404

    def _enqueue(self, body: dict[str, Any]) -> int:
        key, action = body.get("dedup_key", ""), body.get("event_action")
        if body.get("routing_key") != ROUTING_KEY or body.keys() - _EVENT or len(key) > 255:
            return 400
        if action == "resolve" and key:
            self.opened.pop(f"event {key}", None)
            return 202
        payload = dict(body.get("payload", {}))
        details = payload.pop("custom_details", {})
        if action != "trigger" or not isinstance(details, dict) or not _fits(payload, _PAYLOAD):
            return 400
        if not {"summary", "source", "severity"} <= payload.keys():
            return 400
        if payload["severity"] not in {"critical", "error", "warning", "info"}:
            return 400
        datetime.fromisoformat(payload["timestamp"])
        self.opened[f"event {key}"] = body
        return 202

    def _alert(self, path: str, query: dict[str, list[str]], body: dict[str, Any]) -> int:
        if closed := re.fullmatch(r"/v2/alerts/([^/]+)/close", path):
            if query != {"identifierType": ["alias"]} or not _fits(body, _CLOSE):
                return 422
            self.opened.pop(f"alert {unquote(closed[1])}", None)
            return 202
        alert = dict(body)
        details, priority = alert.pop("details", {}), alert.pop("priority", "P3")
        if path != "/v2/alerts" or not alert.get("message") or not _fits(alert, _ALERT):
            return 422
        if not re.fullmatch("P[1-5]", priority) or not all(map(_is_text, details.values())):
            return 422
        self.opened.setdefault(f"alert {alert['alias']}", body)
        return 202

    def _alerts(self, body: list[dict[str, Any]]) -> int:
        for alert in body:
            labels = alert.get("labels", {})
            known = {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}
            texts = [*labels.values(), *alert.get("annotations", {}).values()]
            names = [*labels, *alert.get("annotations", {})]
            if alert.keys() - known or not labels.get("alertname"):
                return 400
            if not all(map(_is_text, texts)) or not all(map(_is_label, names)):
                return 400
            key = json.dumps(labels, sort_keys=True)
            if "endsAt" in alert and not _lasts(alert):
                self.opened.pop(key, None)
            else:
                self.opened[key] = alert
        return 200


def _lasts(alert: dict[str, Any]) -> bool:
    """Return whether an alert ends after it has begun: one without a beginning ends now."""
    ends_at = datetime.fromisoformat(alert["endsAt"])
    return datetime.fromisoformat(alert.get("startsAt", alert["endsAt"])) < ends_at


def _fits(found: dict[str, Any], longest: dict[str, int]) -> bool:
    return found.keys() <= longest.keys() and all(
        _is_text(value) and len(value) <= longest[name] for name, value in found.items()
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_label(name: str) -> bool:
    return re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name) is not None


@contextmanager
def incident_managers() -> Iterator[Incidents]:
    """Run the three within the block."""
    found = Incidents()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = found.answer(self.path, self.headers.get("Authorization", ""), body)
            found.received.append(body)
            found.statuses.append(status)
            self.send_response(status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
