"""Hooks of a chart, as the annotations of what it renders name them, and Jobs that expire."""

from __future__ import annotations

import re

AFTER = frozenset({"post-install", "post-upgrade"})
"""Hooks that Helm runs once a release is ready, where it waits for that."""

TESTS = frozenset({"test", "test-success", "test-failure"})
"""Hooks that neither an installation nor an upgrade runs."""

DELETE = frozenset({"pre-delete", "post-delete"})
"""Hooks that Helm runs when it removes a release."""

EXPIRING = frozenset({"ttlSecondsAfterFinished"})
"""The field of Jobs that are deleted once they have ended, so that no later read finds them."""

UNKNOWN = AFTER | DELETE | EXPIRING | {"pre-install", "pre-upgrade"}
"""Hooks of a chart that cannot be read: it may have any."""

_ANNOTATION = re.compile(r"""helm\.sh/hook["']?[ \t]*:[ \t]*(.*)""")
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")


def hooks_of(rendered: str) -> frozenset[str]:
    """Return the hooks that a rendered chart names, and whether Jobs of it expire.

    A hook that is written unusually may be any.
    """
    found = {field for field in EXPIRING if field in rendered}
    for value in _ANNOTATION.findall(rendered):
        found |= set(_WORD.findall(value)) or UNKNOWN
    return frozenset(found)
