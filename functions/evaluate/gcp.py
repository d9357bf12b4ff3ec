"""Evaluate on Cloud Run functions: Pub/Sub pushes what is for `evaluate`, `review`, `patient`."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    import functions_framework
    from cloudevents.http import CloudEvent

    from bellhop.catalog.cache import Catalogs
    from bellhop.events.evaluator import Evaluator
    from bellhop.runtime.gcp.push import Push
    from bellhop.runtime.gcp.resources import Resources


def _stage(here: Resources) -> Evaluator:
    catalogs = Catalogs(here.records)
    return Evaluator(here.records, catalogs, here.publisher, here.settings, here.log)


_push = Push(_stage)


@functions_framework.cloud_event
def handle(event: CloudEvent) -> None:
    """Work on one message."""
    _push(event)
