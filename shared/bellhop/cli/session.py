"""The installation of a command: opened on demand, closed when the command ends."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellhop.cli.contexts import EMBEDDED, Context, choose
from bellhop.cli.options import Choice
from bellhop.cli.output import say
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.cli.providers.provider import OpenInstallation
    from bellhop.installation import Inbound, Installation

_PROBE_SECONDS = 2.0


def choose_context(ctx: click.Context | None = None) -> Context:
    """Return the context that the command line, the environment and the contexts choose."""
    root = (ctx or click.get_current_context()).find_root()
    choice = root.ensure_object(Choice)
    # A shell that completes runs no command: the root's values are only in its parameters.
    state = choice.state or root.params.get("state")
    return choose(state, choice.context or root.params.get("context_name"), os.environ)


def open_installation(*, create: bool = False) -> Installation:
    """Open the chosen installation until the command ends; some commands may `create` it.

    A missing folder is an error otherwise: a mistyped one would look like an empty installation.
    """
    return _close_with_command(open_context(click.get_current_context(), create=create))


def open_for_command() -> OpenInstallation:
    """Open the chosen installation until the command ends, with the methods of its kind."""
    opened = open_context(click.get_current_context())
    _close_with_command(opened)
    return opened


def open_context(ctx: click.Context, *, create: bool = False) -> OpenInstallation:
    """Open the chosen installation; the caller closes it."""
    from bellhop.cli.providers.provider import load_provider

    context = choose_context(ctx)
    return load_provider(context).open(context, os.environ, create=create)


def open_read_only() -> Installation:
    """Open the chosen installation for reading: nothing in it is created or changed."""
    from bellhop.cli.providers.provider import load_provider

    context = choose_context()
    return _close_with_command(load_provider(context).open_read_only(context, os.environ))


def _close_with_command(opened: OpenInstallation) -> Installation:
    click.get_current_context().find_root().call_on_close(opened.close)
    return opened.installation


def state_folder() -> Path:
    """Return the state folder of the chosen installation; a cloud has none."""
    context = choose_context()
    if context.kind != EMBEDDED:
        raise InvalidError(
            f"cannot serve from context '{context.name}': it is an installation of kind"
            f" '{context.kind}', whose functions do the work; name a folder by --state"
        )
    return context.state


def is_served(here: Installation) -> bool:
    """Return whether the worker of an installation runs.

    An embedded worker holds the state folder; in a cloud the schedule ticks.
    """
    from bellhop.cli.providers.provider import load_provider
    from bellhop.diagnosis.worker_status import describe_missed_ticks

    context = choose_context()
    running = load_provider(context).is_running(context)
    return not describe_missed_ticks(here) if running is None else running


def warn_unless_served(here: Installation) -> None:
    """Warn that requested work has to wait for the worker, if that does not run."""
    if not is_served(here):
        say(f"warning: {here.worker.name} does not answer; it is done once it runs", err=True)


def warn_if_paused(here: Installation, promotion: str) -> None:
    """Warn that a decision about a promotion has no effect before it is resumed."""
    if here.catalogs.known().promotions[promotion].paused:
        hint = f"`bellhop resume promotion {promotion}` has its stages go on"
        say(f"warning: it is paused; {hint}", err=True)


def is_listening(inbound: Inbound) -> bool:
    """Return whether something answers at the address that clusters send events to."""
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


def find_caller(here: Installation) -> str:
    """Return the caller's identity in the cloud, or the name of the user on this machine.

    The operating system says who that is, not the environment, which the user writes.
    """
    if here.identify:
        return here.identify()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        # A container may run under a number that has no name.
        return f"uid {os.getuid()}"
