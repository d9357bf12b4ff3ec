"""Lambda for tests: functions run from zips by the Python that Lambda has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from infra.package.build import STAGES, build
from infra.package.interpreter import find_interpreter, machine_architecture
from infra.package.programs import ARCHITECTURE
from tests.lab.lambdas import Lambdas
from tests.missing import missing, required
from tests.once import make_once


@pytest.fixture(scope="session")
def interpreter() -> Path:
    """Lambda's Python."""
    with required():
        return find_interpreter()


@pytest.fixture(scope="session")
def built(interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:  # noqa: ARG001
    """The zips for the architecture of this machine, by their names without the build ID.

    The first test of a run that needs them waits until they are built, and what is in them is
    compiled.
    """
    here = [machine_architecture()]
    folder = make_once(tmp_path_factory, "packages", partial(build, architectures=here))
    return {each.name.rpartition("-")[0]: each for each in folder.glob("*.zip")}


@pytest.fixture(scope="session")
def packages(built: Mapping[str, Path]) -> dict[str, Path]:
    """The zip of each stage, which is the same for all."""
    return dict.fromkeys(STAGES, built[f"functions-{machine_architecture()}"])


@pytest.fixture(scope="session")
def cel_layer(built: Mapping[str, Path]) -> Path:
    """The zip of the layer that has CEL."""
    return built[f"layer-cel-{machine_architecture()}"]


@pytest.fixture(scope="session")
def helm_layer(built: Mapping[str, Path]) -> Path:
    """The zip of the layer that has Helm; there is none for another architecture."""
    here = machine_architecture()
    if here != ARCHITECTURE:
        missing(f"there is no Helm for {here}")
    return built[f"layer-helm-{here}"]


@pytest.fixture
def lambdas(interpreter: Path, tmp_path: Path) -> Iterator[Lambdas]:  # noqa: ARG001 - it is there
    """Functions that nobody else has."""
    with Lambdas(tmp_path / "lambdas") as lambdas:
        yield lambdas
