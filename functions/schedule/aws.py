"""Schedule on Lambda: EventBridge Scheduler ticks each minute."""

from __future__ import annotations

from bellhop.cloud.loading import undisturbed

with undisturbed():
    from bellhop.aws.tick import Tick
    from bellhop.cloud.due import Due


handle = Tick(Due)
