"""The service account whose rights count in a cluster; labels of a tenant's rules name it.

Records and requests have it as `namespace/name`, and empty for Bellhop's own rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bellhop.core.names import name_problem, namespace_problem
from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from bellhop.documents.document import Path

_BOTH: Mapping[str, tuple[str, Callable[[str], str]]] = {
    ACCOUNT_NAME: (ACCOUNT_NAMESPACE, name_problem),
    ACCOUNT_NAMESPACE: (ACCOUNT_NAME, namespace_problem),
}


def account_of(labels: Mapping[str, str]) -> str:
    """Read which account labels name; empty where they name none."""
    found = labels.get(ACCOUNT_NAMESPACE), labels.get(ACCOUNT_NAME)
    return "/".join(map(str, found)) if all(found) else ""


def labels_of(account: str) -> dict[str, str]:
    """Write an account as labels; none for Bellhop's own rights."""
    namespace, _, name = account.partition("/")
    return {ACCOUNT_NAME: name, ACCOUNT_NAMESPACE: namespace} if account else {}


def mistakes(manifest: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Find what is wrong with the labels that name an account.

    Only one of them would have all rights count where somebody meant to limit them.
    """
    metadata = manifest.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    if not isinstance(labels, Mapping):
        return
    for label, (other, problem_of) in _BOTH.items():
        value = labels.get(label)
        if label not in labels or not isinstance(value, str | None):
            continue
        if not labels.get(other):
            yield _at(label), f"it says whose rights count together with {other}; write both"
        elif problem := problem_of(value or ""):
            yield _at(label), f"it names no service account: {problem}"


def _at(label: str) -> Path:
    return "metadata", "labels", label
