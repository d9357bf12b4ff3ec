"""The README as a wheel shows it: its links lead to the repository, for no clone is beside it."""

from __future__ import annotations

import re

from infra.release.checkout import Checkout

_LINK = re.compile(r"(?P<image>!?)(?P<text>\[[^\]]*\])\((?!https?:|mailto:|#)(?P<place>[^)\s]+)\)")
_README = 'readme = "README.md"\n'


def link_to_repository(text: str, checkout: Checkout) -> str:
    """Return Markdown with its relative links as URLs of the release's tag."""

    def link(found: re.Match[str]) -> str:
        view = "raw" if found["image"] else "blob"
        place = f"{checkout.url}/{view}/v{checkout.version}/{found['place']}"
        return f"{found['image']}{found['text']}({place})"

    return _LINK.sub(link, text) if checkout.url else text


def name_repository(project: str, checkout: Checkout) -> str:
    """Return `pyproject.toml` with the addresses of the repository and of its documentation."""
    if not checkout.url:
        return project
    urls = (
        f'urls = {{ Repository = "{checkout.url}",'
        f' Documentation = "{checkout.url}/blob/v{checkout.version}/docs/index.md" }}\n'
    )
    return project.replace(_README, _README + urls, 1)
