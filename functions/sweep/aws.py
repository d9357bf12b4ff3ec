"""Sweep on Lambda, fed by the queues of `confirm`, `sweep` and `probe`."""

from __future__ import annotations

from bellhop.aws.batch import Batch
from bellhop.aws.installation import installation
from bellhop.aws.resources import Resources
from bellhop.fleet.renewal import Renewals
from bellhop.stages.sweep import Sweep


def _stage(here: Resources) -> Renewals:
    whole = installation(here)
    sweep = Sweep(
        here.records, whole.catalogs, whole.access, here.publisher, here.settings, here.log
    )
    return Renewals(whole, sweep, here.log)


handle = Batch(_stage)
