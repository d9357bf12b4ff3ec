"""Ingest on Lambda, behind a function URL or an HTTP API."""

from __future__ import annotations

from bellhop.cloud.loading import undisturbed

with undisturbed():
    from bellhop.aws.front import Front
    from bellhop.aws.resources import Resources
    from bellhop.stages.ingest import Ingest


def _stage(here: Resources) -> Ingest:
    return Ingest(here.records, here.publisher, here.settings, here.log)


handle = Front(_stage)
