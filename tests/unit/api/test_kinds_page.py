"""The reference page of the kinds lists every field, and says truly what works."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.api.fields import paths_of
from bellhop.api.kinds import KINDS, parse
from bellhop.api.unsupported import NOT_YET
from bellhop.core.sveltos_annotations import MARKS
from bellhop.documents.document import read_documents

PAGE = (Path(__file__).parents[3] / "docs/reference/kinds.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
ADDONS = SECTIONS["Add-ons"]
ADDING = {"EventTrigger", "EventBasedAddOn", "ClusterProfile", "Profile"}
TITLES = {
    "EventSource": "EventSource",
    "EventTrigger": "EventTrigger and EventBasedAddOn",
    "EventBasedAddOn": "EventTrigger and EventBasedAddOn",
    "ClusterProfile": "ClusterProfile",
    "Profile": "Profile",
    "ClusterPromotion": "ClusterPromotion",
    "ClusterSet": "ClusterSet",
    "Set": "Set",
    "Classifier": "Classifier",
    "ClusterHealthCheck": "ClusterHealthCheck",
    "HealthCheck": "HealthCheck",
    "RoleRequest": "RoleRequest",
    "ConfigMap": "ConfigMap",
    "Secret": "Secret",
}


def rows(text: str) -> dict[str, list[str]]:
    """Give the cells of every table row that begins with a field."""
    return dict(each_row(text))


def each_row(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows, of which several may begin alike."""
    for fields, cells in re.findall(r"^\| (`[^|]*`) \| (.*) \|$", text, re.MULTILINE):
        for field in re.findall("`([^`]*)`", fields):
            yield field, cells.split(" | ")


def fields(kind: str) -> dict[str, list[str]]:
    """Give the rows of a kind's fields, those of add-ons included."""
    found = rows(SECTIONS[TITLES[kind]])
    own = {field: cells for field, cells in found.items() if len(cells) > 2}
    return own if kind not in ADDING else own | rows(ADDONS)


LIKE = {
    "spec.profileSpec": "spec",
    "spec.stages[].clusterSelector": "spec.clusterSelector",
    **{
        f"spec.stages[].trigger.{trigger}.{field}": place
        for trigger in ("auto", "manual")
        for field, place in {
            "preHealthCheckDeployment[]": "spec.policyRefs[]",
            "postDelayHealthChecks[]": "spec.validateHealths[]",
        }.items()
    },
}
"""The page says of these parts of a promotion that they are as those."""


def place_of(path: str) -> str:
    """Return the place on the page of a field that is like one of another kind."""
    for head, place in LIKE.items():
        if path.startswith(f"{head}."):
            return place + path.removeprefix(head)
    return path


def parts() -> set[str]:
    """Give the paths that the list of nested fields spells out."""
    lines = re.findall(r"^- (`[^:]*): (.*)$", SECTIONS["Nested fields"], re.MULTILINE)
    ticked = [
        (re.findall("`([^`]*)`", heads), re.findall("`([^`]*)`", said)) for heads, said in lines
    ]
    return {f"{head}.{field}" for heads, said in ticked for head in heads for field in said}


@pytest.mark.parametrize("kind", TITLES)
def test_lists_every_field(kind: str) -> None:
    """A field that the model has is in a table or in the list of nested fields."""
    known = fields(kind).keys() | parts()
    if kind == "ClusterPromotion":
        known |= fields("ClusterProfile").keys()
        paths = [path for path in paths_of(KINDS[kind][0]) if path not in known]
        assert [path for path in paths if place_of(path) not in known] == []
        return

    assert [path for path in paths_of(KINDS[kind][0]) if path not in known] == []


@pytest.mark.parametrize("kind", TITLES)
def test_lists_no_field_that_is_not_there(kind: str) -> None:
    """A field in the tables is one that the model has."""
    assert fields(kind).keys() <= set(paths_of(KINDS[kind][0]))


@pytest.mark.parametrize("kind", TITLES)
def test_says_what_works(kind: str) -> None:
    """A field is marked as working exactly when it is not refused as a whole."""
    documented = {field: cells[1] for field, cells in fields(kind).items()}

    assert documented == {
        field: "not yet" if field in NOT_YET[kind] else "yes" for field in documented
    }


def test_repeats_every_refusal() -> None:
    """The last table has each field, its kinds and the very sentence users meet."""
    table = {
        (field, kind, cells[1])
        for field, cells in rows(SECTIONS["Unsupported fields"]).items()
        for kind in cells[0].split(", ")
    }

    assert table == {
        (place, kind, sentence)
        for kind, places in NOT_YET.items()
        for place, sentence in places.items()
        if kind not in {"EventBasedAddOn", "Profile", "ClusterPromotion"}
    }


@pytest.mark.parametrize("kind", KINDS)
def test_names_every_kind_and_version(kind: str) -> None:
    """The first table has every kind with the versions it is read in."""
    (line,) = re.findall(rf"^\| \[{kind}\].*$", PAGE, re.MULTILINE)

    assert [version for version in KINDS[kind][1] if f"`{version}`" not in line] == []


@pytest.mark.parametrize(
    "example", re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
)
def test_shows_manifests_that_can_be_read(example: str) -> None:
    """Each example is a manifest without a mistake."""
    (document,) = read_documents(example, source="kinds.md")

    assert parse(document).name


def test_lists_every_mark() -> None:
    """The table of marks has each mark, where it stands, and whether it works."""
    documented = {
        (mark, kind, cells[1])
        for mark, cells in each_row(
            PAGE[PAGE.index("### Labels and annotations") : PAGE.index("### Selectors")]
        )
        for kind in cells[0].split(", ")
        if kind in TITLES
    }
    misplaced = ("it belongs", "it pauses")

    assert documented == {
        *((mark, kind, "yes") for mark, each in MARKS.items() for kind in each.honoured),
        *(
            (mark, kind, "not yet")
            for mark, each in MARKS.items()
            for kind, said in each.refused.items()
            if not said.startswith(misplaced)
        ),
    }
