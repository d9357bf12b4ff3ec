"""Shared by tests of logins: kubeconfigs that log a person in, and the plugins that they run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

VERSION = "client.authentication.k8s.io/v1beta1"


def write(
    folder: Path, user: dict[str, Any], server: str = "https://127.0.0.1:1", ca: str = ""
) -> Path:
    """Write a kubeconfig whose user logs in."""
    cluster = {"server": server, **({"certificate-authority-data": ca} if ca else {})}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "person.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def plugin(folder: Path, program: str, **entry: Any) -> dict[str, Any]:
    """Write an exec plugin in Python beside the kubeconfig; return the user that runs it."""
    (folder / "plugin").write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{program}\n")
    (folder / "plugin").chmod(0o700)
    return {"exec": {"apiVersion": VERSION, "command": "./plugin", **entry}}


def answer(**status: Any) -> str:
    """Write the program that answers as `aws eks get-token` does."""
    credential = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(credential)!r})"
