"""Mutants of what matches."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/evaluate.py",
        "            self._records.matches.delete(match.cluster, match.source,"
        " match.key, expect=token)\n",
        "            self._records.matches.put(replace(match, told=True), expect=token)\n",
        "What matches no more leaves its match behind.",
    ),
    Mutant(
        "stages/evaluate.py",
        "matching, error = was, str(failure)",
        "matching, error = False, str(failure)",
        "An error is taken for an empty answer.",
    ),
    Mutant(
        "stages/evaluate.py",
        "                if not changed and match.told:\n",
        "                if not changed:\n",
        "A death between a match and its message is not made good.",
    ),
    Mutant(
        "stages/evaluate.py",
        "self._records.matches.put(replace(match, told=False), expect=token)",
        "self._records.matches.put(replace(match, told=True), expect=token)",
        "A match is marked as told before it is.",
    ),
    Mutant(
        "stages/evaluate.py",
        "self._records.matches.put(replace(match, told=False), expect=token)",
        "self._records.matches.put(replace(match, told=False))",
        "The slower of two judgements of an object is written over the other.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            if not wrote or self._stands(catalog, seen):\n",
        "            if wrote or not wrote:\n",
        "Nobody looks again at the object after judging it.",
    ),
    Mutant(
        "stages/evaluate.py",
        "return token == seen.token and self._catalogs.current().revision == catalog.revision",
        "return self._catalogs.current().revision == catalog.revision",
        "An object that changed while it was judged counts as judged.",
    ),
    Mutant(
        "stages/evaluate.py",
        "return token == seen.token and self._catalogs.current().revision == catalog.revision",
        "return token == seen.token",
        "Sources that changed while an object was judged are not asked again.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            self._take_back(catalog, message, written)\n",
        "",
        "What was written for a source that went meanwhile stays.",
    ),
    Mutant(
        "stages/evaluate.py",
        "or self._nothing(cluster, key)\n",
        "\n            if seen is None:\n                return\n",
        "What nothing is known of keeps what it brought.",
    ),
    Mutant(
        "stages/evaluate.py",
        "if old and (old.matching, old.digest, old.error) == (matching, mark, error):",
        "if old and (old.matching, old.error) == (matching, error):",
        "An object that changed and still matches is not told of.",
    ),
    Mutant(
        "stages/evaluate.py",
        "for source in catalog.sources_for(cluster, key.gvk)\n                if",
        "for source in catalog.sources_for(cluster, key.gvk)[:1]\n                if",
        "Only one of the sources that name a kind is asked.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            for name in triggers\n        ]",
        "            for name in triggers[:1]\n        ]",
        "Only one trigger of a source is told.",
    ),
    Mutant(
        "stages/evaluate.py",
        "if catalog.triggers[name].one_for_event else",
        "if name else",
        "A trigger for all objects is asked for one.",
    ),
]
