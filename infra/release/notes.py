"""The notes of a release: the section of the changelog that bears its version."""

from __future__ import annotations

import re

from bellhop.errors import MissingError
from infra.release.checkout import Checkout

_NEXT = "Unreleased"


def notes(checkout: Checkout) -> str:
    """Return the section of the version; before it is tagged, that of the next release will do.

    Raises:
        MissingError: the changelog has no such section.
    """
    changelog = (checkout.root / "CHANGELOG.md").read_text("utf-8")
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for title in [checkout.version, *([] if checkout.tagged else [_NEXT])]:
        for section in sections:
            heading, _, body = section.partition("\n")
            if heading.split()[0].strip("[]") == title:
                return f"# Bellhop {checkout.version}\n\n{body.strip()}\n"
    raise MissingError(
        f"cannot release {checkout.version}: CHANGELOG.md has no section `## {checkout.version}`;"
        f" rename `## {_NEXT}`"
    )
