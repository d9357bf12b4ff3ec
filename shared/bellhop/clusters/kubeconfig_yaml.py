"""Read a kubeconfig that people wrote: YAML, of which no more is taken than they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from bellhop.clusters.kubeconfig import NO_KUBECONFIG
from bellhop.errors import InvalidError

_DEEPEST = 50
_LONGEST_PLAIN = 4096


def read_yaml(text: str | bytes) -> Any:
    """Read a text whose length was looked at.

    Raises:
        InvalidError: it is not YAML, or holds what only makes a reader work.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _require_plain(yaml.parse(text, Loader=loader))
        return yaml.load(text, Loader=loader)  # noqa: S506 - one of the two safe loaders
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    except (yaml.YAMLError, ValueError, RecursionError):
        place = ""
    # Outside of the handler: PyYAML's error quotes the document, and a chained one would be shown.
    raise InvalidError(f"the kubeconfig is not valid YAML{place}")


def _require_plain(events: Iterator[yaml.Event]) -> None:
    """Refuse what takes a reader more time, memory or stack than the text has bytes.

    A parser's events cost neither; building nodes of them does: PyYAML descends by recursion in C,
    merges keys by copying, and computes numbers to the base of 60.
    """
    depth = 0
    for event in events:
        mark = event.start_mark
        place = f"line {mark.line + 1 if mark else 1} of the kubeconfig"
        if not depth and isinstance(event, yaml.AliasEvent | yaml.ScalarEvent):
            raise InvalidError(NO_KUBECONFIG)
        if isinstance(event, yaml.AliasEvent):
            raise InvalidError(f"{place} refers to an anchor; write the value out")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.ScalarEvent) and _is_laborious(event):
            raise InvalidError(f"{place} has a long text with colons; put it in quotes")
        if depth > _DEEPEST:
            raise InvalidError(f"{place} is nested deeper than {_DEEPEST} levels")


def _is_laborious(event: yaml.ScalarEvent) -> bool:
    return not event.style and len(event.value) > _LONGEST_PLAIN and ":" in event.value
