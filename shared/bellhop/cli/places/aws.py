"""The way into an installation on AWS: what Terraform has put out, and the caller's own rights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bellhop.aws.caller import Called, call, services_of
from bellhop.aws.journal import Journal
from bellhop.cli.contexts import Context
from bellhop.cli.outputs import checked
from bellhop.errors import InvalidError


def opened(context: Context, environment: Mapping[str, str], *, create: bool) -> Called:
    """Open an installation; Terraform alone makes one.

    Raises:
        MissingError: the caller's account has none of that name.
        TemporaryError: AWS does not answer, or not to this caller.
    """
    del create
    return looked_into(context, environment)


def looked_into(context: Context, environment: Mapping[str, str]) -> Called:
    """Open an installation; who only looks writes nothing in it."""
    return call(_place(context), environment, name=context.name)


def journal(context: Context, environment: Mapping[str, str], stage: str) -> Journal:
    """Return what reads the log groups of all functions, or of one.

    Raises:
        InvalidError: there is no such function.
    """
    del environment
    place = _place(context)
    groups: Mapping[str, str] = place["log_groups"]
    if not groups or (stage and stage not in groups):
        known = ", ".join(groups) or "none, as Terraform has put out no log groups"
        raise InvalidError(f"cannot read the logs of '{stage or 'all'}': the functions are {known}")
    return Journal(services_of(place), {stage: groups[stage]} if stage else groups)


def _place(context: Context) -> dict[str, Any]:
    """Read a context once more: who edited its file may have left something out."""
    kept = {key: context.place[key] for key in ("profile", "endpoint") if key in context.place}
    return {**checked(context.place, f"context {context.name}"), **kept}


def there(context: Context) -> bool:
    """Say that it is there: Terraform said so when the context was added."""
    del context
    return True


def running(context: Context) -> bool | None:
    """Say that nobody knows: what cannot be read cannot tell."""
    del context
    return None
