"""Mutants of classifiers."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/classifying.py",
        "        if any(judgement.get(each) != catalog.digest(each) for each in names):\n"
        "            return None\n",
        "",
        "What was not looked at is taken for missing.",
    ),
    Mutant(
        "stages/classifying.py",
        "return all(self._matches(cluster.key, each) for each in names)",
        "return any(self._matches(cluster.key, each) for each in names)",
        "One selector of several is enough.",
    ),
    Mutant(
        "stages/classifying.py",
        "{name: at for name, at in since.items() if now - at < GRACE}",
        "{}",
        "What is replaced takes the label along for a moment.",
    ),
    Mutant(
        "stages/classifying.py",
        "            self._records.timers.set(classify_timer(cluster), over, body)\n",
        "            pass\n",
        "What is not satisfied any more keeps its labels until a sweep comes.",
    ),
    Mutant(
        "stages/classifying.py",
        "            self._records.clusters.put(cluster, expect=token)\n",
        "            self._records.clusters.put(cluster)\n",
        "What somebody sets while a label is given is lost.",
    ),
    Mutant(
        "stages/classifying.py",
        '        self._records.pending.put(pending, {"keys": [list(key)]})\n',
        "",
        "Labels that a death interrupts bring nothing.",
    ),
    Mutant(
        "stages/classifying.py",
        "                self._write(catalog, given.cluster, kept.token)\n",
        "                self._write(catalog, given.cluster, kept.token)\n                return\n",
        "What comes while a label is taken away does not bring it back.",
    ),
    Mutant(
        "stages/following.py",
        "        return [Classify(cluster)]\n",
        "        return []\n",
        "Rings bring no label.",
    ),
    Mutant(
        "stages/aggregate.py",
        "            yield Classify(message.cluster)\n",
        "            pass\n",
        "What a script says of all resources reaches nobody.",
    ),
    Mutant(
        "stages/sweep.py",
        "        if catalog.classifiers or course.cluster.given:\n",
        "        if False:\n",
        "A cluster that is upgraded keeps the labels of its old version.",
    ),
    Mutant(
        "stages/declare.py",
        "            return replace(old, labels=_merged(old.labels, labels), given=given)\n",
        "            return replace(old, labels=_merged(old.labels, labels))\n",
        "What somebody sets goes with the classifier.",
    ),
    Mutant(
        "engine/classifying.py",
        "    if key in labels:\n        return _SET\n",
        "",
        "A classifier takes over what somebody has set.",
    ),
    Mutant(
        "engine/classifying.py",
        'return "" if holder == name else f"classifier \'{holder}\' gives it"',
        'return ""',
        "The last classifier has a label, and not the first.",
    ),
    Mutant(
        "engine/difference.py",
        "    return {new.key} if old is None or old.labels != new.labels else set()\n",
        "    return set()\n",
        "A label that somebody takes away is not a classifier's again.",
    ),
    Mutant(
        "engine/difference.py",
        "    touched.classified |= after.clusters.keys()\n",
        "",
        "A classifier that goes leaves its labels.",
    ),
    Mutant(
        "engine/classifying.py",
        "    return {**{key: old.labels[key] for key in given}, **asked}, given\n",
        "    return dict(asked), {}\n",
        "Registering a cluster again takes its classifiers' labels away for a while.",
    ),
]
