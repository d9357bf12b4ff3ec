"""The notes of a release: the section of the changelog that bears its version.

The notes of the first release begin at it: they list what it has. Its changes and fixes are of
versions that nobody could install.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bellhop.errors import MissingError
from infra.release.checkout import Checkout
from infra.release.pages import link_to_repository

_NEXT = "Unreleased"
_BEFORE = re.compile(r"^### (?:Changed|Fixed|Removed)\n.*?(?=^### |\Z)", re.MULTILINE | re.DOTALL)


def notes(checkout: Checkout) -> str:
    """Return the section of the version; before it is tagged, that of the next release will do.

    Raises:
        MissingError: the changelog has no such section.
    """
    sections = _sections((checkout.root / "CHANGELOG.md").read_text("utf-8"))
    for title in [checkout.version, *([] if checkout.tagged else [_NEXT])]:
        if title in sections:
            body = sections[title].strip()
            if title == [*sections][-1]:
                body = f"The first release.\n\n{_BEFORE.sub('', body).strip()}"
            return link_to_repository(f"# Bellhop {checkout.version}\n\n{body}\n", checkout)
    raise MissingError(
        f"cannot release {checkout.version}: CHANGELOG.md has no section `## {checkout.version}`;"
        f" rename `## {_NEXT}`"
    )


def _sections(changelog: str) -> Mapping[str, str]:
    parts = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    headed = [part.partition("\n") for part in parts]
    return {heading.split()[0].strip("[]"): body for heading, _, body in headed}
