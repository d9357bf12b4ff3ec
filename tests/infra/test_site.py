"""The documentation as a site: it builds without a warning, links lead somewhere, search finds."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.timeout(600)  # Sphinx reads eighty pages before the first test.

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if given.get("id"):
            self.anchors.add(str(given["id"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it."""
    built = tmp_path_factory.mktemp("site")
    make = (ROOT / "Makefile").read_text()
    [options] = re.findall(r"-m sphinx (.+) dist/site$", make, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options.split(), built],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return built


def test_every_page_is_there_and_in_the_menu_if_the_index_lists_it(site: Path) -> None:
    """The index itself has the menu of all it lists."""
    pages = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    listed = re.findall(
        r"^- \[[^]]+\]\(([\w/.-]+)\.md\)", (ROOT / "docs/index.md").read_text(), re.MULTILINE
    )
    menu = re.findall(r'class="reference internal" href="([^"#]+)"', _menu(site))

    assert [each for each in pages if not (site / each.with_suffix(".html")).is_file()] == []
    assert len(listed) > 50
    assert {f"{each}.html" for each in listed} <= set(menu)


def _menu(site: Path) -> str:
    return (site / "docs/index.html").read_text()


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    """To a page or file that is there, and to an anchor of it."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else set()
            if not target.exists() or (parts.fragment and parts.fragment not in anchors):
                lost.append(f"{path.relative_to(site)}: {link}")

    assert lost == []


def test_examples_can_be_read(site: Path) -> None:
    """A folder that a page links to is a page with its files."""
    links = Page(site / "docs/reference/kinds.html").links
    linked = [each for each in links if "docs-examples" in each]

    assert linked
    page = (site / "docs/reference" / linked[0]).read_text()
    assert "apiVersion" in page


def test_search_knows_what_pages_say(site: Path) -> None:
    """Its index is of words, and needs no server."""
    index = (site / "searchindex.js").read_text()

    assert "kubeconfig" in index
    assert (site / "search.html").is_file()
    assert "docs/index.html" in (site / "index.html").read_text()
