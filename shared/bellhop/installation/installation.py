"""An installation of Bellhop as the CLI sees it: stores, queues and what works on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    # Most commands need a few of these, and are not to load the others.
    from bellhop.catalog.cache import Catalogs
    from bellhop.core.address_policy import AddressPolicy
    from bellhop.declarations.apply import ManifestWriter
    from bellhop.installation.process import ProcessStatus, Ticking
    from bellhop.ports.access import Access
    from bellhop.ports.queue import DeadLetters, Watched
    from bellhop.ports.secrets import Secrets
    from bellhop.ports.tools import Tools
    from bellhop.settings import Settings
    from bellhop.state.messages import Publisher
    from bellhop.state.records import Records


class Inbound(Struct, frozen=True):
    """Where clusters send their events, and the authority they trust for it (PEM, or empty)."""

    url: str
    ca: str


class Worker(Struct, frozen=True):
    """Who does the work, in the words that sentences use: it, what starts it, that it is at it."""

    name: str
    start: str
    busy: str


SERVE = Worker("`bellhop serve`", "start `bellhop serve`", "`bellhop serve` is at it")


class Installation(Struct, frozen=True):
    """Everything a command needs; `dead` are each queue's dead letters by the inbox's name.

    `reach` says which addresses clusters may have where this installation runs. `queues` are the
    inboxes for who looks how much there is to do, and `vitals` are known to who opened it to look.
    Without `tools` neither charts nor kustomizations are deployed.
    """

    settings: Settings
    records: Records
    catalogs: Catalogs
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
