"""Mutants of what a declaration touches."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/declare.py",
        'self._records.pending.put(name, {"keys": [list(key) for key in keys]})\n',
        "pass\n",
        "A change that a death interrupts is not finished.",
    ),
    Mutant(
        "stages/declare.py",
        "            yield Sweep(key, full=key in touched.anew)\n",
        "            yield from ()\n",
        "A registered or labelled cluster is not swept.",
    ),
    Mutant(
        "stages/declare.py",
        "            yield from self._applied_again(\n"
        "                destination, self._naming(after, destination) if came else ()\n"
        "            )\n",
        "            yield from ()\n",
        "New labels of a cluster are not rendered there.",
    ),
    Mutant(
        "stages/declare.py",
        "self._naming(after, destination) if came else ()",
        "()",
        "A cluster that came back is not asked for what named it.",
    ),
    Mutant(
        "stages/declare.py",
        "            yield from self._placed(trigger, destination)\n",
        "            yield from ()\n",
        "A destination that is chosen, or no more, is not told.",
    ),
    Mutant(
        "stages/declare.py",
        "        yield from (Resolve(name) for name in sorted(touched.resolved))\n",
        "",
        "Users' own profiles are never resolved.",
    ),
    Mutant(
        "stages/declare.py",
        "        self._open_gates(after, touched.gates)\n",
        "",
        "What new sources watch is not let in.",
    ),
    Mutant(
        "stages/declare.py",
        "                self._keep_sweeping(key)\n            else",
        "                pass\n            else",
        "A registered cluster is never swept by itself.",
    ),
    Mutant(
        "engine/difference.py",
        "_selecting(catalog, cluster, triggers) for catalog in catalogs)",
        "_selecting(catalog, cluster, triggers) for catalog in [after])",
        "Where a source was in force and is no more, nothing is let go.",
    ),
    Mutant(
        "engine/difference.py",
        "elif before.judgement(key) != after.judgement(key):",
        "elif not before:",
        "A label that puts a source in force has nothing swept.",
    ),
    Mutant(
        "records/declared.py",
        '            if "declared" in halves:\n',
        '            if "declared" in halves and old.declared == first.declared:\n',
        "A declaration that another overtakes does not name what it wrote.",
    ),
    Mutant(
        "records/catalogs.py",
        "            rules.pop(key, None)\n",
        "",
        "A rule that was deleted stays where the rules are at hand.",
    ),
    Mutant(
        "engine/catalog.py",
        "        later._earlier = same, names\n",
        "        later._earlier = same, ()\n",
        "A trigger that changed is believed to name what it named.",
    ),
    Mutant(
        "records/ledger.py",
        "if (wanted <= 0 and share < 1) or count >= most:",
        "if wanted <= 0 and count >= most:",
        "The ledger loses more than it must.",
    ),
]
