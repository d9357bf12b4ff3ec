"""Evaluate on Lambda, fed by the queues of `evaluate`, `review` and `patient`."""

from __future__ import annotations

from bellhop.cloud.loading import undisturbed

with undisturbed():
    from bellhop.aws.batch import Batch
    from bellhop.aws.resources import Resources
    from bellhop.records.catalogs import Catalogs
    from bellhop.stages.evaluate import Evaluate


def _stage(here: Resources) -> Evaluate:
    catalogs = Catalogs(here.records)
    return Evaluate(here.records, catalogs, here.publisher, here.settings, here.log)


handle = Batch(_stage)
