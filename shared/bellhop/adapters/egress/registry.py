"""Repositories in OCI registries: manifests and blobs, whose digests are checked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NoReturn
from urllib.parse import urlencode, urlsplit

from msgspec.structs import replace

from bellhop.adapters.egress.answer import Answer
from bellhop.adapters.egress.download import origin, shown
from bellhop.adapters.egress.source_client import (
    Limits,
    SourceClient,
    basic,
    bearer,
    is_token,
    json_object,
)
from bellhop.errors import InvalidError, MissingError

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
        return _request_token(
            client, url, {name.lower(): quoted or bare for name, quoted, bare in found}
        )
    return basic(client.login) if _BASIC.search(challenge[:_LONGEST]) else {}


def _request_token(client: SourceClient, url: str, challenge: Mapping[str, str]) -> dict[str, str]:
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


SCHEME = "oci://"
MANIFEST = Limits(4 << 20, 30.0)

_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_NAME = re.compile(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_ALIASES = {"docker.io": "registry-1.docker.io", "index.docker.io": "registry-1.docker.io"}


class OciRepository:
    """A repository, called for the task of a client; `base` is its address in the registry."""

    def __init__(self, client: SourceClient, host: str, name: str) -> None:
        self.base = f"{'http' if client.login.plain else 'https'}://{host}/v2/{name}"
        origin(self.base)
        # Registries redirect to storage, which refuses credentials beside its signed addresses.
        self._client = replace(client, login=replace(client.login, everywhere=False))
        self._headers: dict[str, str] = {}

    def get(self, url: str, limits: Limits) -> Answer:
        """Send a request, and again with credentials if the registry demands them.

        A server that the registry redirects to is not answered: it would name a token server that
        gets the login.
        """
        # Without it, registries may return manifests of other types.
        accepted = {"Accept": f"{_MANIFEST_TYPE}, */*;q=0.1"}
        answer = self._client.get(url, limits, {**accepted, **self._headers})
        if answer.status != HTTPStatus.UNAUTHORIZED or origin(answer.url) != origin(self.base):
            return answer
        challenge = answer.headers.get("www-authenticate", "")
        self._headers = authorization(self._client, url, challenge)
        if not self._headers:
            return answer
        return self._client.get(url, limits, {**accepted, **self._headers})

    def success(self, answer: Answer, url: str) -> Answer:
        """Return an answer of success; raise the error of another one."""
        if answer.succeeded:
            return answer
        if answer.status == HTTPStatus.NOT_FOUND:
            raise MissingError(
                f"{self._client.task}: the registry does not have it; check its address"
            )
        raise self._client.refusal(answer, url)

    def manifest_url(self, reference: str) -> str:
        """Return the address of the manifest with a tag or digest."""
        return f"{self.base}/manifests/{reference}"

    def manifest(self, answer: Answer, url: str) -> bytes:
        """Return the manifest in an answer.

        Raises:
            InvalidError: it is not the one that the registry says it is.
        """
        content = self.success(answer, url).data
        said = _DIGEST.fullmatch(answer.headers.get("docker-content-digest", ""))
        if said and said[1] != _sha256(content):
            self.refuse("the digest of the manifest is not that of the registry's answer")
        return content

    def digest(self, layer: Mapping[str, Any], of: str) -> str:
        """Return the SHA-256 that a manifest has of a layer; `of` names its content in errors."""
        found = _DIGEST.fullmatch(str(layer.get("digest")))
        if not found:
            self.refuse(f"the manifest has no SHA-256 of the {of}")
        return found[1]

    def blob_url(self, digest: str) -> str:
        """Return the address of the blob with a SHA-256."""
        return f"{self.base}/blobs/sha256:{digest}"

    def blob(self, digest: str, limits: Limits, of: str) -> bytes:
        """Download the blob with a SHA-256; `of` names it in errors."""
        url = self.blob_url(digest)
        content = self.success(self.get(url, limits), url).data
        if _sha256(content) != digest:
            self.refuse(f"the digest of the {of} is not that of the manifest")
        return content

    def refuse(self, why: str) -> NoReturn:
        """Raise the error for a registry that contradicts itself."""
        raise InvalidError(f"{self._client.task}: {why}; do not trust this registry")


def split(address: str, kind: str) -> tuple[str, str]:
    """Return the host of a registry, and the name of a repository in it.

    Raises:
        InvalidError: it has none; the message says which `kind` of content was asked for.
    """
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise InvalidError(f"cannot find a {kind}: the registry's address is invalid") from error
    host, name = parts.netloc.rpartition("@")[2], parts.path.strip("/")
    if not host or not _NAME.fullmatch(name):
        raise InvalidError(
            f"cannot find the {kind} {shown(address)}: no registry has such an address; write"
            " oci://HOST/PATH in lower case"
        )
    return _ALIASES.get(host, host), name


def is_tag(text: str) -> bool:
    return _TAG.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Return whether a text is `sha256:` and a SHA-256 in hexadecimal."""
    return _DIGEST.fullmatch(text) is not None


def layers(manifest: bytes) -> Sequence[Mapping[str, Any]]:
    """Return the descriptors of a manifest's layers; none if it is no manifest."""
    found = json_object(manifest).get("layers")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
