"""The one part of the official Kubernetes client that a stage needs, without the rest of it.

Every import from `kubernetes` runs its `__init__`, which loads a thousand modules of models and
API classes: 0.32 s and 44 MB with compiled files, 1.6 s without (Python 3.11, kubernetes 36.0.3),
against 0.1 s for its REST client alone; a cold deploy stage has half a second for everything.
Manifests are plain JSON here, so no model is ever used.

The packages' own files are therefore skipped while the REST client loads, and everything is
taken out of `sys.modules` again: whoever imports `kubernetes` later gets the whole of it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from functools import cache
from pathlib import Path
from types import ModuleType

_ROOT = "kubernetes"
_loading = threading.Lock()


def rest() -> ModuleType:
    """Load `kubernetes.client.rest`; it also has the exceptions that it raises."""
    with _loading:  # `cache` alone would let two threads load it side by side.
        return _rest()


@cache
def _rest() -> ModuleType:
    name = f"{_ROOT}.client.rest"
    if _ROOT in sys.modules:
        return importlib.import_module(name)
    spec = importlib.util.find_spec(_ROOT)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the package 'kubernetes' is not installed", name=_ROOT)
    folder = Path(spec.submodule_search_locations[0])
    try:
        sys.modules[_ROOT] = _hollow(_ROOT, folder)
        sys.modules[f"{_ROOT}.client"] = _hollow(f"{_ROOT}.client", folder / "client")
        return importlib.import_module(name)
    finally:
        for loaded in [m for m in sys.modules if m == _ROOT or m.startswith(f"{_ROOT}.")]:
            del sys.modules[loaded]


def _hollow(name: str, folder: Path) -> ModuleType:
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    return package
