"""Installation: the handle that use cases get, with its records, queues and publisher.

No use case belongs here. `registration`, `operations`, `diagnosis`, `extras`, `runtime` and `cli`
import it; it imports the features and what is below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from bellhop.catalog.cache import Catalogs
    from bellhop.core.address_policy import AddressPolicy
    from bellhop.declarations.apply import ManifestWriter
    from bellhop.ports.kube import Access
    from bellhop.ports.queue import DeadLetters, Watched
    from bellhop.ports.store import Secrets
    from bellhop.ports.tools import Tools
    from bellhop.settings import Settings
    from bellhop.state.messages import Publisher
    from bellhop.state.records import Records


class Inbound(Struct, frozen=True):
    """The address for events, and the authority that clusters trust for it (PEM, or empty)."""

    url: str
    ca: str


class Worker(Struct, frozen=True):
    """The worker in the words of sentences: its name, how to start it, and that it works."""

    name: str
    start: str
    busy: str


SERVE = Worker("`bellhop serve`", "start `bellhop serve`", "`bellhop serve` is at it")


class InstallationView(Struct, frozen=True):
    """The part of an installation that is read: its records, and the catalog of its manifests."""

    records: Records
    catalogs: Catalogs


class Installation(InstallationView, frozen=True, kw_only=True):
    """The dependencies of all use cases; `dead` are dead letters by the name of their inbox.

    `reach` is the address policy for clusters. `queues` are the inboxes of a reader of their
    lengths, and `vitals` are known to a reader of the status. Without `tools` neither charts nor
    kustomizations are deployed.
    """

    settings: Settings
    declare: ManifestWriter
    secrets: Secrets
    access: Access
    reach: AddressPolicy
    publisher: Publisher
    dead: dict[str, DeadLetters]
    inbound: Inbound
    queues: Mapping[str, Watched] = {}
    tools: Tools | None = None
    vitals: ProcessStatus | Ticking | None = None
    worker: Worker = SERVE
    identify: Callable[[], str] | None = None
    """Returns the caller's identity in a cloud."""


_MEBI = 1024 * 1024

LITTLE = 4 * _MEBI
"""Bytes of a disk on which nothing is to be relied on any more."""

SCARCE = 256 * _MEBI
"""Bytes below which a warning is due; of a small disk it is a tenth."""

_SHARE = 10


class Room(Struct, frozen=True):
    """The free space on the disk of a folder; without `names` it can hold no further file."""

    folder: Path
    free: int
    size: int = 0
    names: bool = True

    @property
    def full(self) -> bool:
        """Whether nothing can be written."""
        return self.free < LITTLE or not self.names

    @property
    def low(self) -> bool:
        """Whether little space is left, and writes still succeed."""
        return not self.full and self.free < self._scarce

    @property
    def problem(self) -> str:
        """The problem in a sentence; empty if enough is free."""
        if not self.names:
            return "it can hold no further file (all its inodes are used), and nothing is written"
        if self.full:
            return f"it is full ({self.free // 1024} KiB are left), and nothing is written"
        if self.low:
            return (
                f"{self.free // _MEBI} MiB are left of {self.size // _MEBI} MiB; below"
                f" {LITTLE // _MEBI} MiB nothing is written, and no event is taken in"
            )
        return ""

    @property
    def _scarce(self) -> int:
        return min(SCARCE, self.size // _SHARE) if self.size else SCARCE


class ProcessStatus(Struct, frozen=True):
    """The visible status of an installation in a folder.

    `running` is whether a process holds the folder, which ends with the process however it ends.
    """

    folder: Path
    running: bool
    room: Room


class Ticking(Struct, frozen=True):
    """An installation of functions, by name: only the ticks of its schedule are visible."""

    name: str


def since(at: datetime | None) -> str:
    """Return a clause since when; empty if that is unknown."""
    return f" since {at:%Y-%m-%d %H:%M:%S} UTC" if at else ""
