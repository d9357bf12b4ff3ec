"""Kinds and namespaces that the annotation `bellhop.dev/allow` lets a trigger or profile deploy.

    ConfigMap in team-*; NetworkPolicy.networking.k8s.io in team-*, shop; Namespace cluster-wide

A kind is named with its group and without a version, for the version is how an object is written.
Scope is said each time: a kind is allowed in namespaces, by name or glob, or cluster-wide.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct

from bellhop.errors import InvalidError

ANNOTATION = "bellhop.dev/allow"
EXAMPLE = "ConfigMap in team-*; NetworkPolicy.networking.k8s.io in shop; Namespace cluster-wide"

_ENTRY = re.compile(r"(\S+)\s+(?:(cluster-wide)|in\s+(\S.*))", re.DOTALL)
_KIND = re.compile(r"([A-Z][A-Za-z0-9]*)(?:\.([a-z0-9]([-a-z0-9.]*[a-z0-9])?))?")
_GLOB = re.compile(r"[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?")
_DEFAULT = "default"
_SHOWN = 60


class Allowed(Struct, frozen=True):
    """One entry: a kind, and its namespaces; None allows it cluster-wide."""

    kind: str
    group: str
    namespaces: tuple[str, ...] | None

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        places = "cluster-wide" if self.namespaces is None else f"in {', '.join(self.namespaces)}"
        return f"{kind} {places}"

    def admits(self, namespace: str) -> bool:
        """Say whether an object of the kind may be there; empty means that it has no namespace."""
        if self.namespaces is None or not namespace:
            return self.namespaces is None and not namespace
        return any(fnmatchcase(namespace, glob) for glob in self.namespaces)


class Allow(Struct, frozen=True):
    """All entries of an annotation."""

    entries: tuple[Allowed, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.entries))

    def admits(self, group: str, kind: str, namespace: str) -> bool:
        """Return whether an object may be deployed, its namespace as the cluster has it."""
        return any(each.admits(namespace) for each in self._entries_of(group, kind))

    def may_admit(self, group: str, kind: str, namespace: str) -> bool:
        """Return it before a cluster has reported whether the kind has namespaces.

        Of one that has, an object without namespace goes to `default`; of one that has none, the
        namespace that a manifest names means nothing.
        """
        return any(
            each.namespaces is None or each.admits(namespace or _DEFAULT)
            for each in self._entries_of(group, kind)
        )

    def names(self, group: str, kind: str) -> bool:
        """Say whether an object of a kind may be deployed to any namespace."""
        return bool(self._entries_of(group, kind))

    def scoped(self, is_namespaced: Callable[[str, str], bool]) -> Allow:
        """Return the entries that fit the scope that a kind, after its group, has in a cluster."""
        return Allow(
            tuple(
                each
                for each in self.entries
                if is_namespaced(each.group, each.kind) == (each.namespaces is not None)
            )
        )

    def _entries_of(self, group: str, kind: str) -> list[Allowed]:
        return [each for each in self.entries if (each.group, each.kind) == (group, kind)]


class ReleaseAllow(Struct, frozen=True):
    """Objects that a chart's release may have: an object without a namespace is in the release's.

    The `holder` is the trigger or profile with the annotation, as errors name it.
    """

    allow: Allow
    holder: str
    namespace: str
    name: str


@lru_cache(maxsize=256)
def read_allow(text: str) -> Allow:
    """Read the annotation.

    Raises:
        InvalidError: an entry is none; the sentence says what to write.
    """
    entries = tuple(_entry(part.strip()) for part in re.split(r"[;\n]", text) if part.strip())
    if not entries:
        raise InvalidError(
            f"{ANNOTATION} names nothing; write what may be deployed, as in '{EXAMPLE}', or leave"
            " the annotation out to allow everything"
        )
    return Allow(entries)


def _entry(text: str) -> Allowed:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    found = _ENTRY.fullmatch(text)
    if not found:
        raise InvalidError(
            f"{ANNOTATION} has '{shown}', which is not an entry; write KIND[.GROUP] in NAMESPACE,"
            f" or KIND[.GROUP] cluster-wide, as in '{EXAMPLE}'"
        )
    named = _KIND.fullmatch(found[1])
    if not named:
        raise InvalidError(
            f"{ANNOTATION} has '{shown}', whose kind is not one; write the kind as manifests do,"
            " then its group without a version, as in 'Deployment.apps' or 'ConfigMap'"
        )
    if found[2]:
        return Allowed(named[1], named[2] or "", None)
    globs = tuple(glob.strip() for glob in found[3].split(","))
    wrong = [glob for glob in globs if not _GLOB.fullmatch(glob)]
    if wrong:
        raise InvalidError(
            f"{ANNOTATION} has '{shown}', where '{wrong[0][:_SHOWN]}' is not a namespace; it takes"
            " lower-case letters, digits, '-' and '*', with commas between several"
        )
    return Allowed(named[1], named[2] or "", globs)
