"""The scheduler of a parallel run: tests that need the same servers share a worker.

An API server takes seconds to boot and a fiftieth of a core while it waits, and every worker that
runs a test with a cluster boots up to three of them. The emulators of clouds cost as much.
Tests that measure time run after all others, one at a time, so that no other test slows them down.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdist.workermanage import WorkerController

_GROUPS = {
    "clouds": re.compile(
        r"tests/(cli|functions)/"
        r"|tests/contract/test_(blobs|gcp_\w+|live_google|queue_\w+|secrets|store)"
        r"|tests/infra/test_lab_google"
        r"|tests/package/test_(lines|sources)"
        r"|tests/unit/adapters/gcp/test_queue"
    ),
    "clusters": re.compile(
        r"tests/(benchmarks|flow)/"
        r"|tests/docs/test_(commands|\w+_page)\.py"
        r"|tests/contract/test_(helm|kube|strange_charts|\w+_api_server)"
        r"|tests/infra/test_(chart_install|forwarder_(events|flood|image|outages|setup)|lab_clusters)"
        r"|tests/infra/test_(manifests|release)"
        r"|tests/package/test_running"
        r"|tests/unit/cli/test_(configuration_doctor|diff_profiles|import_sveltos|install|install_crds|login|redeploy|register\w*|rights)\.py"
        r"|tests/unit/configuration/test_cluster(s|_deaths)\.py"
        r"|tests/unit/registration/test_(direct|other_installations|re\w+|secrecy|senders|service_account)\.py"
        r"|tests/unit/(deploy/features/test_management_cluster|events/test_pipeline|declarations/test_fan_out)\.py"
    ),
}
"""Files that need the emulators of clouds, and other files that need a cluster."""

_APART = ("tests/terraform/", "tests/functions/test_rights.py", "tests/cli/test_permissions.py")
"""What takes so long that with the others of its group one worker would end long after the rest."""

_WORKERS_PER_SHARE = 4
"""So many workers end their other tests about when one ends all of a group."""


_CLOCKED = "clocked"
_FOLDER = pytest.StashKey[TemporaryDirectory[str]]()


def pass_file(node: WorkerController) -> None:
    """Pass a worker the file in which it lists its clocked tests: a scheduler knows only ids."""
    if _FOLDER not in node.config.stash:
        node.config.stash[_FOLDER] = TemporaryDirectory()
    node.workerinput[_CLOCKED] = f"{node.config.stash[_FOLDER].name}/clocked.json"


def list_clocked(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Write which tests are clocked, in a worker; all workers write the same."""
    target = getattr(config, "workerinput", {}).get(_CLOCKED)
    if target:
        ids = [item.nodeid for item in items if item.get_closest_marker(_CLOCKED)]
        own = Path(f"{target}.{os.getpid()}")
        own.write_text(json.dumps(ids))
        own.replace(target)


class Sharing(LoadFileScheduling):
    """Give a worker all tests of a file, or all that need the same servers; clocked tests last."""

    _clocked: frozenset[str] = frozenset()

    def schedule(self) -> None:
        """Begin, once all workers have collected."""
        file = Path(self.config.stash[_FOLDER].name) / "clocked.json"
        # Workers that could not collect have written none.
        self._clocked = frozenset(json.loads(file.read_text())) if file.exists() else frozenset()
        super().schedule()

    def remove_node(self, node: WorkerController) -> str | None:
        """Remove a worker that has ended, and let the last one begin the clocked tests."""
        crashed = super().remove_node(node)
        for each in self.nodes:
            self._reschedule(each)
        return crashed

    def _assign_work_unit(self, node: WorkerController) -> None:
        others = [each for each in self.nodes if each is not node]
        if [*self.workqueue] != [_CLOCKED] or not others:
            super()._assign_work_unit(node)
        elif not all(each.shutting_down for each in others):
            node.shutdown()  # It ends after what it has; the last worker waits for it.

    def _split_scope(self, nodeid: str) -> str:
        if nodeid in self._clocked:
            return _CLOCKED
        file = super()._split_scope(nodeid)
        group = group_of(file)
        shares = max(1, self.numnodes // _WORKERS_PER_SHARE)
        return f"{group}-{crc32(file.encode()) % shares}" if group else file


def group_of(nodeid: str) -> str | None:
    """Return the group of a file that needs servers; None for one that needs none."""
    if nodeid.startswith(_APART):
        return None
    return next((name for name, files in _GROUPS.items() if files.match(nodeid)), None)


def require_listed(items: Sequence[pytest.Item]) -> None:
    """Refuse tests that need a cluster and whose file is in no group.

    Raises:
        UsageError: a file is missing in the list.
    """
    needing = {
        item.nodeid for item in items if "control_plane" in getattr(item, "fixturenames", ())
    }
    ungrouped = {each for each in needing if not (group_of(each) or each.startswith(_APART))}
    files = {nodeid.partition("::")[0] for nodeid in ungrouped}
    if files:
        raise pytest.UsageError(
            f"add to tests/sharing.py, for the cluster: {', '.join(sorted(files))}"
        )
