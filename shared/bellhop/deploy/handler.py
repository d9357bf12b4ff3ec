"""Deploy: from what is declared and matches to profiles, and from profiles to clusters.

Instantiate ─► instantiate ┐
                           ├► writer ─► a profile, told ─► Apply ─► execute ─► a cluster
Resolve ─────► resolve ────┘
"""

from __future__ import annotations

from bellhop.catalog.cache import Catalogs
from bellhop.deploy.reconciler import ProfileReconciler
from bellhop.errors import InvalidError
from bellhop.profiles.event_profiles import Instantiation
from bellhop.profiles.own_profiles import Resolution
from bellhop.profiles.writer import Writer
from bellhop.settings import Settings
from bellhop.state.messages import Apply, Envelope, Instantiate, Publisher, Resolve
from bellhop.state.records import Records


class Deploy:
    """Hands each message to whoever does its work."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        publisher: Publisher,
        execute: ProfileReconciler,
        settings: Settings,
    ) -> None:
        writer = Writer(records, catalogs, publisher, settings)
        self._instantiation = Instantiation(records, catalogs, publisher, writer, settings)
        self._resolution = Resolution(records, catalogs, writer, settings)
        self._execute = execute

    def handle(self, message: Envelope) -> None:
        """Do one message's work.

        Raises:
            InvalidError: the message is another stage's.
        """
        match message:
            case Instantiate():
                self._instantiation.instantiate(message)
            case Resolve():
                self._resolution.resolve(message)
            case Apply():
                self._execute.handle(message)
            case _:
                raise InvalidError(f"cannot {message.do}: it is not the deploy stage's work")
