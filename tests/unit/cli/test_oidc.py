"""Tokens of an OpenID Connect provider: refreshed where they can be, else a sentence says why."""

from __future__ import annotations

import base64
import gc
import json
import ssl
import threading
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.cli.credentials import read_kubeconfig
from bellhop.cli.login import THREAD
from bellhop.errors import DeniedError, InvalidError, UnreachableError
from tests.lab.http_server import HttpServer, Request, Response
from tests.unit.cli.logins import write

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def token(ends_in: timedelta) -> str:
    """Make a token that says when it ends; only an API server would look at its signature."""
    parts = ({"alg": "none"}, {"exp": int((datetime.now(UTC) + ends_in).timestamp())}, {})
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )


class Provider(HttpServer):
    """An OpenID Connect provider that gives a new token for each refresh token of its own."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(tls)
        self.valid = "refresh-1"
        self.hangs = threading.Event()
        self.goes_on = threading.Event()
        self.fresh = token(DAY)

    def respond(self, request: Request) -> Response:
        """Describe itself, or refresh."""
        if self.hangs.is_set():
            self.goes_on.wait(30)
        if request.target == "/.well-known/openid-configuration":
            return Response.of(200, {"token_endpoint": f"{self.address}/token"})
        form = parse_qs(request.body.decode())
        if form["refresh_token"] != [self.valid]:
            return Response.of(400, {"error": "invalid_grant"})
        tokens = {"id_token": self.fresh, "refresh_token": "refresh-2", "access_token": "a"}
        return Response.of(200, {**tokens, "token_type": "Bearer"})


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """The authority of the provider, in a folder with its certificate and key."""
    made = make_authority("provider", now=NOW, validity=DAY)
    certificate, key = issue(made, ["127.0.0.1"], now=NOW, validity=DAY)
    (tmp_path / "server.pem").write_bytes(certificate + key)
    (tmp_path / "authority.pem").write_bytes(made.certificate_pem)
    return tmp_path / "authority.pem"


@pytest.fixture
def _nothing_left() -> Iterator[None]:
    """The official client closes no connection: the sockets go here, and in no later test."""
    yield
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def provider(authority: Path, _nothing_left: None) -> Iterator[Provider]:
    """A provider that runs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.parent / "server.pem")
    with Provider(context) as running:
        yield running
        running.goes_on.set()


def user(provider: Provider, authority: Path | None, **config: str) -> dict[str, Any]:
    """Return a user of the provider; values that are empty are left out."""
    data = base64.b64encode(authority.read_bytes()).decode() if authority else ""
    known = {
        "idp-issuer-url": provider.address,
        "client-id": "kubectl",
        "id-token": token(-DAY),
        "refresh-token": "refresh-1",
        "idp-certificate-authority-data": data,
        **config,
    }
    return {"auth-provider": {"name": "oidc", "config": {k: v for k, v in known.items() if v}}}


def test_uses_a_token_that_counts(provider: Provider, tmp_path: Path) -> None:
    """The provider is not asked: this one's authority is not even known."""
    valid = token(DAY)
    path = write(tmp_path, user(provider, None, **{"id-token": valid}))
    given = read_kubeconfig(path, None)

    assert (given.kubeconfig.token, given.login) == (valid, True)


def test_refreshes_a_token_and_keeps_it(
    provider: Provider, authority: Path, tmp_path: Path
) -> None:
    """The kubeconfig has the new tokens, as kubectl would leave it: the former ones have ended."""
    path = write(tmp_path, user(provider, authority))
    before = yaml.safe_load(path.read_text())
    given = read_kubeconfig(path, "x")
    after = yaml.safe_load(path.read_text())

    assert given.kubeconfig.token == provider.fresh
    before["users"][0]["user"]["auth-provider"]["config"] |= {
        "id-token": provider.fresh,
        "refresh-token": "refresh-2",
    }
    assert after == before


@pytest.mark.parametrize(
    ("config", "error", "said"),
    [
        pytest.param(
            {"refresh-token": ""},
            DeniedError,
            "has expired or is about to, and there is no refresh token; log in to it as you did",
            id="no refresh token",
        ),
        pytest.param(
            {"refresh-token": "revoked"},
            DeniedError,
            r"refused to refresh the token \(invalid_grant\); log in",
            id="refused",
        ),
        pytest.param(
            {"idp-certificate-authority-data": ""},
            UnreachableError,
            "did not answer as one: TLS failed: its certificate is not trusted",
            id="not trusted",
        ),
        pytest.param(
            {"idp-issuer-url": "https://127.0.0.1:1"},
            UnreachableError,
            "'https://127.0.0.1:1' did not answer as one: the connection is refused",
            id="away",
        ),
        pytest.param({"client-id": ""}, InvalidError, "Expected key client-id", id="no client"),
        pytest.param({"id-token": "a.b"}, InvalidError, "is not a JSON Web Token", id="no token"),
    ],
)
def test_says_why_a_token_is_not_refreshed(
    provider: Provider,
    authority: Path,
    tmp_path: Path,
    config: dict[str, str],
    error: type[Exception],
    said: str,
) -> None:
    """The kubeconfig and the provider are named, no token is quoted."""
    path = write(tmp_path, user(provider, authority, **config))

    with pytest.raises(error, match=said) as raised:
        read_kubeconfig(path, None)

    assert f"cannot log in by the kubeconfig '{path}'" in str(raised.value)
    assert "refresh-1" not in str(raised.value)


def test_a_provider_that_does_not_refresh_leaves_no_old_token(
    provider: Provider, authority: Path, tmp_path: Path
) -> None:
    """A new token that has expired is none."""
    provider.fresh = token(-DAY)

    with pytest.raises(DeniedError, match="did not refresh the token, which has expired"):
        read_kubeconfig(write(tmp_path, user(provider, authority)), None)


def test_a_provider_that_hangs_keeps_nobody_waiting(
    provider: Provider, authority: Path, tmp_path: Path
) -> None:
    """The official client would wait for ever."""
    provider.hangs.set()

    with pytest.raises(UnreachableError, match="took longer than 1 s to answer"):
        read_kubeconfig(
            write(tmp_path, user(provider, authority)), None, patience=timedelta(seconds=1)
        )


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("gcp", "gcloud container clusters get-credentials"),
        ("azure", "kubelogin convert-kubeconfig"),
        ("other", "use an exec plugin"),
    ],
)
def test_says_what_replaces_the_providers_that_kubernetes_has_dropped(
    tmp_path: Path, name: str, cure: str
) -> None:
    """They ran programs, and kubectl has none of them since 1.26."""
    entry = {"auth-provider": {"name": name, "config": {"cmd-path": "/bin/false"}}}

    with pytest.raises(InvalidError, match=cure):
        read_kubeconfig(write(tmp_path, entry), None)
