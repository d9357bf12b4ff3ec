"""Mutants of paused clusters."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/deployer.py",
        "        if not stands:\n            self._pauses.refuse(work)\n",
        "",
        "A cluster is changed while it is paused.",
    ),
    Mutant(
        "stages/deployer.py",
        "        if not stands:\n            self._pauses.refuse(work)\n",
        "        self._pauses.refuse(work)\n",
        "What is as it is wanted waits for a paused cluster.",
    ),
    Mutant(
        "stages/execute.py",
        "            self._turns.step_aside(work)\n",
        "",
        "A cluster that is paused at its turn keeps its place.",
    ),
    Mutant(
        "stages/execute.py",
        "            self._pauses.look_again(work, error)\n",
        "",
        "Who waits for a paused cluster is told by nobody that it was resumed just now.",
    ),
    Mutant(
        "stages/pauses.py",
        "        _leave_to_the_queue(str(error), error.until, now)\n",
        "",
        "A worker whose clock is late sets a timer that has fired already.",
    ),
    Mutant(
        "stages/pauses.py",
        "                self._records.timers.set(name, pause.until, again.body)\n",
        "                pass\n",
        "Events of a cluster whose window opens are not asked for again.",
    ),
    Mutant(
        "stages/instantiate.py",
        "        return trigger.paused or self._pauses.keeps_from(trigger.name, source)\n",
        "        return trigger.paused\n",
        "What happens in a paused cluster brings and takes away add-ons.",
    ),
    Mutant(
        "stages/consequences.py",
        "            yield from self._left_in(after, key)\n",
        "            pass\n",
        "What triggers that select a paused cluster no more made of it stays once it is resumed.",
    ),
    Mutant(
        "stages/ending.py",
        "        if until:\n            self._set_retry(work, until)\n",
        "",
        "What waits for a window to open is not tried again when it does.",
    ),
    Mutant(
        "stages/ending.py",
        "        outcome = replace(outcome, retry_at=until)\n",
        "",
        "What waits for a window does not say until when.",
    ),
    Mutant(
        "engine/pausing.py",
        "    return opened is not None and (closed is None or opened > closed)\n",
        "    return opened is not None and (closed is None or opened >= closed)\n",
        "A window that opens and closes at once is open.",
    ),
]
