"""Google Cloud, as its own Firestore emulator and servers of the lab have it, in real time."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from typing import ClassVar

from bellhop.adapters.gcp import secrets
from bellhop.adapters.gcp.blobs import CloudBlobs
from bellhop.adapters.gcp.secrets import VersionedSecrets
from bellhop.adapters.gcp.services import Services
from bellhop.adapters.gcp.store import FirestoreStore
from bellhop.adapters.local.clock import SystemClock


class Rig:
    """An installation of its own, in the project and under the names that `place` has as JSON.

    Another process is given the place of this one. Where Google is it says by the variables that
    Google's libraries read.
    """

    ports: ClassVar[frozenset[str]] = frozenset({"store", "secrets", "blobs"})
    courtesies: ClassVar[frozenset[str]] = frozenset()
    secret_limit: ClassVar[int] = secrets.LIMIT
    unit: ClassVar[timedelta] = timedelta(seconds=1)
    where: ClassVar[str] = "google_place"

    def __init__(self, place: str) -> None:
        self.place = place
        self._told = json.loads(place)
        self.clock = SystemClock()
        self.services = Services(self._told["project"], emulators=self._told["emulators"])

    def store(self) -> FirestoreStore:
        return FirestoreStore(
            self.services,
            clock=self.clock,
            database=self._told["database"],
            collection=self._told["items"],
        )

    def secrets(self) -> VersionedSecrets:
        return VersionedSecrets(
            self.services,
            self._told["bucket"],
            clock=self.clock,
            database=self._told["database"],
            collection=self._told["secrets"],
        )

    def blobs(self) -> CloudBlobs:
        return CloudBlobs(self.services, self._told["bucket"])

    def now(self) -> datetime:
        """Return what time it is for the provider."""
        return self.clock.now()

    def span(self, units: float) -> timedelta:
        """Return how long so many units are."""
        return units * self.unit

    def pass_time(self, units: float) -> None:
        """Wait: nobody moves Google's clock."""
        time.sleep(self.span(units).total_seconds())

    def close(self) -> None:
        self.services.close()
