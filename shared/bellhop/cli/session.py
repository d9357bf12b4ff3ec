"""The installation of a command: opened when it is asked for, closed when the command ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellhop.cli.contexts import Context, choose
from bellhop.cli.options import Choice

if TYPE_CHECKING:
    from bellhop.fleet.installation import Inbound, Installation

_PROBE_SECONDS = 2.0


def chosen() -> Context:
    """Say which installation the command line, the environment and the contexts lead to."""
    choice = click.get_current_context().find_root().ensure_object(Choice)
    return choose(choice.state, choice.context, os.environ)


def installation() -> Installation:
    """Open the chosen installation for the rest of the command."""
    from bellhop.embedded.state import open_state
    from bellhop.settings import read

    embedded = open_state(chosen().state, read(os.environ), whole=False)
    click.get_current_context().find_root().call_on_close(embedded.close)
    return embedded.installation


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
