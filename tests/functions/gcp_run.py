"""Google's functions in this process, each with the wiring of its module.

Requests, pushes and ticks have the shapes in which functions-framework passes them on.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from cloudevents.http import CloudEvent
from flask import Request
from werkzeug.test import EnvironBuilder

from bellhop.runtime.gcp.http import Front
from bellhop.runtime.gcp.push import Push
from bellhop.runtime.gcp.resources import Resources
from bellhop.runtime.gcp.tick import Tick
from bellhop.state.messages import INBOXES

Opening = Callable[[], Resources]


class Run:
    """The functions of an installation, which is opened by the first event of each."""

    def __init__(self, opening: Opening) -> None:
        made = {stage: import_module(f"functions.{stage}.gcp") for stage in set(INBOXES.values())}
        self.pushes = {stage: Push(module._stage, opening) for stage, module in made.items()}
        self.front = Front(import_module("functions.ingest.gcp")._stage, opening)
        self.tick = Tick(opening=opening)

    def send(self, cluster: str, body: Any) -> int:
        """Have a cluster's sender send something; return the status."""
        return self.front(sent(f"fleet/{cluster}", cluster, body))[1]


def sent(cluster: str, token: str, body: Any) -> Request:
    """Return the request of a cluster's sender."""
    about = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    path = f"/clusters/{cluster}"
    builder = EnvironBuilder(path, method="POST", data=json.dumps(body), headers=about)
    return Request(builder.get_environ())


def pushed(topic: str, number: str, data: bytes, attributes: Mapping[str, str]) -> CloudEvent:
    """Return what functions-framework makes of a push."""
    message = {
        "messageId": number,
        "attributes": dict(attributes),
        "data": base64.b64encode(data).decode(),
    }
    kind = "google.cloud.pubsub.topic.v1.messagePublished"
    about = {"type": kind, "source": f"//pubsub.googleapis.com/{topic}"}
    return CloudEvent(about, {"message": message})
