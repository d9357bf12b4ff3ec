"""The examples show each form that an EventSource has, and each of them is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.api.fields import choices_of, field_at, paths_of
from bellhop.api.kinds import KINDS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples"
SOURCE = KINDS["EventSource"][0]
NOT_APPLIED = {"configuration-cluster", "monitoring"}
"""Files for other programs: the tests of their pages read them."""

FLAT, LISTED = "spec.", "spec.resourceSelectors[]."


def sources() -> list[Mapping[str, Any]]:
    """Return the EventSources of all examples, as they are written."""
    files = sorted(EXAMPLES.rglob("*.yaml"))
    documents = [each for file in files for each in yaml.safe_load_all(file.read_text())]
    return [each for each in documents if each.get("kind") == "EventSource"]


def written(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each field that a document has, as the model names paths."""
    if isinstance(value, dict):
        for name, each in value.items():
            place = f"{path}.{name}".lstrip(".")
            yield place, each
            yield from written(each, place)
    if isinstance(value, list):
        for each in value:
            yield from written(each, f"{path}[]")


def plain(path: str) -> str:
    """Name a field that selects by one path, in whichever of the two forms it stands."""
    return path.replace(LISTED, FLAT).replace("labelsFilters", "labelFilters")


SHOWN = [(path, value) for each in sources() for path, value in written(each)]


FIELDS = [path for path in paths_of(SOURCE) if path.startswith("spec.")]


@pytest.mark.parametrize("path", sorted({plain(path) for path in FIELDS}))
def test_an_example_has_each_field_of_a_source(path: str) -> None:
    """A field that the model gets is shown, in one of the two forms."""
    assert path in {plain(each) for each, _ in SHOWN}


def _annotation(path: str) -> Any:
    found = field_at(SOURCE, tuple(path.replace("[]", "").split(".")))
    assert found
    return found.annotation


@pytest.mark.parametrize("path", [path for path in FIELDS if choices_of(_annotation(path))])
def test_an_example_has_each_word_of_a_choice(path: str) -> None:
    """Of labels each operation is shown, and of selectors each operator."""
    words = {value for each, value in SHOWN if plain(each) == plain(path)}

    assert words == set(choices_of(_annotation(path)))


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        pytest.param("v1alpha1", {"kind", "script", "namespace"}, id="the first, flat"),
        pytest.param("v1alpha1", {"kind", "labelFilters"}, id="flat, by labels"),
        pytest.param("v1alpha1", {"kind", "labelsFilters"}, id="as old pages spell it"),
        pytest.param("v1alpha1", {"resourceSelectors"}, id="the later one"),
        pytest.param("v1beta1", {"resourceSelectors"}, id="the present one"),
        pytest.param("v1beta1", {"messagingMatchCriteria"}, id="of messages alone"),
    ],
)
def test_an_example_has_each_form_of_each_era(version: str, fields: set[str]) -> None:
    """What anybody has written since the first release is there to look at."""
    found = [each for each in sources() if each["apiVersion"].endswith(f"/{version}")]

    assert [each for each in found if fields <= each["spec"].keys()] != []


def test_an_example_shows_a_whole_report() -> None:
    """It has all that Sveltos' EventReports say."""
    report = yaml.safe_load((EXAMPLES / "report/shown/eventreport.yaml").read_text())

    assert {path for path, _ in written(report) if path.count(".") == 1} >= {
        *(f"spec.cluster{each}" for each in ("Name", "Namespace", "Type")),
        *("spec.eventSourceName", "spec.matchingResources", "spec.resources", "spec.cloudEvents"),
        *("status.phase", "status.failureMessage", "status.agentFailureMessage", "status.sweptAt"),
    }


@pytest.mark.parametrize("name", sorted({each.name for each in EXAMPLES.iterdir()} - NOT_APPLIED))
def test_each_example_is_run(name: str) -> None:
    """A test applies it between real API servers."""
    files = [*(ROOT / "tests/flow").glob("test_*.py"), ROOT / "tests/scenarios.py"]
    tests = "\n".join(each.read_text() for each in files)

    assert re.search(rf'"{re.escape(name)}"', tests)


def test_the_page_lists_each_example() -> None:
    """A reader finds each by what it is for."""
    page = (ROOT / "docs/reference/examples.md").read_text()

    listed = re.findall(r"\(\.\./examples/([a-z-]+)\)", page)
    assert sorted(listed) == sorted(each.name for each in EXAMPLES.iterdir())
