"""Ingest on Cloud Run functions, behind its own URL."""

from __future__ import annotations

import functions_framework
from flask import Request

from bellhop.gcp.front import Front, Reply
from bellhop.gcp.resources import Resources
from bellhop.stages.ingest import Ingest


def _stage(here: Resources) -> Ingest:
    return Ingest(here.records, here.publisher, here.settings, here.log)


_front = Front(_stage)


@functions_framework.http
def handle(request: Request) -> Reply:
    """Answer one request."""
    return _front(request)
