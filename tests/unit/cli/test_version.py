"""`bellhop version` names what runs, too."""

from __future__ import annotations

import json
from pathlib import Path

from bellhop import __version__
from bellhop.installation import Installation
from bellhop.state.cluster import Heartbeat
from bellhop.state.heartbeats import WorkerHeartbeat
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop


def test_names_the_server_and_the_forwarders(bellhop: Bellhop, here: Installation) -> None:
    """Forwarders are counted by version; a sender that reports none is not."""
    fleet.populate(here)
    now = here.records.clock.now()
    here.records.pulses.put(WorkerHeartbeat(now, now, "9.9.9"))
    here.records.hearings.put("default/workload", Heartbeat(now, version="0.0.9"))

    assert bellhop("version").stdout == (
        f"bellhop {__version__}\nserver 9.9.9\nforwarder 0.0.9 in 1 cluster\n"
    )
    found = json.loads(bellhop("version", "-o", "json").stdout)
    assert (found["server"], found["forwarders"]) == ("9.9.9", {"0.0.9": 1})
    assert bellhop("version", "--client").stdout == f"bellhop {__version__}\n"


def test_needs_no_installation(bellhop: Bellhop, tmp_path: Path) -> None:
    """One that is not there is not created; one that cannot be read is a warning."""
    result = bellhop("version", "--state", str(tmp_path / "none"))
    unknown = bellhop("version", "--context", "none", BELLHOP_STATE="")

    assert (result.exit_code, result.stdout) == (0, f"bellhop {__version__}\n")
    assert (unknown.exit_code, unknown.stdout) == (0, f"bellhop {__version__}\n")
    assert "warning: cannot read the installation's versions: " in unknown.stderr
    assert not (tmp_path / "none").exists()
