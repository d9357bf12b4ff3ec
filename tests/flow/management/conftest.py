"""The pair of servers that suites of Sveltos expect, for all scenarios of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from infra.lab.binaries import Binaries
from infra.lab.management import run_management
from tests.flow.management.suite import Client, Suite


@pytest.fixture(scope="session")
def suite(
    tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries
) -> Iterator[Suite]:
    """One installation; nothing is reset between scenarios."""
    if control_plane_binaries.controller_manager is None:
        pytest.skip("there is no controller manager")
    with run_management(tmp_path_factory.mktemp("management")) as pair:
        hub, workload = (
            Client(yaml.safe_load(path.read_text())) for path in (pair.hub, pair.workload)
        )
        one = Suite(hub, workload)
        one.prepare()
        yield one
        hub.close()
        workload.close()
