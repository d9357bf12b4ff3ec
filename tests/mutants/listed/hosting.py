"""Mutants of how what is Local comes to the cluster that hosts it, and leaves it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/hosting.py",
        '        elif MANAGEMENT in matched:\n            hosting = "beside"\n',
        "",
        "A host that is matched itself gets nothing of its own.",
    ),
    Mutant(
        "stages/hosting.py",
        '        if records.clusters.get(MANAGEMENT) is None:\n            hosting = "nowhere"\n'
        "        elif",
        "        if",
        "What is Local of a profile without a host is nobody's to tell of.",
    ),
    Mutant(
        "stages/hosting.py",
        "    names = profile.guests(cluster)\n",
        '    names = profile.guests("")\n',
        "What is Local and brought once is not brought for a cluster that comes.",
    ),
    Mutant(
        "stages/execute.py",
        "    others = [digest([each.token for each in hosted])] if hosted else []\n",
        "    others: list[str] = []\n",
        "What a cluster is labelled with meanwhile is not in what is Local for it.",
    ),
    Mutant(
        "stages/deployer.py",
        "        elif work.lacking:\n            raise together(work.lacking)\n",
        "",
        "What is Local and cannot be rendered for a cluster counts as brought.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "replace(made, back=()) if work.lacking or work.unbuilt else made",
        "made",
        "What is Local for a cluster goes when it cannot be rendered for that.",
    ),
    Mutant(
        "stages/features/resources/planning.py",
        " or (held.local and held.ref in staying)",
        "",
        "What is Local for a cluster that leaves its policies goes with it.",
    ),
    Mutant(
        "stages/features/resources/wants.py",
        "content.how.local == local and content.chart is None\n",
        "(not local or content.how.local) and content.chart is None\n",
        "What is Local is brought to each cluster as well.",
    ),
    Mutant(
        "stages/consequences.py",
        "            yield from self._hosted(after, destination)\n",
        "",
        "What a cluster is labelled with anew is not in what is Local for it.",
    ),
    Mutant(
        "stages/checks.py",
        "        if work.only_hosts or when not in work.profile.checked:\n",
        "        if when not in work.profile.checked:\n",
        "The host of what is Local is asked what the clusters are to be asked.",
    ),
    Mutant(
        "stages/consequences.py",
        "        if MANAGEMENT in touched.anew:\n            yield from self._housed_anew(after)\n",
        "",
        "What was rolled back to something Local does not hear that there is a cluster for it.",
    ),
    Mutant(
        "stages/consequences.py",
        "                if head and cluster in head.value.guests(MANAGEMENT):\n"
        "                    yield Apply(*which, MANAGEMENT)\n",
        "                pass\n",
        "What was rolled back to something Local is not made anew when a label changes.",
    ),
    Mutant(
        "stages/consequences.py",
        "                if head and cluster in head.value.guests(MANAGEMENT):\n"
        "                    yield Apply(*which",
        "                if head:\n                    yield Apply(*which",
        "The label of any cluster has all that was rolled back to something Local made anew.",
    ),
    Mutant(
        "stages/features/resources/wants.py",
        "    return tuple(each for each in wanted if each.key.identity not in refused)\n",
        "    return tuple(wanted)\n",
        "One object in two forms keeps all that is Local from all clusters.",
    ),
    Mutant(
        "stages/features/resources/wants.py",
        "for each in placed if not each.how.local))",
        "for each in placed))",
        "What one cluster may not have, no other gets.",
    ),
    Mutant(
        "stages/features/resources/wants.py",
        "            if self._clock.now() > until:\n                work.lacking",
        "            if False:\n                work.lacking",
        "Who hosts too much never comes to an end of it.",
    ),
    Mutant(
        "stages/features/resources/wants.py",
        "            if size > MOST_HOSTED:\n",
        "            if False:\n",
        "Who hosts too much has no memory left.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "if each.held is None and not each.wanted.guest]",
        "if each.held is None]",
        "What another profile has of one cluster's, no other cluster gets any of.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "            refused = None if upshot.guest else upshot.refused\n",
        "            refused = upshot.refused\n",
        "What the host refuses of one cluster's ends the turn of all.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "        if not work.failed and not work.lacking:\n",
        "        if not work.failed:\n",
        "What is Local goes where what comes in its place was refused.",
    ),
    Mutant(
        "stages/deployer.py",
        "        if work.unfinished and (work.got_on or not work.lacking):\n",
        "        if work.unfinished and not work.lacking:\n",
        "What one cluster lacks ends the turns of all others.",
    ),
    Mutant(
        "stages/deployer.py",
        "        if work.unfinished and (work.got_on or not work.lacking):\n",
        "        if work.unfinished:\n",
        "Who gets no further asks for another turn at once, for ever.",
    ),
    Mutant(
        "stages/lease.py",
        "        work.begun_at = self._records.clock.now()\n        until = work.begun_at",
        "        until = self._records.clock.now()",
        "Who had much to read and render has no turn left to apply it.",
    ),
]
