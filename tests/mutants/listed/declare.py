"""Mutants of what a declaration touches."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/declare.py",
        'self._records.pending.put(name, {"keys": [list(key) for key in keys], **more})\n',
        "pass\n",
        "A change that a death interrupts is not finished.",
    ),
    Mutant(
        "stages/declare.py",
        "            with suppress(StaleError):\n                return ",
        "            with suppress(KeyError):\n                return ",
        "What another has just declared, or what is lost, is not declared anew.",
    ),
    Mutant(
        "records/declared.py",
        "at_hand.get(item.token)",
        "{f\"/{each['metadata']['name']}\": each for each in at_hand.values()}.get(item.sort)",
        "What another wrote over what we have just written is believed to be ours.",
    ),
    Mutant(
        "stages/consequences.py",
        "            yield Sweep(key, full=key in touched.anew)\n",
        "            yield from ()\n",
        "A registered or labelled cluster is not swept.",
    ),
    Mutant(
        "stages/consequences.py",
        "            yield from self._applied_again(\n"
        "                destination, self._naming(after, destination) if came else ()\n"
        "            )\n",
        "            yield from ()\n",
        "New labels of a cluster are not rendered there.",
    ),
    Mutant(
        "stages/consequences.py",
        "self._naming(after, destination) if came else ()",
        "()",
        "A cluster that came back is not asked for what named it.",
    ),
    Mutant(
        "stages/consequences.py",
        "            yield from self._placed(trigger, destination)\n",
        "            yield from ()\n",
        "A destination that is chosen, or no more, is not told.",
    ),
    Mutant(
        "stages/consequences.py",
        "        yield from (Resolve(name) for name in sorted(touched.resolved))\n",
        "",
        "Users' own profiles are never resolved.",
    ),
    Mutant(
        "stages/consequences.py",
        "        self._open_gates(after, touched.gates)\n",
        "",
        "What new sources watch is not let in.",
    ),
    Mutant(
        "stages/consequences.py",
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
        "records/declared.py",
        'if told and told.value["number"] >= number:',
        'if told and told.value["number"] == number:',
        "Who is slow to tell of a change takes back what a later one told.",
    ),
    Mutant(
        "records/declared.py",
        "        for share in SHARES:\n",
        "        for share in SHARES[1:]:\n",
        "A change is taken for made before every share tells of it.",
    ),
    Mutant(
        "records/catalogs.py",
        "            rules.pop(key, None)\n",
        "",
        "A rule that was deleted stays where the rules are at hand.",
    ),
    Mutant(
        "engine/catalog.py",
        "        later._earlier = self._still(later), names | later.watching_sets(sets)\n",
        "        later._earlier = self._still(later), later.watching_sets(sets)\n",
        "A trigger that changed is believed to name what it named.",
    ),
    Mutant(
        "engine/catalog.py",
        "names | later.watching_sets(sets)\n",
        "names\n",
        "A trigger is believed to watch the clusters that its set had.",
    ),
    Mutant(
        "engine/catalog.py",
        "            if key not in moved and",
        "            if",
        "A cluster that a set has chosen is believed to be watched as before.",
    ),
    Mutant(
        "engine/catalog.py",
        "        if found is None or not profile.reaches(found):\n",
        "        if found is None:\n",
        "A Profile goes to clusters of other namespaces.",
    ),
    Mutant(
        "model/cluster_set.py",
        '        if self.namespace not in ("", cluster.namespace):\n',
        "        if cluster is None:\n",
        "A Set has clusters of other namespaces.",
    ),
    Mutant(
        "model/profile.py",
        'return tuple(f"{self.namespace}/{each}" for each in sets) if self.namespace else sets\n',
        "return sets\n",
        "A Profile goes by the ClusterSets of the names that it says.",
    ),
    Mutant(
        "model/profile.py",
        "each._replace(namespace=self.namespace) for each in refs",
        "each for each in refs",
        "A Profile brings what lies in another namespace.",
    ),
    Mutant(
        "model/profile.py",
        "return tuple(each.within(self.namespace) for each in found)\n",
        "return tuple(each for each in found)\n",
        "A Profile's templates read what lies in another namespace.",
    ),
    Mutant(
        "stages/reading.py",
        "    if profile.namespace and not namespaced:\n",
        "    if not profile.namespace and not namespaced:\n",
        "A Profile's templates read what lies in no namespace.",
    ),
    Mutant(
        "engine/difference.py",
        "_named(keys, *PROFILES)",
        "_named(keys, PROFILES[0])",
        "A Profile that is declared is not resolved.",
    ),
    Mutant(
        "engine/difference.py",
        "_named(keys, *SETS)",
        "_named(keys, SETS[0])",
        "A Set that changes moves nobody.",
    ),
    Mutant(
        "records/catalogs.py",
        "        key = key_of(manifest)\n",
        '        key = key_of(manifest)._replace(namespace="")\n',
        "A Profile takes the place of the ClusterProfile of its name.",
    ),
    Mutant(
        "engine/choosing.py",
        "spare = (each for each in pool if each not in known and not is_down(each))",
        "spare = (each for each in pool if each not in known)",
        "A cluster that is down takes the place of one that left.",
    ),
    Mutant(
        "stages/choosing.py",
        "            self._records.choices.put(place, choice, expect=token)\n",
        "            self._records.choices.put(place, choice, expect=None)\n",
        "Of two who choose at once the slower one writes over the other's choice.",
    ),
    Mutant(
        "stages/choosing.py",
        '        self._records.pending.put(pending, {"keys": [list(key)]})\n',
        "",
        "A choice that a death interrupts is not followed.",
    ),
    Mutant(
        "stages/sweep.py",
        "                self._circuits.probe(message)\n"
        "                self._choosing.heed(message.cluster)\n",
        "                self._circuits.probe(message)\n",
        "A cluster that does not answer keeps its place in a set.",
    ),
    Mutant(
        "forwarder/debt.py",
        "own=self.own and later.own,",
        "own=later.own,",
        "What somebody wrote just before us does not ring.",
    ),
    Mutant(
        "forwarder/desk.py",
        "own = turn.debt.own and entry.behind.own",
        "own = turn.debt.own",
        "What somebody wrote while we were looking does not ring.",
    ),
    Mutant(
        "records/ledger.py",
        "if (wanted <= 0 and share < 1) or count >= most:",
        "if wanted <= 0 and count >= most:",
        "The ledger loses more than it must.",
    ),
    Mutant(
        "stages/declare.py",
        "            self._forget_traces(cluster.key)\n        try:\n"
        "            token = self._records.clusters.put(cluster, expect=expect)\n",
        "            pass\n        try:\n"
        "            token = self._records.clusters.put(cluster, expect=expect)\n"
        "            self._forget_traces(cluster.key)\n",
        "What is brought to a cluster while it is being registered is forgotten.",
    ),
    Mutant(
        "stages/declare.py",
        ("                self._follow(keys, None, pending)\n            else:\n"),
        ("                self._records.pending.delete(pending)\n            else:\n"),
        "Of two who register one new name the later forgets what was brought for the first.",
    ),
]
