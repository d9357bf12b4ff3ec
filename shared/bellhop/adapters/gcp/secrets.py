"""The secret store in Secret Manager: one of its secrets for each of ours, with one live version.

Secret Manager reports minutes late which version is the newest: only reads of a version by its
number are strongly consistent. So a document in Firestore, in a collection of its own, says for
each of our names which secret it is and which version counts.

    put      place noted ─► secret made ─► version added ─► version noted ─► older ones destroyed
    delete   secret deleted ─► document deleted

A death between two steps leaves nothing behind: the next write destroys all older versions, and a
place is noted before a secret is made there. A name that is deleted and written again gets another
place, where numbers begin again.

Nothing is kept here: a client of a cluster keeps the credentials that it has, by the version that
the cluster's record names, and comes back when they are refused (`adapters/kube/access.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from bellhop.adapters.gcp.services import RefusedError, Services
from bellhop.adapters.gcp.store import DATABASE, FirestoreStore
from bellhop.errors import BusyError, InvalidError, MissingError, StaleError, TooLargeError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, Item

LIMIT = 65_536
"""Bytes that one secret may take."""

COLLECTION = "secrets"
"""Where the documents are that say which version of a secret counts."""

_PARTITION = "secret"
_TRIES = 12
_LONGEST_ID = 255
_RANDOM_BYTES = 8
_NOT_TAKEN = re.compile(r"[^A-Za-z0-9_-]+")
_LEFT_BEHIND = 25

_ABSENT, _UNFIT, _EXISTS = "NOT_FOUND", "FAILED_PRECONDITION", "ALREADY_EXISTS"


class VersionedSecrets:
    """Named secrets, below a prefix that no other installation of the project has.

    With a `region` they are stored only there, sealed by the `key` of Cloud KMS if there is one;
    else wherever Google stores them.
    """

    def __init__(
        self,
        services: Services,
        prefix: str,
        *,
        clock: Clock,
        database: str = DATABASE,
        collection: str = COLLECTION,
        region: str = "",
        key: str = "",
    ) -> None:
        self._services = services
        self._replication = _replication(region, key)
        self._prefix = prefix
        self._project = f"projects/{services.project}"
        self._known = FirestoreStore(
            services, clock=clock, database=database, collection=collection
        )

    def read(self, name: str) -> bytes:
        before: Item | None = None
        for number in range(1, _TRIES + 1):
            known = self._known.get(_PARTITION, name)
            if known is None or not known.value["version"]:
                raise MissingError(f"there is no secret {name!r}")
            destroyed = before is not None and before.token == known.token
            # The noted version is missing: the store was restored, or somebody destroyed it.
            version = "latest" if destroyed else known.value["version"]
            try:
                return self._value(known.value["place"], version, name)
            except RefusedError as refused:
                if destroyed:
                    raise MissingError(
                        f"the secret {name!r} is not in Secret Manager any more"
                    ) from refused
            if before is not None:
                self._services.rest(number)
            before = known
        raise BusyError(f"cannot read the secret {name!r}: others keep writing it")

    def put(self, name: str, value: bytes) -> None:
        if not value:
            raise InvalidError(f"cannot write the secret {name!r}: it is empty")
        if len(value) > LIMIT:
            raise TooLargeError(
                f"cannot write the secret {name!r}: its {len(value)} bytes exceed the secret"
                f" store's {LIMIT}"
            )
        for number in range(1, _TRIES + 1):
            try:
                self._write(name, value)
            except StaleError:
                self._services.rest(number)
            else:
                return
        raise BusyError(f"cannot write the secret {name!r}: others keep writing it")

    def delete(self, name: str) -> None:
        for number in range(1, _TRIES + 1):
            known = self._known.get(_PARTITION, name)
            if known is None:
                return
            self._forget(known.value["place"], name)
            try:
                self._known.delete(_PARTITION, name, expect=known.token)
            except StaleError:
                # Another writer may have added a version meanwhile: delete it again.
                self._services.rest(number)
            else:
                return
        raise BusyError(f"cannot delete the secret {name!r}: others keep writing it")

    def names(self, prefix: str = "") -> Iterator[str]:
        for each in self._known.query(_PARTITION, prefix=prefix):
            if each.value["version"]:
                yield each.sort

    def _write(self, name: str, value: bytes) -> None:
        """Write a secret.

        Raises:
            StaleError: somebody else wrote or deleted it meanwhile.
        """
        known = self._known.get(_PARTITION, name)
        if known is None:
            known = self._note(name, ABSENT, self._new_place(name), 0)
        place, before = str(known.value["place"]), int(known.value["version"])
        if not before:
            self._make(place, name)
        try:
            version = self._add(place, value, name)
        except RefusedError as refused:
            if before:
                self._note(name, known.token, self._new_place(name), 0)
            raise StaleError(f"the secret {name!r} was deleted meanwhile") from refused
        try:
            self._note(name, known.token, place, version)
        except StaleError:
            self._withdraw(name, place, version)
            raise
        if version > 1:
            self._tidy(place, before, version, name)

    def _note(self, name: str, expect: str, place: str, version: int) -> Item:
        value = {"place": place, "version": version}
        return self._known.put(Item(_PARTITION, name, value), expect=expect)

    def _new_place(self, name: str) -> str:
        """Return an id that nobody has: readable in the console, and drawn where that is cut."""
        drawn = os.urandom(_RANDOM_BYTES).hex()
        readable = f"{self._prefix}_{_NOT_TAKEN.sub('-', name)}"
        return f"{readable[: _LONGEST_ID - len(drawn) - 1]}_{drawn}"

    def _withdraw(self, name: str, place: str, version: int) -> None:
        """Take away what was written and counts for nobody."""
        known = self._known.get(_PARTITION, name)
        if known is None or known.value["place"] != place:
            self._forget(place, name)
        else:
            self._destroy(place, version, name)

    def _tidy(self, place: str, before: int, version: int, name: str) -> None:
        """Destroy all that is older than a version; what others left behind is among the newest."""
        found = self._services.call(
            "secretmanager",
            "list_secret_versions",
            {"parent": self._secret(place), "page_size": _LEFT_BEHIND},
            doing=f"list the versions of the secret {name!r}",
            read=lambda page: {_number(each.name) for each in page.versions if _is_alive(each)},
        )
        for number in sorted({before, *found} - {0}):
            if number < version:
                self._destroy(place, number, name)

    def _make(self, place: str, name: str) -> None:
        request = {
            "parent": self._project,
            "secret_id": place,
            "secret": {"replication": self._replication},
        }
        self._finish("create_secret", request, f"write the secret {name!r}", _EXISTS)

    def _add(self, place: str, value: bytes, name: str) -> int:
        """Add a version and return its number.

        Raises:
            RefusedError: the secret is not there.
        """
        answer = self._services.call(
            "secretmanager",
            "add_secret_version",
            {"parent": self._secret(place), "payload": {"data": value}},
            doing=f"write the secret {name!r}",
            taken=frozenset({_ABSENT}),
        )
        return _number(answer.name)

    def _value(self, place: str, version: int | str, name: str) -> bytes:
        """Read a version.

        Raises:
            RefusedError: it is not there, or destroyed.
        """
        answer = self._services.call(
            "secretmanager",
            "access_secret_version",
            {"name": f"{self._secret(place)}/versions/{version}"},
            doing=f"read the secret {name!r}",
            taken=frozenset({_ABSENT, _UNFIT}),
        )
        value: bytes = answer.payload.data
        return value

    def _destroy(self, place: str, version: int, name: str) -> None:
        request = {"name": f"{self._secret(place)}/versions/{version}"}
        doing = f"destroy an older version of the secret {name!r}"
        self._finish("destroy_secret_version", request, doing, _ABSENT, _UNFIT)

    def _forget(self, place: str, name: str) -> None:
        request = {"name": self._secret(place)}
        self._finish("delete_secret", request, f"delete the secret {name!r}", _ABSENT)

    def _finish(self, operation: str, request: dict[str, Any], doing: str, *taken: str) -> None:
        """Do what may have been done before, by somebody or by an attempt that was not answered."""
        with suppress(RefusedError):
            self._services.call(
                "secretmanager", operation, request, doing=doing, taken=frozenset(taken)
            )

    def _secret(self, place: str) -> str:
        return f"{self._project}/secrets/{place}"


def _replication(region: str, key: str) -> dict[str, Any]:
    """Say where a new secret is to be kept."""
    if not region:
        return {"automatic": {}}
    sealed = {"customer_managed_encryption": {"kms_key_name": key}} if key else {}
    return {"user_managed": {"replicas": [{"location": region, **sealed}]}}


def _number(version: str) -> int:
    return int(version.rpartition("/")[2])


def _is_alive(version: Any) -> bool:
    return str(version.state.name) != "DESTROYED"
