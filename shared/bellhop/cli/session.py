"""The installation of a command: opened when it is asked for, closed when the command ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellhop.cli.contexts import EMBEDDED, Context, choose
from bellhop.cli.options import Choice
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.cli.providers import Opened
    from bellhop.installation.installation import Inbound, Installation

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
    return _kept(open_chosen(click.get_current_context(), create=create))


def keep_open() -> Opened:
    """Open the chosen installation for the rest of the command, with what its kind adds to it.

    Raises:
        MissingError: there is none.
    """
    opened = open_chosen(click.get_current_context())
    _kept(opened)
    return opened


def open_chosen(ctx: click.Context, *, create: bool = False) -> Opened:
    """Open the chosen installation, for who closes it.

    Raises:
        MissingError: there is none, and none may be created.
    """
    from bellhop.cli.providers import place_of

    context = chosen(ctx)
    return place_of(context).opened(context, os.environ, create=create)


def looking() -> Installation:
    """Open the chosen installation to look at it alone: nothing in it is made or changed.

    Raises:
        MissingError: there is none.
        InvalidError: it is of another version or key.
    """
    from bellhop.cli.providers import place_of

    context = chosen()
    return _kept(place_of(context).looked_into(context, os.environ))


def _kept(opened: Opened) -> Installation:
    """Keep an installation open for the rest of the command."""
    click.get_current_context().find_root().call_on_close(opened.close)
    return opened.installation


def state_folder() -> Path:
    """Return the state folder of the chosen installation.

    Raises:
        InvalidError: it has none.
    """
    context = chosen()
    if context.kind != EMBEDDED:
        raise InvalidError(
            f"cannot serve from context '{context.name}': it is an installation of kind"
            f" '{context.kind}', whose functions do the work; name a folder by --state"
        )
    return context.state


def serves(here: Installation) -> bool:
    """Say whether who does an installation's work is there.

    On one machine who does it holds the state folder, in a cloud its schedule ticks, whatever
    clusters can reach.
    """
    from bellhop.cli.providers import place_of
    from bellhop.diagnosis.overview import lateness

    context = chosen()
    running = place_of(context).running(context)
    return not lateness(here) if running is None else running


def answers(inbound: Inbound) -> bool:
    """Ask whether something listens where clusters are told to send their events."""
    import ssl

    from bellhop.adapters.egress.answer import LimitError
    from bellhop.adapters.egress.client import HttpClient, HttpError
    from bellhop.adapters.egress.dialer import Dialer
    from bellhop.core.address_policy import LOCAL

    if not inbound.url.lower().startswith("https://"):
        return False
    client = None
    try:
        trust = ssl.create_default_context(cadata=inbound.ca or None)
        client = HttpClient(
            inbound.url, dialer=Dialer(LOCAL), threads=1, whole=_PROBE_SECONDS, ssl_context=trust
        )
        client.request("GET", "/healthz", headers={}, timeout=_PROBE_SECONDS)
    except (HttpError, LimitError, OSError, ValueError):
        return False
    finally:
        if client:
            client.close()
    return True
