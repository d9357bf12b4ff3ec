"""The secret store in Secrets Manager, under the installation's KMS key.

A secret is named `PREFIX/NAME`. What Secrets Manager does not take in a name, and the `=` that
says so, is written as `=` and two hexadecimal digits for each byte.

Nothing is kept here: a client of a cluster keeps the credentials that it has, by the version that
the cluster's record names, and comes back when they are refused (`adapters/kube/access.py`).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.adapters.aws.names import decode, encode
from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.errors import InvalidError, MissingError, TemporaryError, TooLargeError

LIMIT = 65_536
"""Bytes that one secret may take."""

_LONGEST_NAME = 512
_NOT_TAKEN = re.compile(rb"[^A-Za-z0-9/_+.@-]")
_MARK = "="

_ABSENT = "ResourceNotFoundException"
_EXISTS = "ResourceExistsException"
_LEAVING = "InvalidRequestException"
_TRIES = 12


class ManagedSecrets:
    """Named secrets; each is forgotten at once when it is deleted, without a time of grace.

    `key` is the KMS key that seals them; without one it is the account's own.
    """

    def __init__(self, services: Services, prefix: str, *, key: str = "") -> None:
        self._services = services
        self._prefix = prefix
        self._sealed: Mapping[str, str] = {"KmsKeyId": key} if key else {}

    def read(self, name: str) -> bytes:
        """Read a secret.

        Raises:
            MissingError: there is none of that name, or it is being deleted.
        """
        doing = f"read the secret {name!r}"
        try:
            answer = self._call("get_secret_value", {"SecretId": self._id(name)}, doing)
        except RefusedError as error:
            raise MissingError(f"there is no secret {name!r}") from error
        value: bytes = answer.get("SecretBinary") or answer["SecretString"].encode()
        return value

    def put(self, name: str, value: bytes) -> None:
        """Write a secret, new or over an older one, whole or not at all.

        One that was deleted a moment ago holds its name for some seconds more.

        Raises:
            TooLargeError: the value exceeds LIMIT.
            InvalidError: the value is empty, or the name is too long.
        """
        place = self._id(name)
        if not value:
            raise InvalidError(f"cannot write the secret {name!r}: it is empty")
        if len(value) > LIMIT:
            raise TooLargeError(
                f"cannot write the secret {name!r}: its {len(value)} bytes exceed the secret"
                f" store's {LIMIT}"
            )
        # One for all attempts: AWS does not do again what it has done under this token.
        content = {"SecretBinary": value, "ClientRequestToken": str(uuid.uuid4())}
        for number in range(1, _TRIES + 1):
            if self._written(name, place, content):
                return
            self._services.rest(number)
        raise TemporaryError(f"cannot write the secret {name!r}: it is still being deleted")

    def delete(self, name: str) -> None:
        """Forget a secret, with all its older values; one that is not there is fine."""
        request = {"SecretId": self._id(name), "ForceDeleteWithoutRecovery": True}
        try:
            self._call("delete_secret", request, f"delete the secret {name!r}")
        except RefusedError:
            return

    def names(self, prefix: str = "") -> Iterator[str]:
        """Yield the names that start with `prefix`, in order.

        What was written or deleted within the last minutes may be missing, or still be there.
        """
        start = f"{self._prefix}/"
        filters = [{"Key": "name", "Values": [start + encode(prefix, _NOT_TAKEN, _MARK)]}]
        request: dict[str, Any] = {"MaxResults": 100, "Filters": filters}
        found: list[str] = []
        while True:
            answer = self._services.call(
                "secretsmanager", "list_secrets", request, doing="list the secrets"
            )
            found += [each["Name"] for each in answer["SecretList"]]
            if "NextToken" not in answer:
                break
            request["NextToken"] = answer["NextToken"]
        yield from sorted({decode(each.removeprefix(start), _MARK) for each in found})

    def _written(self, name: str, place: str, content: Mapping[str, Any]) -> bool:
        """Write over a secret, or make it; say whether that could be done yet."""
        doing = f"write the secret {name!r}"
        try:
            self._call("put_secret_value", {"SecretId": place, **content}, doing)
        except RefusedError as refused:
            if refused.code == _LEAVING:
                self._call_back(place, doing)
                return False
        else:
            return True
        try:
            self._call("create_secret", {"Name": place, **content, **self._sealed}, doing)
        except RefusedError:
            return False  # Somebody else made it, or it is on its way out: look again.
        return True

    def _call_back(self, place: str, doing: str) -> None:
        """Undo a deletion with a time of grace, as somebody may have begun by hand."""
        try:
            self._call("restore_secret", {"SecretId": place}, doing)
        except RefusedError:
            return

    def _call(self, operation: str, request: Mapping[str, Any], doing: str) -> dict[str, Any]:
        taken = frozenset({_ABSENT, _EXISTS, _LEAVING})
        return self._services.call("secretsmanager", operation, request, doing=doing, taken=taken)

    def _id(self, name: str) -> str:
        found = f"{self._prefix}/{encode(name, _NOT_TAKEN, _MARK)}"
        if len(found) > _LONGEST_NAME:
            raise InvalidError(
                f"cannot use the secret's name {name!r}: with its prefix it has {len(found)}"
                f" characters, and Secrets Manager takes {_LONGEST_NAME}"
            )
        return found
