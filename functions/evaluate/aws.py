"""Evaluate on Lambda, fed by the queues of `evaluate`, `review` and `patient`."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from bellhop.catalog.cache import Catalogs
    from bellhop.events.evaluator import Evaluator
    from bellhop.runtime.aws.batch import Batch
    from bellhop.runtime.aws.resources import Resources


def _stage(here: Resources) -> Evaluator:
    catalogs = Catalogs(here.records)
    return Evaluator(here.records, catalogs, here.publisher, here.settings, here.log)


handle = Batch(_stage)
