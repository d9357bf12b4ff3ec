"""Applies the definitions that a chart brings: Helm installs them, and changes none of them.

An API server publishes a changed schema some seconds later, and Helm checks objects by what is
published. So what Helm refuses right after a change of definitions is tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from bellhop.core.gvk import ObjectKey
from bellhop.deploy.features.charts.release_objects import documents
from bellhop.errors import InvalidError, TemporaryError
from bellhop.ports.charts import Helm, Wanted
from bellhop.ports.kube import Kube

_DEFINITION = "CustomResourceDefinition"
_SOON = timedelta(seconds=3)


def define(kube: Kube, helm: Helm, wanted: Wanted) -> bool:
    """Apply the definitions of a chart; return whether that changed any of them."""
    changed = False
    for each in documents(helm.charts.definitions(wanted)):
        if each["kind"] == _DEFINITION:
            before = kube.get(*ObjectKey.of(each)) or {"metadata": {}}
            now = kube.apply(each)
            versions = [there["metadata"].get("resourceVersion") for there in (before, now)]
            changed = changed or versions[0] != versions[1]
    return changed


@contextmanager
def settling(*, changed: bool) -> Iterator[None]:
    """Have a refusal tried again soon if definitions were just changed.

    Raises:
        TemporaryError: in place of an InvalidError.
    """
    try:
        yield
    except InvalidError as error:
        if not changed:
            raise
        raise TemporaryError(
            f"{error}; it is tried again, since the definitions of the chart were just changed",
            delay=_SOON,
        ) from error
