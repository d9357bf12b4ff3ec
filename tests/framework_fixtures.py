"""Sources of Google's functions, laid out once in a run, and what they require."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.package.build import STAGES
from infra.package.sources import lay_out
from tests.lab.frameworks import install
from tests.once import make_once


@pytest.fixture(scope="session")
def google_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sources of all stages, as `make package` lays them out."""
    return make_once(tmp_path_factory, "sources", lay_out)


@pytest.fixture(scope="session")
def google_installed(google_sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what each stage requires, installed apart."""
    folder = tmp_path_factory.mktemp("installed")
    for stage in STAGES:
        install(google_sources / stage, folder / stage)
    return folder
