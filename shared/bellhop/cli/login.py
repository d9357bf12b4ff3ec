"""Logins of a person by a kubeconfig: its exec plugin, or its OpenID Connect provider.

The official client reads the entry of a plugin. The run is our own: that of the client has no bound
in time, and its loader logs an error and goes on without credentials. The program runs as kubectl
runs it, on the machine and for the person who named it, and nowhere else.

The official client refreshes the token of the `auth-provider` entry `oidc`. Those of clouds ran
programs, and were taken out of Kubernetes 1.26: their exec plugins replace them.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import certifi
from kubernetes.client import Configuration
from kubernetes.client.exceptions import OpenApiException
from kubernetes.config import ConfigException
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import EXPIRY_SKEW_PREVENTION_DELAY, ConfigNode, KubeConfigLoader
from oauthlib.oauth2 import OAuth2Error
from requests import RequestException
from urllib3.exceptions import HTTPError

from bellhop.adapters.egress.answer import cause, happened
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.printable import visible
from bellhop.errors import DeniedError, InvalidError, MissingError, UnreachableError

_CONFIG = "client.authentication.k8s.io/exec"
_AGAIN = "run `kubectl get namespaces` with this kubeconfig until it answers, and register again"
_LONGEST = 300
"""Characters that are quoted of what a plugin says."""

_SECRET_NAME = re.compile(r"secret|token|passw|key|credential", re.IGNORECASE)
_SECRET = re.compile(r"eyJ[\w-]+(\.[\w-]+)*|(k8s-aws-v1|ya29)\.[\w-]+")
"""Tokens, as API servers and clouds make them."""


def run_plugin(
    entry: Mapping[str, Any],
    cluster: Mapping[str, Any],
    folder: Path | None,
    *,
    terminal: bool,
    patience: timedelta,
) -> dict[str, str]:
    """Run the plugin of an `exec` entry; return its credentials as a kubeconfig has them.

    A relative path in the entry starts in `folder`. The plugin has the `terminal` to itself if
    there is one and the entry allows it.

    Raises:
        InvalidError: the entry is malformed, or the plugin prints no ExecCredential.
        MissingError: the plugin is not installed.
        DeniedError: it fails; its last line is quoted.
        UnreachableError: it takes longer than `patience`.
    """
    what = f"the exec plugin '{visible(str(entry.get('command')))}'"
    try:
        provider = ExecProvider(ConfigNode("exec", entry), folder, ConfigNode("cluster", cluster))
        interactive = _is_interactive(entry, what, terminal=terminal)
        provider.env["KUBERNETES_EXEC_INFO"] = _format_exec_info(provider, interactive=interactive)
        code, output, errors = _run(provider, patience, interactive=interactive)
    except (ConfigException, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidError(f"{what} is not described as kubectl wants it: {error}") from error
    except FileNotFoundError as error:
        hint = visible(str(entry.get("installHint") or "install it, and look at PATH"))
        raise MissingError(f"{what} is not installed: {hint[:_LONGEST]}") from error
    except OSError as error:
        raise InvalidError(f"{what} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        seconds = patience.total_seconds()
        raise UnreachableError(
            f"{what} took longer than {seconds:g} s and was ended; {_AGAIN}"
        ) from error
    if code:
        said = "see above" if errors is None else _last_line(errors, list(_list_secrets(entry)))
        raise DeniedError(f"{what} failed with exit code {code}: {said or 'no message'}; {_AGAIN}")
    return _read_credentials(output, provider.api_version, what)


def _is_interactive(entry: Mapping[str, Any], what: str, *, terminal: bool) -> bool:
    mode = entry.get("interactiveMode") or "IfAvailable"
    if mode == "Always" and not terminal:
        raise InvalidError(f"{what} needs a terminal: register from one, and by a file")
    return terminal and mode != "Never"


def _format_exec_info(provider: Any, *, interactive: bool) -> str:
    """Write the description of cluster and terminal that a plugin gets from Kubernetes."""
    spec: dict[str, Any] = {"interactive": interactive}
    if provider.cluster:
        cluster = dict(provider.cluster.value)
        for extension in cluster.pop("extensions", None) or ():
            if extension["name"] == _CONFIG:
                cluster["config"] = extension["extension"]
        spec["cluster"] = cluster
    about = {"apiVersion": provider.api_version, "kind": "ExecCredential", "spec": spec}
    return json.dumps(about)


def _run(provider: Any, patience: timedelta, *, interactive: bool) -> tuple[int, str, str | None]:
    """Run the plugin to its end; its messages on a terminal are not read."""
    process = subprocess.Popen(  # noqa: S603 - the person named it, as for kubectl
        provider.args,
        stdin=None if interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if interactive else subprocess.PIPE,
        cwd=provider.cwd,
        env=provider.env,
        text=True,
        errors="replace",
        # A group of its own ends whole; on a terminal it would have no right to read from that.
        start_new_session=not interactive,
    )
    with process:
        try:
            output, errors = process.communicate(timeout=patience.total_seconds())
        except BaseException:
            with suppress(ProcessLookupError):
                process.kill() if interactive else os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output, errors


def _read_credentials(output: str, version: str, what: str) -> dict[str, str]:
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError):
        answer = None
    about = {"kind": "ExecCredential", "apiVersion": version}
    if not isinstance(answer, dict) or about.items() - _select_texts(answer).items():
        raise InvalidError(f"{what} printed no ExecCredential of {visible(version)}; {_AGAIN}")
    status = _select_texts(answer.get("status"))
    found = {"token": status.get("token", "")}
    for key, name in (
        ("client-certificate-data", "clientCertificateData"),
        ("client-key-data", "clientKeyData"),
    ):
        found[key] = base64.b64encode(status.get(name, "").encode()).decode()
    if not any(found.values()):
        raise InvalidError(f"{what} printed neither a token nor a client certificate; {_AGAIN}")
    return {key: value for key, value in found.items() if value}


def _select_texts(given: Any) -> dict[str, str]:
    items = given.items() if isinstance(given, dict) else ()
    return {key: value for key, value in items if isinstance(value, str)}


def _list_secrets(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values that the entry passes to the plugin under a name of secrets."""
    arguments = [str(each) for each in entry.get("args") or ()]
    pairs = [(each["name"], each["value"]) for each in entry.get("env") or ()]
    pairs += [(name, value) for name, value in pairwise(arguments) if "=" not in name]
    pairs += [(name, value) for name, _, value in (each.partition("=") for each in arguments)]
    yield from (value for name, value in pairs if value and _SECRET_NAME.search(name))


def _last_line(errors: str, secrets: Sequence[str]) -> str:
    last = next(filter(None, map(str.strip, reversed(errors.splitlines()))), "")
    for secret in secrets:
        last = last.replace(secret, "<hidden>")
    return visible(_SECRET.sub("<hidden>", last)[:_LONGEST])


_LOG_IN = "log in to it as you did before, and register again"
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
    config = _add_defaults(given)
    what = f"the OpenID Connect provider '{visible(str(config.get('idp-issuer-url')))}'"
    before = dict(config)
    if _ends_soon(config["id-token"]) and not config.get("refresh-token"):
        raise DeniedError(
            f"the token of {what} has expired or is about to, and there is no refresh token;"
            f" {_LOG_IN}"
        )
    token = _run_bounded(lambda: _load(config, what), what, patience)
    if _ends_soon(token, timedelta(0)):
        raise DeniedError(f"{what} did not refresh the token, which has expired; {_LOG_IN}")
    changed = {key: config[key] for key in config if config[key] != before.get(key)}
    if changed:
        keep(changed)
    return token


def _add_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """Add the fields that the official client requires.

    A public client has no secret. Without an authority it would not verify the provider at all.
    """
    trusted = ssl.get_default_verify_paths().cafile or certifi.where()
    authority = {} if given.get("idp-certificate-authority-data") else {_AUTHORITY: trusted}
    return {"id-token": "", "client-secret": "", **authority, **given}


def _ends_soon(token: Any, within: timedelta = EXPIRY_SKEW_PREVENTION_DELAY) -> bool:
    ends_at = Kubeconfig("", token=str(token)).ends_at
    return ends_at is not None and ends_at - within <= datetime.now(UTC)


def _load(config: dict[str, Any], what: str) -> str:
    """Read the token with the official client, which refreshes it in `config`."""
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
            f"{what} refused to refresh the token ({visible(str(error.error))}); {_LOG_IN}"
        ) from error
    except (HTTPError, OpenApiException, RequestException, OSError) as error:
        raise UnreachableError(
            f"{what} did not answer as one: {_describe_error(error)}; check its address and its"
            " certificate authority"
        ) from error
    except (ConfigException, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidError(f"{what} or its entry is malformed ({error}); {_LOG_IN}") from error
    token = str(loaded.api_key.get("BearerToken", "")).removeprefix("Bearer ")
    if not token:
        raise InvalidError(f"the `id-token` of {what} is not a JSON Web Token; {_LOG_IN}")
    return token


def _run_bounded(work: Callable[[], str], what: str, patience: timedelta) -> str:
    """Run a call of the official client with a time limit; a thread that hangs ends with us."""
    done: Future[str] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            done.set_exception(error)

    Thread(target=run, name=THREAD, daemon=True).start()
    seconds = patience.total_seconds()
    try:
        return done.result(seconds)
    except TimeoutError as error:
        raise UnreachableError(f"{what} took longer than {seconds:g} s to answer") from error


def _describe_error(error: Exception) -> str:
    status = getattr(error, "status", None)
    return f"its answer has the HTTP status {status}" if status else happened(cause(error))
