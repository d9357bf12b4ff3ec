"""How a command gets into an installation of each kind, with the same words for all of them.

Each module is imported when an installation of its kind is opened: a cloud's SDK takes longer to
load than most commands take.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from bellhop.cli.contexts import KINDS, Context
from bellhop.errors import InvalidError, MissingError
from bellhop.logs import configure
from bellhop.runtime.embedded.lazy import late, tools
from bellhop.state.messages import CHARTS

if TYPE_CHECKING:
    from bellhop.clusters.kubeconfig import Kubeconfig
    from bellhop.installation.installation import Installation
    from bellhop.state.record import Entry

_MODULES = {kind: f"bellhop.cli.providers.{kind}" for kind in KINDS}


class Opened(Protocol):
    """An installation in the hands of a command."""

    @property
    def installation(self) -> Installation:
        """What the command works with."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Have reads within the block see one moment, if the store has snapshots."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


EKS = "EKS"
GKE = "GKE"

_IDENTITIES = {EKS: "role of AWS", GKE: "account of Google Cloud"}


class Wanted(Struct, frozen=True):
    """A cluster that a cloud manages, as a user names it, and the role to assume for it, if any."""

    service: str
    name: str
    region: str = ""
    assume_role: str = ""
    external_id: str = ""


class Managed(Struct, frozen=True):
    """A cluster that a cloud manages: its name there, as the caller reaches it, and over what.

    `entries` are the commands that let the functions in.
    """

    name: str
    kubeconfig: Kubeconfig
    entries: Sequence[str]
    over: str = ""


class Journal(Protocol):
    """What functions have logged, as entries of the ledger are."""

    def read(self, since: datetime) -> Iterable[Entry]:
        """Return the lines since a moment, by time."""
        ...

    def follow(self, since: datetime, *, wait: Callable[[str], None]) -> Iterator[Entry]:
        """Yield the lines since a moment, and each that comes; `wait` is told why none comes."""
        ...


class Place(Protocol):
    """The way into the installations of one kind."""

    def opened(self, context: Context, environment: Mapping[str, str], *, create: bool) -> Opened:
        """Open an installation; where that is a thing of this machine, `create` may make it."""
        ...

    def looked_into(self, context: Context, environment: Mapping[str, str]) -> Opened:
        """Open an installation to look at it alone."""
        ...

    def journal(self, context: Context, environment: Mapping[str, str], stage: str) -> Journal:
        """Return what reads the log of all functions, or of one."""
        ...

    def managed(self, context: Context, opened: Opened, wanted: Wanted) -> Managed:
        """Find a cluster of EKS or GKE that the installation's functions can reach as themselves.

        Raises:
            InvalidError: they cannot, whatever it is called.
        """
        ...

    def there(self, context: Context) -> bool:
        """Say whether something is there, as far as that can be said without a call."""
        ...

    def running(self, context: Context) -> bool | None:
        """Say whether somebody works there, though nothing can be read; None: nobody knows."""
        ...


def place_of(context: Context) -> Place:
    """Return the way into an installation; what is logged on it goes to standard error.

    Raises:
        MissingError: the libraries of its cloud are not installed.
    """
    configure(sys.stderr)
    try:
        return cast("Place", importlib.import_module(_MODULES[context.kind]))
    except ModuleNotFoundError as error:
        raise MissingError(
            f"cannot open the installation of context '{context.name}': the Python package"
            f" '{error.name}' is not installed; install the extra `{context.kind}`"
            f" (pip install 'bellhop-fleet[{context.kind}]')"
        ) from error


def reaching(functions: Mapping[str, str]) -> Sequence[str]:
    """Return the functions of an installation that call clusters."""
    return ("deploy", "sweep", *({CHARTS} & functions.keys()))


def with_tools(here: Installation) -> Installation:
    """Give an installation in a cloud the Helm and kubectl of this machine, which previews ask."""
    return replace(here, tools=late(partial(tools, None, here.settings, here.records.clock)))


def unreachable(wanted: Wanted, where: str) -> InvalidError:
    """Make the error of an installation whose functions are nobody in a service."""
    return InvalidError(
        f"cannot register the {wanted.service} cluster '{wanted.name}' in {where}, which has no"
        f" {_IDENTITIES[wanted.service]} to reach it by; `bellhop register cluster` takes a"
        " kubeconfig with a token"
    )
