"""The handlers of a package, with clusters on loopback: a laboratory's are nowhere else.

A package itself refuses them, since loopback is the function's own runtime in a cloud. This layer
lies beside it, and all else is the package's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from bellhop.aws.batch import Batch
from bellhop.aws.resources import Resources, from_environment
from bellhop.model.reach import HERE


def _open() -> Resources:
    return replace(from_environment(), reach=HERE)


def __getattr__(stage: str) -> Callable[..., Any]:
    """Return the handler of a stage that SQS feeds."""
    return Batch(import_module(f"functions.{stage}.aws")._stage, _open)
