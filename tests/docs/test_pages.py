"""The pages keep what they say: links lead somewhere, and every name has its row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bellhop import errors
from bellhop.api.kinds import parse_all, read_documents

ROOT = Path(__file__).parents[2]
FULL = re.DOTALL | re.MULTILINE
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """A link within the project names a file that is there, and a heading in it."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page

        assert found.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(found), f"{page.name} links to {target}"


MANIFESTS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)} {number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```yaml[^\n]*\n(.*?)^```", page.read_text(), FULL))
    # Registered, not applied.
    if "projectsveltos.io/v1" in block and "kind: SveltosCluster" not in block
]


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_every_manifest_can_be_applied(manifest: str) -> None:
    """What a reader copies from a page is none that is refused."""
    assert parse_all(read_documents(manifest, source="page.yaml"))


def test_every_error_has_its_row() -> None:
    """The page names each code that a user can meet."""
    page = (ROOT / "docs/reference/errors.md").read_text()
    kinds = [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, errors.BellhopError)
    ]
    abstract = {errors.BellhopError, errors.PermanentError, errors.TemporaryError}
    missing = [each.code for each in kinds if f"`{each.code}`" not in page and each not in abstract]

    assert missing == []
