"""The program that a person's kubeconfig names, which prints credentials: an exec plugin.

The official client reads its entry. The run is our own: that of the client has no bound in time,
and its loader logs an error and goes on without credentials. The program runs as kubectl runs it,
on the machine and for the person who named it, and nowhere else.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from kubernetes.config import ConfigException
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import ConfigNode

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
    """Run the plugin of an `exec` entry; return what it logs in with, as a kubeconfig has it.

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
        provider.env["KUBERNETES_EXEC_INFO"] = _exec_info(provider, interactive=interactive)
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
        said = "see above" if errors is None else _last_line(errors, list(_secrets(entry)))
        raise DeniedError(f"{what} failed with exit code {code}: {said or 'no message'}; {_AGAIN}")
    return _credentials(output, provider.api_version, what)


def _is_interactive(entry: Mapping[str, Any], what: str, *, terminal: bool) -> bool:
    mode = entry.get("interactiveMode") or "IfAvailable"
    if mode == "Always" and not terminal:
        raise InvalidError(f"{what} needs a terminal: register from one, and by a file")
    return terminal and mode != "Never"


def _exec_info(provider: Any, *, interactive: bool) -> str:
    """Write what Kubernetes tells a plugin about the cluster and the terminal."""
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
    """Run it to its end; what it says on a terminal is not read."""
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


def _credentials(output: str, version: str, what: str) -> dict[str, str]:
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError):
        answer = None
    about = {"kind": "ExecCredential", "apiVersion": version}
    if not isinstance(answer, dict) or about.items() - _texts(answer).items():
        raise InvalidError(f"{what} printed no ExecCredential of {visible(version)}; {_AGAIN}")
    status = _texts(answer.get("status"))
    found = {"token": status.get("token", "")}
    for key, name in (
        ("client-certificate-data", "clientCertificateData"),
        ("client-key-data", "clientKeyData"),
    ):
        found[key] = base64.b64encode(status.get(name, "").encode()).decode()
    if not any(found.values()):
        raise InvalidError(f"{what} printed neither a token nor a client certificate; {_AGAIN}")
    return {key: value for key, value in found.items() if value}


def _texts(given: Any) -> dict[str, str]:
    items = given.items() if isinstance(given, dict) else ()
    return {key: value for key, value in items if isinstance(value, str)}


def _secrets(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the entry hands to the plugin under a name of secrets."""
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
