"""Who hosts what is Local: one cluster, in which each profile brings it for all that it goes to."""

from __future__ import annotations

from typing import Literal

MANAGEMENT = "mgmt/mgmt"
"""The cluster that stands for Sveltos' management cluster, as it registers itself."""

Hosting = Literal["", "alone", "beside", "nowhere", "left"]
"""What a profile has in `mgmt/mgmt` of refs that are Local: nothing, or no more.

It goes there for these alone, or beside its other refs, as the cluster is one of those that it
selects; or nowhere, since none is registered by that name. One that has `left` was there for these
alone, or would have been.
"""
