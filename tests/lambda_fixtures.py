"""Lambda for tests: functions run from zips by the Python that Lambda has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.errors import MissingError
from infra.lab.lambdas import Lambdas
from infra.package.build import STAGES, build
from infra.package.interpreter import find_interpreter
from infra.package.parts import LAYERS
from infra.package.programs import ARCHITECTURE
from infra.package.wheels import machine_architecture


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
def packages(interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:  # noqa: ARG001
    """The zips of all stages for the architecture of this machine, by stage; layers lie beside.

    The first test that wants them waits until all are built, and what is in them is compiled.
    """
    here = machine_architecture()
    made = build(tmp_path_factory.mktemp("packages"), layers=LAYERS, architectures=[here])
    return {stage: made[f"{stage}-{here}.zip"] for stage in STAGES}


@pytest.fixture(scope="session")
def cel_layer(packages: dict[str, Path]) -> Path:
    """The zip of the layer that brings CEL."""
    return packages["evaluate"].with_name(f"layer-cel-{machine_architecture()}.zip")


@pytest.fixture(scope="session")
def helm_layer(packages: dict[str, Path]) -> Path:
    """The zip of the layer that brings Helm; there is none for another architecture."""
    here = machine_architecture()
    if here != ARCHITECTURE:
        reason = f"there is no Helm for {here}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return packages["charts"].with_name(f"layer-helm-{here}.zip")


@pytest.fixture
def lambdas(interpreter: Path, tmp_path: Path) -> Iterator[Lambdas]:  # noqa: ARG001 - it is there
    """Functions that nobody else has."""
    with Lambdas(tmp_path / "lambdas") as lambdas:
        yield lambdas
