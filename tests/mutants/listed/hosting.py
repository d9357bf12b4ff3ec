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
        "stages/execute.py",
        "        if wrong := (*work.failed, *work.lacking):\n",
        "        if wrong := tuple(work.failed):\n",
        "What is Local and cannot be rendered for a cluster counts as brought.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "replace(made, back=()) if work.lacking else made",
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
        "            if content.how.local == local\n",
        "            if not local or content.how.local\n",
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
]
