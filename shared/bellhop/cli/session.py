"""The installation of a command: opened when it is asked for, closed when the command ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellhop.cli.contexts import Context, choose
from bellhop.cli.options import Choice

if TYPE_CHECKING:
    from bellhop.embedded.state import Embedded
    from bellhop.fleet.installation import Inbound, Installation

_PROBE_SECONDS = 2.0


def chosen(ctx: click.Context | None = None) -> Context:
    """Say which installation the command line, the environment and the contexts lead to."""
    root = (ctx or click.get_current_context()).find_root()
    choice = root.ensure_object(Choice)
    # A shell that completes runs no command: what the root was told is in its parameters alone.
    state = choice.state or root.params.get("state")
    return choose(state, choice.context or root.params.get("context_name"), os.environ)


def installation(*, create: bool = False) -> Installation:
    """Open the chosen installation for the rest of the command; only some may `create` one.

    Raises:
        MissingError: there is none: a folder that was mistyped is not to look like an empty one.
    """
    embedded = open_chosen(click.get_current_context(), create=create)
    click.get_current_context().find_root().call_on_close(embedded.close)
    return embedded.installation


def open_chosen(ctx: click.Context, *, create: bool = False) -> Embedded:
    """Open the chosen installation, for who closes it.

    Raises:
        MissingError: there is none, and none may be created.
    """
    from bellhop.embedded.state import open_state, require_state
    from bellhop.settings import read

    folder = chosen(ctx).state
    if not create:
        require_state(folder)
    return open_state(folder, read(os.environ), whole=False)


def looking() -> Installation:
    """Open the chosen installation to look at it alone: nothing in it is made or changed.

    Raises:
        MissingError: there is none.
        InvalidError: it is of another version or key.
    """
    from bellhop.embedded.state import look_into
    from bellhop.settings import read

    embedded = look_into(chosen().state, read(os.environ))
    click.get_current_context().find_root().call_on_close(embedded.close)
    return embedded.installation


def state_folder() -> Path:
    """Return the state folder of the chosen installation."""
    return chosen().state


def answers(inbound: Inbound) -> bool:
    """Ask whether something listens where clusters are told to send their events."""
    import ssl
    import urllib.error
    import urllib.request

    if not inbound.url:
        return False
    trust = ssl.create_default_context(cadata=inbound.ca or None)
    url = f"{inbound.url.rstrip('/')}/healthz"
    if not url.startswith("https://"):
        return False
    try:
        with urllib.request.urlopen(url, timeout=_PROBE_SECONDS, context=trust):  # noqa: S310 - https alone
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False
