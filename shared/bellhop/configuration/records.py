"""Records of the objects that the configuration cluster holds, and whether they are in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bellhop.errors import StaleError
from bellhop.state.table import Stored, Table

State = Literal["InForce", "Rejected", "OtherOrigin", "DryRun", "Leaving", "Ending", "Missing"]


class ConfiguredObject(Struct, frozen=True):
    """The last reading of a custom resource, or of a ConfigMap or Secret that manifests name.

    `in_force`: the stored manifest is of this object, though maybe of an earlier version. As long
    as that is so, files cannot change the manifest.
    """

    uid: str
    version: str
    """Its resource version as it was read."""
    generation: int
    state: State
    in_force: bool
    at: datetime
    """Since when it has its state and message."""
    message: str = ""
    marks: Mapping[str, str] = {}
    """Annotations that commands set on the manifest, beside those of the object: pauses."""
    change: str = ""
    """The change by which the deletion guard holds what its deletion removes or deregisters."""

    @property
    def is_refused(self) -> bool:
        """Return whether the present version of the object is not in force, and why is known."""
        return self.state in ("Rejected", "OtherOrigin")


class ConfiguredObjects(Table[ConfiguredObject, str, str, str]):
    """Objects of the configuration cluster, by kind, namespace and name."""

    kind = ConfiguredObject
    partition, sort = "configured/{kind}", "{namespace}/{name}"

    def list_kind(self, kind: str) -> Iterator[tuple[str, str, Stored[ConfiguredObject]]]:
        """Yield namespace, name and record of each object of one kind, in order."""
        for place, stored in self.rows(kind):
            namespace, _, name = place.partition("/")
            yield namespace, name, stored

    def mark(self, key: tuple[str, str, str], annotations: Mapping[str, str | None]) -> None:
        """Keep annotations that a command set on a manifest, or removed, for its next version.

        Raises:
            StaleError: another worker reads the object at this moment.
        """
        found = self.get(*key)
        if found is not None and found.value.in_force:
            marks = {**found.value.marks, **annotations}
            kept = {name: value for name, value in marks.items() if value is not None}
            self.put(*key, replace(found.value, marks=kept), expect=found.token)

    def holds(self, kind: str, namespace: str, name: str) -> bool:
        """Return whether the stored manifest is the cluster's, as long as the object is there."""
        found = self.get(kind, namespace, name)
        return found is not None and found.value.in_force and found.value.state != "Missing"


class Confirmation(Struct, frozen=True):
    """The last comparison of the configuration cluster with the records of its objects."""

    at: datetime | None = None
    """When one was complete last."""
    problem: str = ""
    """The kinds that could not be listed since, and why."""


class Confirmations(Table[Confirmation, str]):
    """Confirmations, by the cluster that holds the configuration."""

    kind = Confirmation
    partition, sort = "configured/confirmation", "{cluster}"


class WrittenObject(Struct, frozen=True):
    """A status or mirror that was written, by its digest."""

    digest: str
    uid: str
    """Of the object that it was written to."""
    at: datetime
    conditions: str = ""
    """Of a status, as JSON: the times of conditions that stay the same are kept."""

    @property
    def leaves(self) -> bool:
        """Return whether it is being deleted: a new one has no UID before it is written."""
        return bool(self.uid) and not self.digest


class WrittenObjects(Table[WrittenObject, str, str]):
    """Written objects, by the object of which they are and their place.

    The owner is KIND/NAMESPACE/NAME, or the trigger and source cluster of a generated profile with
    its name. A place is `status`, `event`, or CLUSTER/APIVERSION/KIND/NAMESPACE/NAME of a mirror.
    """

    kind = WrittenObject
    partition, sort = "written/{owner}", "{place}"

    def request_all(self, at: datetime) -> None:
        """Have the next resync of the configuration cluster write all again that is older.

        Something was not written in an outage, or the cluster has lost what was written.
        """
        self.put(*_REQUEST, WrittenObject("", "", at))

    def read_request(self) -> Stored[WrittenObject] | None:
        """Return the last request; it has a digest once its messages are published."""
        return self.get(*_REQUEST)

    def is_current(self, written: WrittenObject, digest: str) -> bool:
        """Return whether an object is there as its digest says: it was not lost since."""
        request = self.read_request()
        return written.digest == digest and not (request and written.at < request.value.at)

    def note_published(self, request: Stored[WrittenObject]) -> None:
        """Record that the messages of a request are published, unless there is a new one."""
        with suppress(StaleError):
            self.put(*_REQUEST, replace(request.value, digest="published"), expect=request.token)


_REQUEST = ("outage", "missed")
