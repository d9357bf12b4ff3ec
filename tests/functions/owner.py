"""Who registers clusters and declares things, as the CLI does, in whichever cloud."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bellhop.api.kinds import parse_all, read_documents
from bellhop.installation import Installation
from bellhop.state.cluster import MANAGEMENT, Cluster


def name_cluster(name: str) -> str:
    """Return the key of a cluster: all but the management cluster are in `fleet`."""
    return name if name == MANAGEMENT else f"fleet/{name}"


class Owner:
    """The owner of an installation."""

    def __init__(self, here: Installation) -> None:
        self.here = here

    def register(self, name: str, kubeconfig: Mapping[str, Any], **labels: str) -> None:
        """Add a cluster whose token is its name: `fleet/NAME`, or `mgmt/mgmt`."""
        key = name_cluster(name)
        namespace, _, own = key.partition("/")
        self.here.secrets.put(f"kubeconfig/{key}", json.dumps(kubeconfig).encode())
        digest = hashlib.sha256(name.encode()).hexdigest()
        self.here.declare.register(
            Cluster(namespace, own, labels, "v1.20.2", digest, datetime.now(UTC))
        )

    def apply(self, text: str) -> None:
        """Declare what YAML says."""
        self.here.declare.apply(parse_all(read_documents(text, source="test.yaml")))

    def withdraw(self, text: str) -> None:
        """Delete what YAML has declared."""
        read = parse_all(read_documents(text, source="test.yaml"))
        self.here.declare.delete([each.key for each in read])
