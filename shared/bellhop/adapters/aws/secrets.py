"""The secret store in Secrets Manager, under the installation's KMS key.

A secret is named `PREFIX/NAME`. In a name, bytes that Secrets Manager does not take, and `=`
itself, are written as `=` and two hexadecimal digits.

Nothing is kept here: a client of a cluster keeps the credentials that it has, by the version that
the cluster's record names, and comes back when they are refused (`adapters/kube/access.py`).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.errors import InvalidError, MissingError, TemporaryError, TooLargeError


def encode(name: str, not_taken: re.Pattern[bytes], mark: str) -> str:
    """Return a name with each byte that is not taken as a mark and two hexadecimal digits.

    The mark is one of these bytes.

    Raises:
        InvalidError: it is not valid Unicode.
    """
    try:
        encoded = name.encode()
    except UnicodeEncodeError as error:
        raise InvalidError("cannot use a secret's name: it is not valid Unicode") from error
    return not_taken.sub(lambda found: b"%s%02X" % (mark.encode(), found[0][0]), encoded).decode()


def decode(encoded: str, mark: str) -> str:
    """Return the name that `encode` has encoded with that mark."""
    spelled = re.sub(f"{mark}([0-9A-F]{{2}})", lambda found: chr(int(found[1], 16)), encoded)
    return spelled.encode("latin-1", "replace").decode("utf-8", "replace")


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
        doing = f"read the secret {name!r}"
        try:
            answer = self._call("get_secret_value", {"SecretId": self._id(name)}, doing)
        except RefusedError as error:
            raise MissingError(f"there is no secret {name!r}") from error
        value: bytes = answer.get("SecretBinary") or answer["SecretString"].encode()
        return value

    def put(self, name: str, value: bytes) -> None:
        """Write a secret of at most LIMIT bytes; AWS reserves a deleted name for some seconds."""
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
            if self._write(name, place, content):
                return
            self._services.rest(number)
        raise TemporaryError(f"cannot write the secret {name!r}: it is still being deleted")

    def delete(self, name: str) -> None:
        request = {"SecretId": self._id(name), "ForceDeleteWithoutRecovery": True}
        try:
            self._call("delete_secret", request, f"delete the secret {name!r}")
        except RefusedError:
            return

    def names(self, prefix: str = "") -> Iterator[str]:
        """Yield names in order; changes of the last minutes may be missing."""
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

    def _write(self, name: str, place: str, content: Mapping[str, Any]) -> bool:
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
