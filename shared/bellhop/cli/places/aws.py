"""The way into an installation on AWS: what Terraform has put out, and the caller's own rights."""

from __future__ import annotations

from collections.abc import Mapping

from bellhop.aws.caller import Called, call
from bellhop.cli.contexts import Context
from bellhop.cli.outputs import checked


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
    source = f"context {context.name}"
    kept = {key: context.place[key] for key in ("profile", "endpoint") if key in context.place}
    return call({**checked(context.place, source), **kept}, environment, name=context.name)


def there(context: Context) -> bool:
    """Say that it is there: Terraform said so when the context was added."""
    del context
    return True


def running(context: Context) -> bool | None:
    """Say that nobody knows: what cannot be read cannot tell."""
    del context
    return None
