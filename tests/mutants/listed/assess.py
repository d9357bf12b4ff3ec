"""Mutants of HealthChecks: what is not well, and who hears of it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "engine/liveness.py",
        " if not _waits(each, patience, now)]",
        "]",
        "What is not well for a moment counts at once.",
    ),
    Mutant(
        "engine/assessing.py",
        "key=lambda key: str(key) not in known)",
        "key=str)",
        "What is not well for long makes room for what has come just now.",
    ),
    Mutant(
        "fleet/noticing.py",
        "            waiting += [each.until for each in states.values() if each and each.until]\n",
        "",
        "What stays unwell counts with the next sweep.",
    ),
    Mutant(
        "engine/liveness.py",
        "    if len(known) < len(checks):\n        return None\n",
        "",
        "A cluster is well by the checks that are known.",
    ),
    Mutant(
        "engine/liveness.py",
        "if failed := [each.message for each in known if not each.healthy]:",
        "if failed := []:",
        "A check that fails beside others is not heeded.",
    ),
    Mutant(
        "engine/assessing.py",
        "                if each.state != luabox.HEALTHY:\n",
        "                if True:\n",
        "What is well is told as if it were not.",
    ),
    Mutant(
        "engine/assessing.py",
        'message = _WITHHELD if message else ""',
        "message = message",
        "A script quotes a Secret to whoever is told.",
    ),
    Mutant(
        "engine/assessing.py",
        "        if key not in given:\n",
        "        if False:\n",
        "A resource has a Secret's value for a name.",
    ),
    Mutant(
        "stages/aggregate.py",
        "            yield Examine(message.cluster)\n",
        "            pass\n",
        "What a ring made unwell is told by the next sweep.",
    ),
    Mutant(
        "stages/aggregate.py",
        "            told = old.told and old.error == str(error)\n",
        "            told = old.told\n",
        "That a health check's script fails is told to nobody.",
    ),
    Mutant(
        "stages/aggregate.py",
        "        same = old.made and not old.error and new.marks == old.marks\n",
        "        same = old.made and new.marks == old.marks\n",
        "A script that was mended leaves its error.",
    ),
    Mutant(
        "stages/aggregate.py",
        '            made_of="" if made.again else inputs.mark,\n',
        "            made_of=inputs.mark,\n",
        "Who wants to look again finds that nothing has changed.",
    ),
    Mutant(
        "stages/guard.py",
        "or health_check_of(match.source):",
        "or False:",
        "A health check sees for hours what is gone.",
    ),
    Mutant(
        "engine/catalog.py",
        "        joined |= {self.health_checks[name].source.name: [] for name in looking}\n",
        "        joined |= {each.source.name: [] for each in self.health_checks.values()}\n",
        "Clusters are looked at that nobody asks about.",
    ),
    Mutant(
        "engine/difference.py",
        "        touched.examined |= after.clusters.keys()\n        _asked",
        "        _asked",
        "What is declared anew is told by the next sweep.",
    ),
    Mutant(
        "fleet/noticing.py",
        "        if asked.health_check not in catalog.health_checks:\n            return None\n",
        "",
        "What a HealthCheck said that is no more counts on.",
    ),
]
