"""What features of profiles are deployed by beside API servers, as far as a process has it."""

from __future__ import annotations

from typing import NamedTuple

from bellhop.ports.charts import Helm
from bellhop.ports.files import Files
from bellhop.ports.kustomize import Kustomizations


class Tools(NamedTuple):
    """What deploys charts, builds kustomizations and downloads files.

    Without one of them a profile that needs it says so.
    """

    helm: Helm | None = None
    kustomizations: Kustomizations | None = None
    files: Files | None = None


NONE = Tools()
