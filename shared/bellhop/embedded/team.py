"""What every process of `serve` runs, the one that leads and those beside it: all its threads.

Each has its own: those that feed the stages, those that warm up, and the one that writes the
ledger's lines. They meet those of other processes in the records and the queues alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bellhop.embedded.baton import BATON
from bellhop.embedded.notes import Notes
from bellhop.embedded.state import Embedded
from bellhop.embedded.warming import WarmUp
from bellhop.embedded.workers import Workers
from bellhop.fleet.installation import Installation
from bellhop.fleet.noticing import Noticing
from bellhop.fleet.renewals import Renewals
from bellhop.logs import Log
from bellhop.stages.deploy import Deploy
from bellhop.stages.evaluate import Evaluate
from bellhop.stages.execute import Execute
from bellhop.stages.hands import HELPERS, Hands
from bellhop.stages.inbox import Stage
from bellhop.stages.lease import Peers
from bellhop.stages.sweep import Sweep


@contextmanager
def at_work(embedded: Embedded, peers: Peers, log: Log, *, leads: bool) -> Iterator[None]:
    """Feed the stages within the block, then finish what is in hand; who leads keeps the time."""
    here = embedded.installation
    for queue in embedded.queues.values():
        queue.hold_as(peers.badge)
    workers = Workers(embedded, _stages(here, peers, log), log, leads=leads)
    warm_up = WarmUp(here, log)
    notes = Notes(here.records.ledger, here.records.clock, log)
    notes.start()
    workers.start()
    warm_up.start()
    try:
        yield
    finally:
        warm_up.stop()
        workers.stop()
        notes.stop()


def _stages(here: Installation, peers: Peers, log: Log) -> dict[str, Stage]:
    sweep = Sweep(here.records, here.catalogs, here.access, here.publisher, here.settings, log)
    hands = Hands(HELPERS, lend=BATON.lend, waiting=BATON.passed)
    execute = Execute(
        here.catalogs, here.access, here.publisher, here.settings, log, peers=peers, hands=hands
    )
    return {
        "evaluate": Evaluate(here.records, here.catalogs, here.publisher, here.settings, log),
        "deploy": Deploy(here.records, here.catalogs, here.publisher, execute, here.settings),
        "sweep": Noticing(here, Renewals(here, sweep, log), log),
    }
