"""Read what Terraform has set in a function's environment, beside the settings."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import urlsplit

from bellhop.core.address_policy import LOCAL, PUBLIC, AddressPolicy
from bellhop.errors import InvalidError
from bellhop.state.messages import CHARTS, INBOXES
from bellhop.state.sealer import Sealer

KEY_BYTES = 32

Range: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def given(environment: Mapping[str, str], name: str) -> str:
    """Return a variable that must be there.

    Raises:
        InvalidError: it is not set, or empty.
    """
    if not environment.get(name):
        raise InvalidError(f"cannot start: the variable {name} is not set; apply Terraform again")
    return environment[name]


def by_inbox(environment: Mapping[str, str], name: str, what: str) -> Mapping[str, str]:
    """Read a variable that has one of `what` for each inbox, as JSON.

    Raises:
        InvalidError: it is no such thing, or leaves out an inbox.
    """
    try:
        found = dict(json.loads(given(environment, name)))
    except (TypeError, ValueError) as error:
        raise InvalidError(
            f"cannot start: the variable {name} is not a JSON object of inboxes and {what}s"
        ) from error
    missing = ", ".join(sorted(INBOXES.keys() - found))
    if missing:
        raise InvalidError(f"cannot start: the variable {name} has no {what} for {missing}")
    there = [*INBOXES, *({CHARTS} & found.keys())]
    return {inbox: str(found[inbox]) for inbox in there}


def ranges(environment: Mapping[str, str], name: str) -> tuple[Range, ...]:
    """Read a variable that has ranges of addresses with commas between; none if it is not set.

    Raises:
        InvalidError: something of it is no such range.
    """
    texts = [each.strip() for each in environment.get(name, "").split(",") if each.strip()]
    try:
        return tuple(ipaddress.ip_network(each) for each in texts)
    except ValueError as error:
        raise InvalidError(
            f"cannot start: the variable {name} has something that is not a range of"
            " addresses, such as 203.0.113.0/24"
        ) from error


def sealer(read: Callable[[str], bytes], secret: str, of_ingest: str) -> Sealer:
    """Make what opens records, by the keys in secrets that `read` reads by their names.

    Raises:
        InvalidError: what one of them has is no key.
    """
    return Sealer(*(_key(read(name), name) for name in (secret, of_ingest) if name))


def _key(content: bytes, secret: str) -> bytes:
    """Read the content of a secret as a key: 32 bytes, or those in base64."""
    key = content if len(content) == KEY_BYTES else decoded(content)
    if len(key) != KEY_BYTES:
        raise InvalidError(
            f"cannot use the secret '{secret}' as sealing key: it has {len(content)} bytes, not"
            f" {KEY_BYTES}; give back the value this installation was made with"
        )
    return key


def decoded(text: bytes | str) -> bytes:
    """Decode base64; nothing comes of what is none."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def reach_where(endpoint: str) -> AddressPolicy:
    """Say how far calls may go: where the cloud itself is on loopback, so are clusters."""
    host = urlsplit(endpoint).hostname or ""
    return LOCAL if host and PUBLIC.refusal(host) and not LOCAL.refusal(host) else PUBLIC
