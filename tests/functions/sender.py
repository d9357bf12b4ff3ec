"""Who sends for a cluster as its forwarder would: where, and by what, the Secret in it says."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.forwarder.instructions import Instructions, parse
from infra.demo.user import User
from infra.lab.cluster import Cluster
from tests.functions.lab import Lambda

_SECRET = ObjectKey(GVK("", "v1", "Secret"), "bellhop-system", "bellhop-forwarder")

Post = Callable[[Instructions, Mapping[str, Any]], int]


def by_https(instructions: Instructions, body: Mapping[str, Any]) -> int:
    """Send a body to a forwarder's configured address; return the status that answers."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {instructions.token}"}
    request = urllib.request.Request(instructions.ingest_url, json.dumps(body).encode(), headers)
    trust = (
        ssl.create_default_context(cadata=instructions.ingest_ca)
        if instructions.ingest_ca
        else None
    )
    try:
        with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
            status: int = answer.status
    except urllib.error.HTTPError as error:
        return error.code
    return status


def to_lambda(functions: Lambda) -> Post:
    """Return what sends to functions on AWS, whose address leads nowhere here."""

    def send_to_lambda(instructions: Instructions, body: Mapping[str, Any]) -> int:
        name = instructions.cluster.partition("/")[2]
        status: int = functions.send(name, body, instructions.token)["statusCode"]
        return status

    return send_to_lambda


class ClusterSender:
    """A cluster's sender, which reads its configuration again each time."""

    def __init__(self, cluster: Cluster) -> None:
        self._user = User(cluster.kubeconfig())

    def read_instructions(self) -> Instructions:
        """Return what registration has written into the cluster."""
        secret = self._user.get(_SECRET)
        assert secret
        return parse(secret)

    def send(self, item: Mapping[str, Any], by: Post = by_https) -> None:
        """Send one item, which is to be taken."""
        body = {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": [item]}
        assert by(self.read_instructions(), body) == 200

    def close(self) -> None:
        self._user.close()
