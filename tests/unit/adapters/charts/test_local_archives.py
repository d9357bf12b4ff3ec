"""Charts in archives that a user names: found by name and version, and checked as others are."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.adapters.sources.charts.local_archives import LocalArchives
from bellhop.errors import InvalidError, MissingError
from bellhop.state.chart import Place
from tests.fakes.chart import packed
from tests.fakes.charts import FakeRepositories

REPOSITORY = "https://charts.example.com"


@pytest.fixture
def local(tmp_path: Path) -> LocalArchives:
    """Two versions of one chart."""
    paths = [packed(tmp_path, version=each) for each in ("1.0.0", "1.2.0")]
    folder = tmp_path / "checked"
    folder.mkdir()
    return LocalArchives(map(str, paths), folder)


@pytest.mark.parametrize(
    ("place", "version"),
    [
        pytest.param(Place(REPOSITORY, "demo"), "1.2.0", id="newest"),
        pytest.param(Place(REPOSITORY, "demo", "1.0.0"), "1.0.0", id="exact"),
        pytest.param(Place(REPOSITORY, "demo", "<1.2"), "1.0.0", id="range"),
        pytest.param(Place("oci://r.example.com/charts/demo", ""), "1.2.0", id="in the address"),
        pytest.param(Place("oci://r.example.com", "charts/demo"), "1.2.0", id="below a path"),
    ],
)
def test_a_chart_is_found_wherever_it_is_from(
    local: LocalArchives, place: Place, version: str
) -> None:
    found = local.find(place)

    assert (found.chart, found.version) == ("demo", version)
    assert found.path.parent.name == "checked"
    assert local.versions(place) == ["1.2.0", "1.0.0"]


def test_what_is_in_no_archive_is_said(local: LocalArchives) -> None:
    with pytest.raises(MissingError, match="cannot render chart 'web': it is in no archive; name"):
        local.find(Place(REPOSITORY, "web"))
    with pytest.raises(MissingError, match=r"cannot find version '2\.0\.0' of chart 'demo' among"):
        local.find(Place(REPOSITORY, "demo", "2.0.0"))


def test_others_are_asked_for_what_is_in_no_archive(tmp_path: Path) -> None:
    others = FakeRepositories(tmp_path)
    others.put("web", "3.0.0")
    local = LocalArchives([str(packed(tmp_path))], tmp_path, others)

    assert local.find(Place(REPOSITORY, "web")).version == "3.0.0"
    assert local.find(Place(REPOSITORY, "demo")).version == "1.0.0"
    assert [each.chart for each in others.found] == ["web"]


def test_what_is_no_chart_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tgz").write_bytes(b"no archive")
    for name, said in (("a.tgz", "cannot take the archive"), ("none", "cannot read")):
        with pytest.raises(InvalidError, match=said):
            LocalArchives([str(tmp_path / name)], tmp_path)
