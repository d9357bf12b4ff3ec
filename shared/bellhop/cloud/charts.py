"""What deploys charts in a function: the Helm of its package or layer, and a cache in `/tmp`.

Terraform sets the environment that is read here:

    BELLHOP_HELM        where Helm is, in the function's layer or beside its sources
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bellhop.cloud.resources import Resources
from bellhop.fleet import charts
from bellhop.ports.charts import Helm
from bellhop.programs.program import HELM

_MOST_BYTES = 64 << 20
"""Archives in the cache: on Cloud Run `/tmp` is memory."""


def helm(here: Resources, environ: Mapping[str, str] = os.environ) -> Helm:
    """Return what deploys charts in a function."""
    _make_executable(environ)
    folder = Path(tempfile.gettempdir()) / "charts"
    return charts.helm(folder, here.reach, here.settings, here.records.clock, _MOST_BYTES)


def _make_executable(environ: Mapping[str, str]) -> None:
    """Let Helm be run where a builder unpacked it from sources without its mode."""
    program = Path(environ.get(HELM.variable, ""))
    if program.is_file() and not os.access(program, os.X_OK):
        program.chmod(0o755)
