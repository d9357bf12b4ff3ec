"""Texts of a release are read where no clone is: their links are URLs, and its notes its own."""

from __future__ import annotations

import tomllib
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from infra.release.checkout import Checkout, check_out, repository_url
from infra.release.distribution import distribution
from infra.release.notes import notes
from infra.release.pages import link_to_repository, name_repository
from tests.infra.release_files import clean_checkout, git

ROOT = Path(__file__).parents[2]
URL = "https://git.example.com/we/bellhop"
HERE = Checkout(root=ROOT, version="1.2.3", time=0, tagged=True, url=URL)


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("https://git.example.com/we/bellhop.git\n", URL),
        ("https://git.example.com/we/bellhop", URL),
        ("git@git.example.com:we/bellhop.git", URL),
        ("ssh://git@git.example.com/we/bellhop.git", URL),
        ("https://me:secret@git.example.com/we/bellhop.git", ""),
        ("/srv/git/bellhop", ""),
        ("", ""),
    ],
)
def test_the_page_of_a_repository_is_read_from_its_remote(remote: str, url: str) -> None:
    """Of a remote that is a folder, or that has a login, none is."""
    assert repository_url(remote) == url


def test_relative_links_become_urls_of_the_tag() -> None:
    """Pictures are linked as files; addresses and headings stay as they are."""
    text = "![a](docs/a.svg) [b](docs/b.md#c) [d](https://d.example) [e](#e) [f][g]"

    assert link_to_repository(text, HERE) == (
        f"![a]({URL}/raw/v1.2.3/docs/a.svg) [b]({URL}/blob/v1.2.3/docs/b.md#c)"
        " [d](https://d.example) [e](#e) [f][g]"
    )


def test_the_project_names_its_repository() -> None:
    """PyPI shows both addresses beside the README."""
    found = tomllib.loads(name_repository((ROOT / "pyproject.toml").read_text(), HERE))

    assert found["project"]["urls"] == {
        "Repository": URL,
        "Documentation": f"{URL}/blob/v1.2.3/docs/index.md",
    }


def test_the_wheel_names_no_path_of_a_clone(tmp_path: Path) -> None:
    """What pip and PyPI show of it has URLs only."""
    folder = clean_checkout(tmp_path)
    git(folder, "remote", "add", "origin", f"{URL}.git")
    files = distribution(check_out(folder))
    (wheel,) = [content for name, content in files.items() if name.endswith(".whl")]
    with zipfile.ZipFile(BytesIO(wheel)) as opened:
        (name,) = [each for each in opened.namelist() if each.endswith("/METADATA")]
        text = opened.read(name).decode()

    assert f"Project-URL: Repository, {URL}\n" in text
    assert f"]({URL}/blob/v" in text
    assert "](docs/" not in text


def test_the_first_release_has_no_changes_of_what_nobody_had(tmp_path: Path) -> None:
    """Later ones list what changed since the one before."""
    section = "\n\n### Added\n\n- [One](docs/one.md).\n\n### Fixed\n\n- Two.\n"
    changelog = tmp_path / "CHANGELOG.md"
    first = Checkout(root=tmp_path, version="1.2.3", time=0, tagged=False, url=URL)

    changelog.write_text(f"# Changelog\n\n## Unreleased{section}")
    assert notes(first) == (
        "# Bellhop 1.2.3\n\nThe first release.\n\n### Added\n\n"
        f"- [One]({URL}/blob/v1.2.3/docs/one.md).\n"
    )
    changelog.write_text(f"# Changelog\n\n## Unreleased{section}\n## 0.1.0\n\n- Old.\n")
    assert "- Two." in notes(first)
