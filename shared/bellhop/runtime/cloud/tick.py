"""Ticks of a cloud's timer, for what publishes what is due, and Terraform's question.

Terraform asks before it destroys an installation, as the modules' `guard.tf` say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bellhop.core.first_error import Failures
from bellhop.errors import PermanentError
from bellhop.logs import Log
from bellhop.runtime.cloud import alerts
from bellhop.runtime.cloud.due import Due
from bellhop.runtime.cloud.ready import Ready
from bellhop.runtime.cloud.resources import Resources


class Ticker:
    """Does what is due at each tick.

    A tick that comes twice, or at once with another, publishes a message twice at worst; one that
    is lost or fails is made good by the next. One that fails says so to the cloud, which counts it.
    """

    def __init__(self, ready: Ready[Resources, Due]) -> None:
        self._ready = ready

    def tick(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is due; return how much that was.

        Raises:
            PermanentError: Terraform is about to destroy what clusters are registered in.
        """
        if "terraform" in event:
            if event["terraform"]["action"] == "delete" and not event["destroy_with_clusters"]:
                _allow_destroying(self._ready.get()[0])
            return {}
        failures, done = Failures(), 0
        with failures.isolated("installation"):
            here, due = self._ready.get()
            with failures.isolated("what is due"):
                done = due.tick()
            with failures.isolated("alerts"):
                alerts.report(here)
            if done:
                here.log.info("Published what is due", messages=done)
            # Also where a step failed: a metric of work that waits is wanted then.
            here.end()
        try:
            failures.end()
        except Exception as error:
            Log().error("Cannot do what is due", error)
            raise
        return {"published": done}


def _allow_destroying(here: Resources) -> None:
    """Raise while clusters are registered.

    One that is registered just afterwards is not seen: nobody registers what he destroys.
    """
    names = sorted(each.key for each in here.records.clusters.all())
    if names:
        raise PermanentError(
            f"cannot destroy the installation: clusters are registered, such as '{names[0]}';"
            " deregister all that `bellhop get clusters` lists, or apply destroy_with_clusters ="
            " true before"
        )
