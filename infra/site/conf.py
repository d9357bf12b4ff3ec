"""The documentation as a site: Sphinx reads the Markdown as GitHub does, and checks each link.

The index makes the menu. A folder that a page links to becomes a page with the folder's files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

project = "Bellhop"
html_title = "Bellhop"
html_theme = "furo"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_extra_path = ["root"]
extensions = ["myst_parser"]
myst_heading_anchors = 4
root_doc = "docs/index"
_FOLDERS = "build/site"
include_patterns = ["*.md", "docs/**", "terraform/**/README.md", f"{_FOLDERS}/**"]
suppress_warnings = [
    "misc.highlighting_failure",  # Templates of YAML are no YAML.
    "myst.header",
    "toc.not_included",  # The menu is what the index lists.
]

_SECTION = re.compile(r"^##+ (.+)$", re.MULTILINE)
_PAGE = re.compile(r"^- \[[^]]+\]\(([\w/.-]+)\.md\)", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()([\w./-]+)(?=\))")


def setup(app: Sphinx) -> None:
    """Generate the pages of folders, then change each page's text as it is read."""
    app.connect("builder-inited", _write_folders)
    app.connect("source-read", _link_folders)
    app.connect("source-read", _add_menu)


def _write_folders(app: Sphinx) -> None:
    root = Path(app.srcdir)
    for folder in {each for page in _pages(root) for each in _folders(page, page.read_text())}:
        target = _page_of(root, folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = [f"# {folder.relative_to(root)}\n"]
        for path in sorted(each for each in folder.rglob("*") if each.suffix in _LANGUAGES):
            shown = os.path.relpath(path, target.parent)
            text.append(
                f"## {path.relative_to(folder)}\n\n```{{literalinclude}} {shown}\n"
                f":language: {_LANGUAGES[path.suffix]}\n```\n"
            )
        target.write_text("\n".join(text))


_LANGUAGES = {".yaml": "yaml", ".json": "json", ".lua": "lua", ".tf": "terraform", ".py": "python"}


def _pages(root: Path) -> list[Path]:
    return [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("terraform/**/README.md")]


def _folders(page: Path, text: str) -> list[Path]:
    targets = ((page.parent / each).resolve() for each in _LINK.findall(text))
    return [each for each in targets if each.is_dir()]


def _page_of(root: Path, folder: Path) -> Path:
    return root / _FOLDERS / f"{'-'.join(folder.relative_to(root).parts)}.md"


def _link_folders(app: Sphinx, name: str, source: list[str]) -> None:
    root, page = Path(app.srcdir), Path(app.env.doc2path(name))

    def replaced(link: re.Match[str]) -> str:
        folder = (page.parent / link[0]).resolve()
        if not folder.is_dir():
            return link[0]
        return os.path.relpath(_page_of(root, folder), page.parent)

    source[0] = _LINK.sub(replaced, source[0])


def _add_menu(_: Sphinx, name: str, source: list[str]) -> None:
    if name != root_doc:
        return
    parts = _SECTION.split(source[0])[1:]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        if pages := _PAGE.findall(text):
            listed = "\n".join(pages)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```\n"
