"""The tools of the function `charts`: Helm, kubectl, and a cache of archives in `/tmp`.

Terraform sets the environment that is read here:

    BELLHOP_HELM        where Helm is, in the function's layer or beside its sources
    BELLHOP_KUBECTL     where kubectl is, in the function's layer or beside its sources
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bellhop.adapters.kustomize.kustomizations import KubectlKustomizations
from bellhop.adapters.programs.program import HELM, KUBECTL, Program
from bellhop.ports.tools import Tools
from bellhop.runtime import helm as charts
from bellhop.runtime.cloud.reconciler import LateDownloads
from bellhop.runtime.cloud.resources import Resources

_MOST_BYTES = 64 << 20
"""Archives in the cache: on Cloud Run `/tmp` is memory."""


def tools(here: Resources, environ: Mapping[str, str] = os.environ) -> Tools:
    """Return the tools that deploy charts and kustomizations."""
    for program in (HELM, KUBECTL):
        _make_executable(program, environ)
    folder, clock = Path(tempfile.gettempdir()) / "charts", here.records.clock
    helm = charts.helm(folder, here.reach, here.settings, clock, _MOST_BYTES)
    return Tools(helm, KubectlKustomizations(), LateDownloads(here.contents, clock))


def _make_executable(program: Program, environ: Mapping[str, str]) -> None:
    """Let a program be run where a builder unpacked it from sources without its mode."""
    place = Path(environ.get(program.variable, ""))
    if place.is_file() and not os.access(place, os.X_OK):
        place.chmod(0o755)
