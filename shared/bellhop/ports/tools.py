"""The programs that features of profiles are deployed by, as far as a process has them."""

from __future__ import annotations

from typing import NamedTuple

from bellhop.ports.charts import Helm
from bellhop.ports.kustomize import Kustomizations


class Tools(NamedTuple):
    """What deploys charts and builds kustomizations; without one of them a profile says so."""

    helm: Helm | None = None
    kustomizations: Kustomizations | None = None


NONE = Tools()
