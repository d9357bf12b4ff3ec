"""The words of errors about charts; all else about requests is `egress`."""

from __future__ import annotations

from typing import ClassVar

from bellhop.adapters.egress.source_client import SourceClient


class ChartClient(SourceClient, frozen=True):
    """Requests for one chart; `task` begins each error: "cannot find chart 'a' in 'b'"."""

    login_source: ClassVar[str] = "the repository's Secret"
    address: ClassVar[str] = "the repository's address"
