"""Helm of the machine that a command runs on, for what it previews of charts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.adapters.programs.layer import download
from bellhop.adapters.programs.program import cache
from bellhop.ports.charts import DesiredRelease
from bellhop.state.chart import Place
from tests.cli.conftest import House
from tests.fakes.chart import packed, repository


def test_a_command_has_the_helm_of_its_machine(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the installation is; what is downloaded for one in a cloud lies in our cache."""
    monkeypatch.setenv("BELLHOP_HELM", str(download() / "helm"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    helm = house.here.tools.helm
    assert helm
    with repository(packed(tmp_path)) as site:
        archive = helm.repositories.find(Place(site.address, "demo"))
    rendered = helm.charts.render(DesiredRelease("web", "apps", archive.path))

    assert "name: web-config" in rendered
    state = house.context.state if house.context.kind == "embedded" else cache()
    assert archive.path.parent == state / "charts"
