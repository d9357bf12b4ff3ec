"""Messages that Pub/Sub pushes, each as a CloudEvent, for the stage that works on them.

    push ─► CloudEvent ─► Inbox.work ─► Done, Again, GivenUp, written down    2xx: acknowledged
                                        nothing could be written down         503: comes again

functions-framework makes the event of the push's body, and its source of the path that the
subscription pushes to. One process works on as many at once as it has threads: each of these has
a message of its own. A killed process has answered nothing, and Pub/Sub pushes the message again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from werkzeug.exceptions import BadRequest, ServiceUnavailable

from bellhop.errors import BellhopError, InvalidError, TemporaryError
from bellhop.logs import Log
from bellhop.ports.queue import Delivery, GivenUp, Result
from bellhop.runtime.cloud import retries
from bellhop.runtime.cloud.ready import Ready
from bellhop.runtime.gcp.resources import Resources, from_environment
from bellhop.state.consumer import Inbox, Stage


class Event(Protocol):
    """A CloudEvent: attributes by name, and its data."""

    @property
    def data(self) -> Any:
        """Return its data."""
        ...

    def __getitem__(self, name: str) -> Any: ...


class Push:
    """Works on what one function's subscriptions push to it."""

    def __init__(
        self,
        make: Callable[[Resources], Stage],
        opening: Callable[[], Resources] = from_environment,
    ) -> None:
        self._ready = Ready(make, opening)

    def __call__(self, event: Event) -> None:
        """Work on one message; it is acknowledged when this returns.

        Raises:
            ServiceUnavailable: it is to be pushed again.
            BadRequest: it is no push; Pub/Sub gives it up some time.
        """
        try:
            here, stage = self._ready.get()
        except Exception as error:
            _report_unready(error)
            raise ServiceUnavailable from error
        try:
            self._work(here, stage, event)
        except InvalidError as error:
            _report_unreadable(here.log, error)
            raise BadRequest from error
        except BellhopError as error:
            here.log.warning("Cannot settle a message", error=str(error))
            raise ServiceUnavailable from error
        finally:
            here.end()

    def _work(self, here: Resources, stage: Stage, event: Event) -> None:
        name, queue = here.inbox(str(event["source"]))
        inbox = Inbox(name, stage, here.settings, here.log)

        def work(delivery: Delivery) -> Result:
            [(_, result)] = retries.record(inbox.work([delivery]), here)
            return result

        became = queue.pushed(event.data, work)
        if isinstance(became, GivenUp):
            here.log.warning(
                "Moved a message to the dead letters", inbox=name, reason=became.reason
            )


def _report_unreadable(log: Log, error: Exception) -> None:
    log.error("Cannot read a push", error=error)


def _report_unready(error: Exception) -> None:
    if isinstance(error, TemporaryError):
        Log().warning("Cannot open the installation yet", error=str(error))
    else:
        Log().error("Cannot open the installation", error)
