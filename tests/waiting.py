"""The one way in which tests wait: until something is so, and never for a fixed time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from bellhop.adapters.kube.client import KubeClient, Right

T = TypeVar("T")

PATIENCE = float(os.environ.get("BELLHOP_PATIENCE", "1"))
"""Multiplies how long a test waits: a machine may be slower than the one that tests were written
on."""


def eventually(
    what: str | Callable[[], object],
    done: Callable[[], T],
    *,
    patience: float = 30.0,
    pause: float = 0.02,
) -> T:
    """Ask until the answer is true, and return it; fail the test after so many seconds.

    `what` is what the test waits for, or is called for it when it is late.
    """
    deadline = time.monotonic() + patience * PATIENCE
    while not (found := done()):
        if time.monotonic() > deadline:
            late = what if isinstance(what, str) else what()
            raise AssertionError(f"waited {patience * PATIENCE:.0f} s in vain until {late}")
        time.sleep(pause)
    return found


def await_rights(
    admin: KubeClient, account: str, granted: Collection[Right], denied: Collection[Right] = ()
) -> None:
    """Wait until the rights of a service account count in its cluster.

    An API server learns of a role and of its binding a moment after it stored them.
    """
    acting = admin.acting_as(account)
    checks = [*granted, *denied]
    eventually(
        lambda: f"'{account}' lacks {[*denied]} alone, and not {acting.rights(checks)}",
        lambda: acting.rights(checks) == [*denied],
    )
