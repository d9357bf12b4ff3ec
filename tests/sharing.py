"""Which tests share a worker: those that need a cluster, so that few API servers run.

An API server takes seven seconds to boot and a fiftieth of a core while it waits, and every worker
that runs a test with a cluster boots three of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from collections.abc import Sequence

_CLUSTERS = re.compile(
    r"tests/flow/"
    r"|tests/docs/test_(commands|\w+_page)\.py"
    r"|tests/contract/test_kube"
    r"|tests/infra/test_(forwarder_(events|setup)|manifests)"
    r"|tests/unit/cli/test_(import_sveltos|install|login|redeploy|register\w*|rights)\.py"
    r"|tests/unit/fleet/test_(direct|other_installations|re\w+|senders|service_account|silence)\.py"
    r"|tests/unit/stages/test_(hosting|pipeline|touched)\.py"
)
"""Files of `make test` that need a cluster."""

_WORKERS_PER_SHARE = 4
"""So many workers end their other tests about when one ends all that need a cluster."""


class Sharing(LoadFileScheduling):
    """Give a worker all tests of a file, or all that need a cluster."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if not needs_cluster(file):
            return file
        shares = max(1, self.numnodes // _WORKERS_PER_SHARE)
        return f"clusters-{crc32(file.encode()) % shares}"


def needs_cluster(nodeid: str) -> bool:
    """Say whether a file is listed among those that need a cluster."""
    return _CLUSTERS.match(nodeid) is not None


def require_listed(items: Sequence[pytest.Item]) -> None:
    """Refuse tests that need a cluster and whose file is not listed.

    Raises:
        UsageError: a file is missing in the list.
    """
    needing = {
        item.nodeid for item in items if "control_plane" in getattr(item, "fixturenames", ())
    }
    files = {nodeid.partition("::")[0] for nodeid in needing if not needs_cluster(nodeid)}
    if files:
        raise pytest.UsageError(
            f"add to tests/sharing.py, for the cluster: {', '.join(sorted(files))}"
        )
