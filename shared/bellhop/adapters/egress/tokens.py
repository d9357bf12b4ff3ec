"""Authentication at a registry, as its challenge demands: basic, or a token of a token server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from bellhop.adapters.egress.download import origin, shown
from bellhop.adapters.egress.source_client import (
    Limits,
    SourceClient,
    basic,
    bearer,
    is_token,
    json_object,
)
from bellhop.errors import InvalidError

_TOKEN = Limits(1 << 20, 30.0)
_LONGEST = 8 << 10
_BEARER = re.compile(r"\bbearer\s+(\w+=.*)", re.IGNORECASE | re.DOTALL)
_BASIC = re.compile(r"(?:^|,)\s*basic\b", re.IGNORECASE)
_PARAMETER = re.compile(r'\b(\w+)=(?:"([^"]*)"|([^\s,"]+))')


def authorization(client: SourceClient, url: str, challenge: str) -> dict[str, str]:
    """Return the header that answers the challenge of `url`; none if there is no answer.

    A client's own token is for the registry itself, and exchanged for no other.

    Raises:
        UnauthorizedError, DeniedError: the token server refuses the credentials.
        InvalidError: the token server has no TLS, may not be called, or returns no token.
        UnreachableError: it does not answer.
    """
    if client.token:
        return client.credentials()
    asked = _BEARER.search(challenge[:_LONGEST])
    if asked:
        found = _PARAMETER.findall(asked[1])
        return _token(client, url, {name.lower(): quoted or bare for name, quoted, bare in found})
    return basic(client.login) if _BASIC.search(challenge[:_LONGEST]) else {}


def _token(client: SourceClient, url: str, challenge: Mapping[str, str]) -> dict[str, str]:
    realm = challenge.get("realm", "")
    scheme, host, _ = origin(realm)
    if scheme != "https" and not (client.login.plain and host == origin(url)[1]):
        raise InvalidError(
            f"{client.task}: its token server {shown(realm)} has no TLS; have the registry name an"
            " https:// one"
        )
    query = urlencode({name: challenge[name] for name in ("service", "scope") if name in challenge})
    between = "&" if urlsplit(realm).query else "?"
    answer = client.content(f"{realm}{between}{query}", _TOKEN, basic(client.login))
    parsed = json_object(answer)
    token = parsed.get("token") or parsed.get("access_token")
    if not is_token(token):
        raise InvalidError(
            f"{client.task}: its token server {shown(realm)} answers without a token"
        )
    return bearer(str(token))
