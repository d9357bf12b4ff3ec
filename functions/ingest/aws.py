"""Ingest on Lambda, behind a function URL or an HTTP API."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from bellhop.ingest.handler import Ingest
    from bellhop.runtime.aws.http import Front
    from bellhop.runtime.aws.resources import Resources


def _stage(here: Resources) -> Ingest:
    return Ingest(here.records, here.publisher, here.settings, here.log)


handle = Front(_stage)
