"""Ingest on Cloud Run functions, behind its own URL, and behind another for Eventarc only."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    import functions_framework
    from flask import Request

    from bellhop.ingest.handler import Ingest
    from bellhop.runtime.gcp.http import Front, Reply
    from bellhop.runtime.gcp.resources import Resources


def _stage(here: Resources) -> Ingest:
    return Ingest(here.records, here.publisher, here.settings, here.log)


_front = Front(_stage)


@functions_framework.http
def handle(request: Request) -> Reply:
    """Answer one request."""
    return _front(request)


@functions_framework.http
def hear(request: Request) -> Reply:
    """Answer one event of Google, in a function that only Eventarc may call."""
    return _front.hear(request)
