"""Kubeconfigs without anything that could act on the machine that reads them.

A kubeconfig is a program as much as a document: it can name commands to run and files to read.
Registered ones are stored and read in a cloud function, so only an address, an HTTP proxy and
credentials by value are accepted. The rest is refused with a reason, never dropped: without its
`as`, for example, a kubeconfig would do something else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import urlsplit

from bellhop.clusters.proxy_url import read_proxy_url, shown_proxy
from bellhop.core.address_policy import PUBLIC, AddressPolicy
from bellhop.core.structs import Redacted
from bellhop.errors import InvalidError, TooLargeError

LARGEST = 1 << 20
"""Bytes of a kubeconfig, and of a certificate file that it names."""

NO_KUBECONFIG = "this is not a kubeconfig; give the output of `kubectl config view --raw --flatten`"

_NAMED_AT_MOST = 20
_VERSION_LENGTH = 32
_JWT_PARTS = 3
_FLATTEN = "embed it with `kubectl config view --raw --flatten`"
_TOKEN = "make a service account token with `kubectl create token` and put it in `token`"  # noqa: S105 - advice

_CLUSTER_REFUSED = {
    "certificate-authority": f"names a file on another machine; {_FLATTEN}",
    "insecure-skip-tls-verify": "would send the credentials to any server that answers; give"
    " `certificate-authority-data` instead",
}
_USER_REFUSED = {
    "exec": f"runs a program on the machine that reads it; {_TOKEN}",
    "auth-provider": f"runs code on the machine that reads it; {_TOKEN}",
    "tokenFile": "names a file on another machine; put its content in `token`",
    "client-certificate": f"names a file on another machine; {_FLATTEN}",
    "client-key": f"names a file on another machine; {_FLATTEN}",
    "username": f"is a password login, which API servers no longer take; {_TOKEN}",
    "password": f"is a password login, which API servers no longer take; {_TOKEN}",
    **dict.fromkeys(
        ("as", "as-groups", "as-uid", "as-user-extra"),
        "acts as somebody else, so that the stored credentials have more rights than it shows; "
        "give the credentials of that user instead",
    ),
}
_CLUSTER_TAKEN = {"server", "certificate-authority-data", "tls-server-name", "proxy-url"}
_USER_TAKEN = {"token", "client-certificate-data", "client-key-data"}
_PASSING = {
    "k8s-aws-v1.": "`aws eks get-token` has made, and ends within fifteen minutes; on AWS, give"
    " `bellhop register cluster-eks` instead",
    "ya29.": "`gcloud` has made, and ends within an hour; on Google Cloud, give"
    " `bellhop register cluster-gke` instead",
}
"""Prefixes of tokens by which clouds authenticate people."""

# Fields of kubectl and its wrappers that change neither address nor user of a call.
_HARMLESS = {"extensions", "disable-compression"}

_PEM = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----(?P<body>[A-Za-z0-9+/=\s]++)-----END (?P=label)-----"
)
_PATH = re.compile(r"[A-Za-z0-9._~:/-]*")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


class Kubeconfig(Redacted, frozen=True):
    """One cluster's address and credentials by value; data fields are base64 of PEM."""

    secret_fields: ClassVar[Collection[str]] = (
        "ca_data",
        "token",
        "client_certificate_data",
        "client_key_data",
        "proxy_url",
    )
    server: str
    ca_data: str = ""
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    tls_server_name: str = ""
    proxy_url: str = ""

    def describe(self) -> str:
        """Say in a few words where it leads and how it logs in; safe for logs."""
        login = [
            words
            for words, value in (
                ("a token", self.token),
                ("a client certificate", self.client_certificate_data),
            )
            if value
        ]
        trust = (
            "its own certificate authority" if self.ca_data else "public certificate authorities"
        )
        way = f", by the proxy {shown_proxy(self.proxy_url)}" if self.proxy_url else ""
        return f"{self.server} with {' and '.join(login)}, trusting {trust}{way}"

    @property
    def ends_at(self) -> datetime | None:
        """Return when the first of its credentials ends, as far as they say so themselves.

        Nothing is verified.
        """
        ends = filter(None, (self._token_ends_at, self._certificate_ends_at))
        return min(ends, default=None)

    @property
    def _token_ends_at(self) -> datetime | None:
        parts = self.token.split(".")
        if len(parts) != _JWT_PARTS:
            return None
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        try:
            return datetime.fromtimestamp(json.loads(base64.urlsafe_b64decode(padded))["exp"], UTC)
        except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
            return None

    @property
    def _certificate_ends_at(self) -> datetime | None:
        if not self.client_certificate_data:
            return None
        from cryptography import x509  # noqa: PLC0415 - 15 MB of library

        try:
            pem = base64.b64decode(self.client_certificate_data)
            return x509.load_pem_x509_certificate(pem).not_valid_after_utc
        except ValueError:
            return None

    @property
    def version(self) -> str:
        """Return a digest of credentials and addresses, which shows nothing of them."""
        content = json.dumps(self.to_dict(), sort_keys=True).encode()
        return hashlib.sha256(content).hexdigest()[:_VERSION_LENGTH]

    def to_dict(self) -> dict[str, Any]:
        """Write the smallest kubeconfig that kubectl takes; it holds the credentials."""
        cluster = {
            "server": self.server,
            "certificate-authority-data": self.ca_data,
            "tls-server-name": self.tls_server_name,
            "proxy-url": self.proxy_url,
        }
        user = {
            "token": self.token,
            "client-certificate-data": self.client_certificate_data,
            "client-key-data": self.client_key_data,
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cluster", "cluster": _filled(cluster)}],
            "users": [{"name": "bellhop", "user": _filled(user)}],
            "contexts": [{"name": "bellhop", "context": {"cluster": "cluster", "user": "bellhop"}}],
            "current-context": "bellhop",
        }


def sanitise(
    text_or_dict: str | bytes | Mapping[str, Any],
    *,
    context: str | None = None,
    reach: AddressPolicy = PUBLIC,
) -> Kubeconfig:
    """Read address and credentials of one context, by default the current one.

    `reach` is the address policy; a composition on one machine passes its own.

    Raises:
        InvalidError: it is malformed, or has refused fields; the message says what to do and never
            quotes a value.
    """
    document = _document(text_or_dict)
    chosen = _context(document, context)
    cluster = _entry(document, "clusters", "cluster", str(chosen.get("cluster") or ""))
    user = _entry(document, "users", "user", str(chosen.get("user") or ""))
    _refuse(cluster, _CLUSTER_REFUSED, _CLUSTER_TAKEN, "cluster")
    _refuse(user, _USER_REFUSED, _USER_TAKEN, "user")
    server = _server(_text(cluster, "server", "cluster"), reach)
    kubeconfig = Kubeconfig(
        server=server,
        ca_data=_pem(cluster, "certificate-authority-data", "cluster", "CERTIFICATE"),
        token=_token(_text(user, "token", "user")),
        client_certificate_data=_pem(user, "client-certificate-data", "user", "CERTIFICATE"),
        client_key_data=_pem(user, "client-key-data", "user", "PRIVATE KEY"),
        tls_server_name=_tls_server_name(_text(cluster, "tls-server-name", "cluster")),
        proxy_url=read_proxy_url(_text(cluster, "proxy-url", "cluster"), server, reach),
    )
    _require_login(kubeconfig)
    return kubeconfig


def refuse_passing(kubeconfig: Kubeconfig) -> None:
    """Refuse a token that a cloud issued to a person's session, and that ends with it.

    Raises:
        InvalidError: it is such a token; the message says what to do.
    """
    for beginning, what in _PASSING.items():
        if kubeconfig.token.startswith(beginning):
            raise InvalidError(f"is one that {what}, else {_TOKEN}", where="user.token")


def parse(text: str | bytes) -> Any:
    """Read the JSON or YAML of a kubeconfig, which needs no anchors, depth or long numbers.

    Raises:
        TooLargeError: it has more than LARGEST bytes.
        InvalidError: it is neither, or holds what only makes a reader work.
    """
    if len(text) > LARGEST:
        raise TooLargeError(f"the kubeconfig has more than {LARGEST} bytes")
    with suppress(ValueError, RecursionError):
        return json.loads(text)  # As we store them: a cold stage loads no reader of YAML for it.
    from bellhop.clusters.kubeconfig_yaml import read_yaml  # noqa: PLC0415 - slow, and only for people's input

    return read_yaml(text)


def _filled(entry: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in entry.items() if value}


def _document(given: str | bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        given = parse(given)
    if not isinstance(given, Mapping):
        raise InvalidError(NO_KUBECONFIG)
    return given


def _context(document: Mapping[str, Any], requested: str | None) -> Mapping[str, Any]:
    contexts = _index_by_name(document, "contexts", "context")
    name = requested or str(document.get("current-context") or "")
    if not name and len(contexts) == 1:
        name = next(iter(contexts))
    if name in contexts:
        return contexts[name]
    if not contexts:
        raise InvalidError(
            "the kubeconfig has no contexts; give the whole output of "
            "`kubectl config view --raw --flatten --minify`"
        )
    known = ", ".join(f"'{each}'" for each in list(contexts)[:_NAMED_AT_MOST])
    problem = f"has no context '{name}'" if name else "has no current context"
    raise InvalidError(f"the kubeconfig {problem}; choose one of {known}")


def _index_by_name(
    document: Mapping[str, Any], plural: str, singular: str
) -> dict[str, Mapping[str, Any]]:
    """Index a list of `{name, singular: {…}}`; the first of a name counts, as for kubectl."""
    entries = document.get(plural) or []
    if not isinstance(entries, list):
        raise InvalidError("is not a list", where=plural)
    found: dict[str, Mapping[str, Any]] = {}
    for index, entry in enumerate(entries):
        value = (entry.get(singular) or {}) if isinstance(entry, Mapping) else None
        if not isinstance(value, Mapping):
            raise InvalidError(
                f"is not a mapping with `name` and `{singular}`", where=f"{plural}[{index}]"
            )
        found.setdefault(str(entry.get("name") or ""), value)
    return found


def _entry(document: Mapping[str, Any], plural: str, singular: str, name: str) -> Mapping[str, Any]:
    entries = _index_by_name(document, plural, singular)
    if name not in entries or not name:
        raise InvalidError(f"the kubeconfig has no {singular} '{name}', which its context names")
    return entries[name]


def _refuse(
    entry: Mapping[str, Any], refused: Mapping[str, str], taken: set[str], where: str
) -> None:
    for key, reason in refused.items():
        if entry.get(key):
            raise InvalidError(f"`{key}` is refused: it {reason}", where=where)
    for key, value in entry.items():
        if value and key not in taken and key not in refused and key not in _HARMLESS:
            raise InvalidError(
                f"`{key}` is not known; only {', '.join(sorted(taken))} are taken", where=where
            )


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidError(f"`{key}` is not a text", where=where)
    return value.strip()


def _server(server: str, reach: AddressPolicy) -> str:
    where = "cluster.server"
    try:
        parts = urlsplit(server)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = None, "", None
    if parts is None or not host or parts.scheme not in {"https", "http"} or port == 0:
        raise InvalidError("is not an address such as `https://10.0.0.1:6443`", where=where)
    if "@" in parts.netloc or parts.query or parts.fragment or not server.isprintable():
        raise InvalidError("may have a host, a port and a path, and nothing else", where=where)
    refusal = reach.refusal(host)
    if refusal:
        raise InvalidError(
            f"the host {refusal}; give the address where the API server is reached", where=where
        )
    # An address that only one machine may call is that machine.
    if parts.scheme == "http" and not PUBLIC.refusal(host):
        raise InvalidError(
            "is http, which would send the credentials in clear; use https", where=where
        )
    if not _plain_path(parts.path):
        raise InvalidError("has a path that leads elsewhere", where=where)
    # A scheme may be written in any case; comparisons use lower case.
    return f"{parts.scheme}:{server.partition(':')[2]}".rstrip("/")


def _plain_path(path: str) -> bool:
    """Say if a gateway's path is what it looks like, without steps up or escapes."""
    return bool(_PATH.fullmatch(path)) and not {".", ".."} & set(path.split("/"))


def _token(token: str) -> str:
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise InvalidError(
            "has characters that cannot stand in a header; copy the token again", where="user.token"
        )
    return token


def _tls_server_name(name: str) -> str:
    if name and not _HOST_NAME.fullmatch(name):
        raise InvalidError("is not a host name", where="cluster.tls-server-name")
    return name


def _pem(entry: Mapping[str, Any], key: str, where: str, label: str) -> str:
    """Check base64 of PEM of DER by its shape; only TLS itself finds out whether it is valid."""
    data = "".join(_text(entry, key, where).split())
    if not data:
        return ""
    place = f"{where}.{key}"
    try:
        text = base64.b64decode(data, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        text = None
    if text is None:
        raise InvalidError("is not base64 of a PEM file", where=place)
    blocks = list(_PEM.finditer(text))
    requested = [block["body"] for block in blocks if block["label"].endswith(label)]
    if not requested:
        raise InvalidError(f"has no PEM block `{label}`", where=place)
    if len(blocks) != text.count("-----BEGIN ") or not all(map(_whole_der, requested)):
        raise InvalidError("has a PEM block that is cut or damaged", where=place)
    return data


def _whole_der(body: str) -> bool:
    """Say if it is base64 of one ASN.1 sequence of just the length that it names itself."""
    try:
        der = base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error:
        return False
    if len(der) < 2 or der[0] != 0x30:  # noqa: PLR2004 - ASN.1's tag and length
        return False
    octets = der[1] & 0x7F if der[1] & 0x80 else 0
    length = int.from_bytes(der[2 : 2 + octets], "big") if octets else der[1]
    return len(der) == 2 + octets + length


def _require_login(kubeconfig: Kubeconfig) -> None:
    if bool(kubeconfig.client_certificate_data) != bool(kubeconfig.client_key_data):
        raise InvalidError(
            "needs both `client-certificate-data` and `client-key-data`, or neither", where="user"
        )
    if not kubeconfig.token and not kubeconfig.client_certificate_data:
        raise InvalidError(f"has no credentials; {_TOKEN}", where="user")
