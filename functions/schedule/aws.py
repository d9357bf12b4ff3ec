"""Schedule on Lambda: EventBridge Scheduler ticks each minute."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from bellhop.runtime.aws.resources import from_environment
    from bellhop.runtime.cloud.tick import Due, Ticker


handle = Ticker(Due, from_environment)
