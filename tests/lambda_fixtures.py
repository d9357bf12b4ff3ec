"""Lambda for tests: functions run from zips by the Python that Lambda has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bellhop.errors import MissingError
from infra.lab.lambdas import Lambdas
from infra.package.build import STAGES, build
from infra.package.interpreter import find_interpreter, machine_architecture
from infra.package.programs import ARCHITECTURE


@pytest.fixture(scope="session")
def interpreter() -> Path:
    """Lambda's Python; without it a test is skipped locally and fails in CI."""
    try:
        return find_interpreter()
    except MissingError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def built(interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:  # noqa: ARG001
    """The zips for the architecture of this machine, by their names without the build ID.

    The first test that wants them waits until they are built, and what is in them is compiled.
    """
    return build(tmp_path_factory.mktemp("packages"), architectures=[machine_architecture()])


@pytest.fixture(scope="session")
def packages(built: Mapping[str, Path]) -> dict[str, Path]:
    """The zip of each stage, which is the same for all."""
    return dict.fromkeys(STAGES, built[f"functions-{machine_architecture()}"])


@pytest.fixture(scope="session")
def cel_layer(built: Mapping[str, Path]) -> Path:
    """The zip of the layer that brings CEL."""
    return built[f"layer-cel-{machine_architecture()}"]


@pytest.fixture(scope="session")
def helm_layer(built: Mapping[str, Path]) -> Path:
    """The zip of the layer that brings Helm; there is none for another architecture."""
    here = machine_architecture()
    if here != ARCHITECTURE:
        reason = f"there is no Helm for {here}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return built[f"layer-helm-{here}"]


@pytest.fixture
def lambdas(interpreter: Path, tmp_path: Path) -> Iterator[Lambdas]:  # noqa: ARG001 - it is there
    """Functions that nobody else has."""
    with Lambdas(tmp_path / "lambdas") as lambdas:
        yield lambdas
