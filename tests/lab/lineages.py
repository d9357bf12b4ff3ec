"""Chains of invocations as Lambda counts them, to stop functions that feed themselves for ever.

    message ─► invocation ─► message ─► invocation …
    Lineage=…:1              Lineage=…:2

Lambda gives each invocation a trace header, which AWS' SDKs send along with every request; SQS
keeps it with the message as `AWSTraceHeader`. Its `Lineage` counts by function how often the chain
has invoked it. After 16 times Lambda hands nothing more of the chain over, and counts that in
`RecursiveInvocationsDropped`; the message stays hidden, comes again, and is refused again, until
its queue dead-letters it. A function whose recursion config is `Allow` is never refused.

AWS does not say which of a batch's messages counts: here it is the one whose chain is the longest.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections.abc import Iterable
from urllib.parse import unquote

MOST = 16
"""Invocations of a function in one chain."""

ALLOW, TERMINATE = "Allow", "Terminate"
"""The values of a function's recursion config; the latter is the default."""

_LINEAGE = re.compile(r"Lineage=([^;]*)")


def counted(function: str, headers: Iterable[str]) -> tuple[str, int]:
    """Return the trace header of an invocation, and which of its chain it is for the function.

    `headers` are those of the messages that are handed over.
    """
    chains = [_read(header) for header in headers]
    name = hashlib.sha256(function.encode()).hexdigest()[:8]
    longest = max(chains, key=lambda chain: chain.get(name, 0), default={})
    chain = {**longest, name: longest.get(name, 0) + 1}
    lineage = "|".join(f"{each}:{times}" for each, times in chain.items())
    root = f"Root=1-{int(time.time()):08x}-{uuid.uuid4().hex[:24]}"
    return f"{root};Parent=53995c3f42cd8ad8;Sampled=0;Lineage={lineage}", chain[name]


def _read(header: str) -> dict[str, int]:
    """Return by function how often a chain has invoked it; SDKs send the header quoted."""
    found = _LINEAGE.search(unquote(header))
    pairs = (each.partition(":") for each in found[1].split("|")) if found else ()
    return {name: int(times) for name, _, times in pairs}
