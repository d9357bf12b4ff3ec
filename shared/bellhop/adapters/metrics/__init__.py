"""Metrics over HTTP, by the guarded client: where they are is written by users."""

from bellhop.adapters.metrics.prometheus import Prometheus

__all__ = ["Prometheus"]
