"""Manifests with their status as JSON or YAML, of objects that a command line names."""

from __future__ import annotations

from collections.abc import Sequence

from bellhop.cli import output
from bellhop.cli.queries import Asked, absent, nothing
from bellhop.installation.installation import Installation


def print_manifests(here: Installation, several: Sequence[Asked], form: str) -> None:
    """Print manifests: one that is named by itself, and others as one list, as they come.

    Raises:
        MissingError: an object that is named does not exist.
    """
    for what in several:
        place, name = what.query.namespace, what.query.name
        if (place or name) and next(iter(what.kind.view.rows(here, what.query)), None) is None:
            if name:
                raise absent(here, what)
            nothing(here, what)
    found = (each for what in several for each in what.kind.view.manifests(here, what.query))
    if not any(what.query.name for what in several):
        output.objects(found, form)
        return
    named = list(found)
    output.objects(named, form, one=len(named) == 1)
