"""A person's token of an OpenID Connect provider, which the official client refreshes.

That is the `auth-provider` entry `oidc` of a kubeconfig. Those of clouds ran programs, and were
taken out of Kubernetes 1.26: their exec plugins replace them.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any

import certifi
from kubernetes.client import Configuration
from kubernetes.client.exceptions import OpenApiException
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import EXPIRY_SKEW_PREVENTION_DELAY, KubeConfigLoader
from oauthlib.oauth2 import OAuth2Error
from requests import RequestException
from urllib3.exceptions import HTTPError

from bellhop.adapters.egress.failures import cause, happened
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.printable import visible
from bellhop.errors import DeniedError, InvalidError, UnreachableError

_AGAIN = "log in to it as you did before, and register again"
_AUTHORITY = "idp-certificate-authority"
_NAME = "login"
_REPLACED = {
    "gcp": "write the kubeconfig again with `gcloud container clusters get-credentials`",
    "azure": "convert the kubeconfig with `kubelogin convert-kubeconfig`",
}

THREAD = "bellhop-oidc"
"""The name of the thread that waits for a provider."""

Keep = Callable[[Mapping[str, str]], None]


def refresh(entry: Mapping[str, Any], keep: Keep, *, patience: timedelta) -> str:
    """Return the token of an `auth-provider` entry, refreshed if it ends within five minutes.

    `keep` stores the tokens of a refresh: many providers end the former ones.

    Raises:
        InvalidError: the entry is malformed, or of another provider than `oidc`.
        DeniedError: the token has expired, and there is no refresh token or it is refused.
        UnreachableError: the provider does not answer, or takes longer than `patience`.
    """
    name, given = str(entry.get("name")), entry.get("config")
    if name != "oidc" or not isinstance(given, dict):
        cure = _REPLACED.get(name, "use an exec plugin")
        raise InvalidError(
            f"the auth-provider '{visible(name)}' is not one that Kubernetes still has; {cure}"
        )
    config = _complete(given)
    what = f"the OpenID Connect provider '{visible(str(config.get('idp-issuer-url')))}'"
    before = dict(config)
    if _ends_soon(config["id-token"]) and not config.get("refresh-token"):
        raise DeniedError(
            f"the token of {what} has expired or is about to, and there is no refresh token;"
            f" {_AGAIN}"
        )
    token = _bounded(lambda: _load(config, what), what, patience)
    if _ends_soon(token, timedelta(0)):
        raise DeniedError(f"{what} did not refresh the token, which has expired; {_AGAIN}")
    changed = {key: config[key] for key in config if config[key] != before.get(key)}
    if changed:
        keep(changed)
    return token


def _complete(given: Mapping[str, Any]) -> dict[str, Any]:
    """Add what the official client does not do without.

    A public client has no secret. Without an authority it would not verify the provider at all.
    """
    trusted = ssl.get_default_verify_paths().cafile or certifi.where()
    authority = {} if given.get("idp-certificate-authority-data") else {_AUTHORITY: trusted}
    return {"id-token": "", "client-secret": "", **authority, **given}


def _ends_soon(token: Any, within: timedelta = EXPIRY_SKEW_PREVENTION_DELAY) -> bool:
    ends_at = Kubeconfig("", token=str(token)).ends_at
    return ends_at is not None and ends_at - within <= datetime.now(UTC)


def _load(config: dict[str, Any], what: str) -> str:
    """Have the official client read the token, and refresh it in `config`."""
    user = {"auth-provider": {"name": "oidc", "config": config}}
    document = {
        "clusters": [{"name": _NAME, "cluster": {}}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    loaded = Configuration()
    try:
        KubeConfigLoader(document).load_and_set(loaded)
    except OAuth2Error as error:
        raise DeniedError(
            f"{what} refused to refresh the token ({visible(str(error.error))}); {_AGAIN}"
        ) from error
    except (HTTPError, OpenApiException, RequestException, OSError) as error:
        raise UnreachableError(
            f"{what} did not answer as one: {_happened(error)}; check its address and its"
            " certificate authority"
        ) from error
    except (ConfigException, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidError(f"{what} or its entry is malformed ({error}); {_AGAIN}") from error
    token = str(loaded.api_key.get("BearerToken", "")).removeprefix("Bearer ")
    if not token:
        raise InvalidError(f"the `id-token` of {what} is not a JSON Web Token; {_AGAIN}")
    return token


def _bounded(work: Callable[[], str], what: str, patience: timedelta) -> str:
    """Do what the official client gives no bound in time; a thread that hangs ends with us."""
    done: Future[str] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            done.set_exception(error)

    Thread(target=run, name=THREAD, daemon=True).start()
    seconds = patience.total_seconds()
    try:
        return done.result(seconds)
    except TimeoutError as error:
        raise UnreachableError(f"{what} took longer than {seconds:g} s to answer") from error


def _happened(error: Exception) -> str:
    """Return what became of a request, in words."""
    status = getattr(error, "status", None)
    return f"its answer has the HTTP status {status}" if status else happened(cause(error))
