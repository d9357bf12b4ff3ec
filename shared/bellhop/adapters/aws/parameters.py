"""The secret store in Parameter Store, whose standard parameters cost nothing.

A secret is the SecureString `PREFIX/NAME` under the installation's KMS key. In a name, bytes that
Parameter Store does not take, and `_` itself, are written as `_` and two hexadecimal digits. A
value is text: ASCII is stored as it is, other bytes in base64 after `base64:`.

As in Secrets Manager, nothing is kept here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.adapters.aws.secrets import decode, encode
from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.errors import InvalidError, MissingError, TooLargeError

LIMIT = 8192
"""Characters that one parameter may take: up to 4096 it is a standard one."""

_LONGEST_NAME = 900
"""AWS takes 1011 characters, with those of the ARN before the name."""

_NOT_TAKEN = re.compile(rb"[^A-Za-z0-9/.-]")
_MARK = "_"
_BASE64 = "base64:"
_PLAIN = re.compile(rb"(?!base64:)[!-~]([ -~]*[!-~])?")
_NESTED = b"{{"
"""AWS refuses a value with the name of a parameter between such brackets."""

_ABSENT = frozenset({"ParameterNotFound"})


class ParameterSecrets:
    """Named secrets; each is deleted at once, with all its versions.

    `key` is the KMS key that seals them; without one it is the account's own.
    """

    def __init__(self, services: Services, prefix: str, *, key: str = "") -> None:
        self._services = services
        self._prefix = prefix
        self._sealed: Mapping[str, str] = {"KeyId": key} if key else {}

    def read(self, name: str) -> bytes:
        request = {"Name": self._path(name), "WithDecryption": True}
        try:
            answer = self._call("get_parameter", request, f"read the secret {name!r}")
        except RefusedError as error:
            raise MissingError(f"there is no secret {name!r}") from error
        text: str = answer["Parameter"]["Value"]
        if text.startswith(_BASE64):
            return base64.b64decode(text.removeprefix(_BASE64))
        return text.encode()

    def put(self, name: str, value: bytes) -> None:
        """Write a secret of at most LIMIT characters.

        Parameter Store selects the tier: the standard one up to 4096 characters.
        """
        path = self._path(name)
        if not value:
            raise InvalidError(f"cannot write the secret {name!r}: it is empty")
        text = _text_of(value)
        if len(text) > LIMIT:
            raise TooLargeError(
                f"cannot write the secret {name!r}: its {len(text)} characters exceed Parameter"
                f" Store's {LIMIT}; register the cluster with a token in place of certificates, or"
                " apply the module with kubeconfig_store = 'secrets-manager'"
            )
        request = {
            "Name": path,
            "Value": text,
            "Type": "SecureString",
            "Tier": "Intelligent-Tiering",
            "Overwrite": True,
            **self._sealed,
        }
        self._call("put_parameter", request, f"write the secret {name!r}")

    def delete(self, name: str) -> None:
        request = {"Name": self._path(name)}
        try:
            self._call("delete_parameter", request, f"delete the secret {name!r}")
        except RefusedError:
            return

    def names(self, prefix: str = "") -> Iterator[str]:
        """Yield names in order; changes of the last seconds may be missing."""
        request: dict[str, Any] = {"Path": self._prefix, "Recursive": True, "MaxResults": 10}
        start, found = f"{self._prefix}/", set()
        while True:
            # Without decryption: the names only.
            answer = self._call("get_parameters_by_path", request, "list the secrets")
            paths = [each["Name"] for each in answer["Parameters"]]
            found |= {decode(each.removeprefix(start), _MARK) for each in paths}
            if not answer.get("NextToken"):
                break
            request["NextToken"] = answer["NextToken"]
        yield from sorted(each for each in found if each.startswith(prefix))

    def _call(self, operation: str, request: Mapping[str, Any], doing: str) -> dict[str, Any]:
        return self._services.call("ssm", operation, request, doing=doing, taken=_ABSENT)

    def _path(self, name: str) -> str:
        path = f"{self._prefix}/{encode(name, _NOT_TAKEN, _MARK)}"
        if len(path) > _LONGEST_NAME:
            raise InvalidError(
                f"cannot use the secret's name {name!r}: with its prefix it has {len(path)}"
                f" characters, and Parameter Store takes {_LONGEST_NAME}"
            )
        return path


def _text_of(value: bytes) -> str:
    if _PLAIN.fullmatch(value) and _NESTED not in value:
        return value.decode()
    return _BASE64 + base64.b64encode(value).decode()
