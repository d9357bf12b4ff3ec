"""What `.helmignore` keeps out of a chart, as Helm's own tests and documents have it."""

from __future__ import annotations

import pytest

from bellhop.adapters.sources.charts.archive import without_ignored
from bellhop.errors import TooLargeError

FILES = (
    "Chart.yaml",
    "a.txt",
    "cargo/a.txt",
    "cargo/deep/a.txt",
    "docs/b.txt",
    "templates/web.yaml",
    "templates/web.yaml.bak",
)


@pytest.mark.parametrize(
    ("line", "ignored"),
    [
        ("", set()),
        ("# a.txt", set()),
        ("a.txt", {"a.txt", "cargo/a.txt", "cargo/deep/a.txt"}),
        ("/a.txt", {"a.txt"}),
        ("cargo/*.txt", {"cargo/a.txt"}),
        ("docs/", {"docs/b.txt"}),
        ("docs", {"docs/b.txt"}),
        ("a.txt/", set()),
        ("  *.bak  ", {"templates/web.yaml.bak"}),
        ("?.txt", {"a.txt", "cargo/a.txt", "cargo/deep/a.txt", "docs/b.txt"}),
        ("cargo/[a-c].txt\r\n\ndocs/b.txt", {"cargo/a.txt", "docs/b.txt"}),
    ],
)
def test_a_line_ignores_files(line: str, ignored: set[str]) -> None:
    files = {**dict.fromkeys(FILES, b""), ".helmignore": line.encode()}
    assert set(files) - set(without_ignored(files)) == ignored


def test_hidden_files_are_no_templates() -> None:
    """Helm ignores them by itself."""
    files = dict.fromkeys(("Chart.yaml", ".git", "templates/.web.yaml.swp"), b"")
    assert list(without_ignored(files)) == ["Chart.yaml", ".git"]


def test_more_lines_than_are_compared_with_all_files_are_refused() -> None:
    """Each line is compared with each file: both together are bounded."""
    files = dict.fromkeys((f"files/{n}" for n in range(10_000)), b"")
    files[".helmignore"] = "\n".join(f"*{n}.bak" for n in range(30_000)).encode()
    with pytest.raises(TooLargeError, match="30,001 lines for 10,001 files; shorten it"):
        without_ignored(files)
