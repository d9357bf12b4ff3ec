"""What the processes of the demo are given."""

from __future__ import annotations

from pathlib import Path

from bellhop.adapters.programs.layer import download
from bellhop.adapters.programs.program import HELM
from infra.demo.stand import Stand
from infra.lab.processes import Nursery


def test_the_stand_has_the_helm_of_its_user(tmp_path: Path) -> None:
    """It has a cache of its own, in which no program lies."""
    download()
    with Nursery() as nursery:
        environment = Stand(tmp_path / "stand", nursery).environment

    assert environment[HELM.variable] == str(HELM.find())
    assert HELM.find(environment) == HELM.find()
