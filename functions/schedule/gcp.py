"""Schedule on Cloud Run functions: Cloud Scheduler ticks each minute."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from typing import Any

    import functions_framework
    from flask import Request

    from bellhop.runtime.gcp.tick import Tick


_tick = Tick()


@functions_framework.http
def handle(_request: Request) -> tuple[dict[str, Any], int]:
    """Do what is due."""
    return _tick()
