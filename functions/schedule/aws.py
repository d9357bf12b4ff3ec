"""Schedule on Lambda: EventBridge Scheduler ticks each minute."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from bellhop.runtime.aws.tick import Tick
    from bellhop.runtime.cloud.due import Due


handle = Tick(Due)
