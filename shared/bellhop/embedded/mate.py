"""A process beside the one that leads: `python -m bellhop.embedded.mate STATE BADGE`.

It feeds the stages and does nothing else. Standard input is a pipe into which nobody writes: it
ends when who leads does, however that is.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path

from bellhop.embedded.living import Living
from bellhop.embedded.signals import stop_on_signals, wait_for
from bellhop.embedded.state import open_state
from bellhop.embedded.team import at_work
from bellhop.logs import Log
from bellhop.settings import read
from bellhop.stages.lease import Peers

_LEFT_ALONE = 1


def run(state: Path, badge: str) -> None:
    """Work until SIGTERM, or until who leads is gone."""
    stop = stop_on_signals()
    threading.Thread(target=_follow, name="following", daemon=True).start()
    log = Log(process=os.getpid())
    embedded = open_state(state, read(os.environ))
    try:
        with at_work(embedded, Peers(badge, Living(state).lives), log, leads=False):
            # What was loaded until here stays for good, as where it leads.
            gc.collect()
            gc.freeze()
            wait_for(stop)
    finally:
        embedded.close()


def _follow() -> None:
    """End with who leads: at once, as another one may be about to begin."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(_LEFT_ALONE)


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2])
