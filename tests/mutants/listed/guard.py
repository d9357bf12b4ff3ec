"""Mutants of what is held."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "engine/guarding.py",
        "        return self.is_on and of >= self.least\n",
        "        return self.is_on\n",
        "A small report is held, too.",
    ),
    Mutant(
        "engine/guarding.py",
        "self.is_on and ended > self.share * of",
        "self.is_on and ended >= self.share * of",
        "A report of which just the share ended is held.",
    ),
    Mutant(
        "engine/guarding.py",
        "        return 0 < self.share < 1\n",
        "        return True\n",
        "The guard cannot be switched off.",
    ),
    Mutant(
        "stages/guard.py",
        "if match.held or self._records.holds.get(cluster, source):",
        "if match.held:",
        "What ends while a report holds something is counted apart.",
    ),
    Mutant(
        "stages/guard.py",
        "or match.key.gvk == CLOUD_EVENT or",
        "or False or",
        "CloudEvents whose time is over are held.",
    ),
    Mutant(
        "stages/guard.py",
        "            if not self._let_go(kept.value):\n",
        "            if False:\n",
        "What is released is never withdrawn.",
    ),
    Mutant(
        "stages/guard.py",
        "            if each.lot == hold.lot:\n",
        "            if False:\n",
        "A hold that is weighed lets everything go.",
    ),
    Mutant(
        "stages/guard.py",
        "        if hold.held_at and self._rule.is_on:\n"
        "            return self._heed_sweeps(kept)\n",
        "",
        "What is held is let go when it has been quiet for long.",
    ),
    Mutant(
        "stages/guard.py",
        "self._records.holds.put(_uncounted(hold), expect=kept.token)",
        "self._records.holds.put(hold, expect=kept.token)",
        "What went after sweeps agreed about others is never agreed on.",
    ),
    Mutant(
        "stages/guard.py",
        "            if self._agreement.is_over(catalog, hold, each.key):\n",
        "            if True:\n",
        "Sweeps let go what is there and matches no more.",
    ),
    Mutant(
        "stages/agreeing.py",
        "or last is None or ended <= last:",
        "or last is None:",
        "A sweep counts as often as somebody looks at what it said.",
    ),
    Mutant(
        "stages/agreeing.py",
        "        return hold.sweeps > self._sweeps\n",
        "        return hold.sweeps >= self._sweeps\n",
        "A sweep counts that may have looked before something went.",
    ),
    Mutant(
        "stages/agreeing.py",
        "return kept.value.gone and kept.value.seen_at <= hold.first",
        "return kept.value.gone",
        "What went a moment ago goes with what sweeps agree on.",
    ),
    Mutant(
        "stages/agreeing.py",
        "        if source is None or key.gvk not in source.kinds:\n",
        "        if source is None:\n",
        "What no sweep looks for any more is taken for gone.",
    ),
    Mutant(
        "stages/agreeing.py",
        'health.state != "Healthy" or source.kinds & {*health.unseen}:',
        'health.state != "Healthy":',
        "A sweep that could not list a kind agrees about it.",
    ),
    Mutant(
        "stages/agreeing.py",
        'source is None or health.state != "Healthy" or',
        "source is None or",
        "A cluster that does not answer agrees.",
    ),
    Mutant(
        "stages/agreeing.py",
        "        return not any(strikes.get(hold.cluster, gvk).value for gvk in source.kinds)\n",
        "        return bool(strikes)\n",
        "A list that is doubted agrees.",
    ),
    Mutant(
        "stages/guard.py",
        "        return there + hold.gone\n",
        "        return hold.gone\n",
        "What is left of a report does not count.",
    ),
    Mutant(
        "stages/guard.py",
        "        return self._rule.is_on and ended > hold.counted and waits\n",
        "        return False\n",
        "What ends slowly is let go before it is known how much it is.",
    ),
    Mutant(
        "stages/guard.py",
        'steady = hold.cause == "rings" and self._rule.is_little(ended, of)',
        "steady = False",
        "Where a few end all the time they wait for a quiet that never comes.",
    ),
    Mutant(
        "stages/guard.py",
        "            self._close(kept)\n            return True\n",
        "            return True\n",
        "A hold of which all came back stays.",
    ),
    Mutant(
        "stages/guard.py",
        "gone=min(few, self._records.holds.ended(match.cluster, match.source, most=few)),",
        "gone=0,",
        "What went before anybody knew does not count.",
    ),
    Mutant(
        "stages/guard.py",
        "self._publisher.publish(follow_up(self._catalogs.current(), match, Nobody()))",
        "None",
        "Nobody tells deploy of what was let go.",
    ),
    Mutant(
        "stages/evaluate.py",
        "        held = bool(old and old.held and judged.error)\n",
        "        held = bool(old and old.held)\n",
        "What matches again stays held.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            self._guard.clear(old)\n",
        "            pass\n",
        "Nobody notes that what was held matches again.",
    ),
    Mutant(
        "stages/sweep.py",
        '        return there and self._guard.retain(match, "declaration")\n',
        "        return False\n",
        "A typo in a source's kind withdraws everything.",
    ),
    Mutant(
        "stages/reports.py",
        "            held = True\n        return held\n",
        "            held = True\n        return False\n",
        "A profile is rendered without what is held and unknown.",
    ),
    Mutant(
        "stages/reports.py",
        "            if not kept.value.held:\n                raise",
        "            if False:\n                raise",
        "A profile is made without what is forgotten just now, and stays so.",
    ),
    Mutant(
        "stages/sweep.py",
        "                self._end_matches(catalog, cluster, head.key)\n",
        "",
        "What is held of a kind that counts no more is forgotten before it is held.",
    ),
    Mutant(
        "stages/sweep.py",
        "            self._doubt(course.name, touched)\n",
        "",
        "A source that is mended while its matches end is taken for judged.",
    ),
    Mutant(
        "stages/objects.py",
        "            manifest = self._records.observations.last(cluster, key)\n",
        "            pass\n",
        "A profile is made without what is gone and not judged yet.",
    ),
    Mutant(
        "stages/objects.py",
        "            manifest = self._records.holds.state(cluster, source, key)\n",
        "            pass\n",
        "What is held is forgotten with its tombstone.",
    ),
    Mutant(
        "stages/guard.py",
        "state = self._objects.newest(match.cluster, match.source, match.key)",
        "state = None",
        "What an object was like is not kept with its hold.",
    ),
    Mutant(
        "stages/removal_limits.py",
        "return together(self._by_cluster(step, leaving, found), leaving)",
        "return self._by_cluster(step, leaving, found)",
        "What goes from a cluster beside what is held is removed.",
    ),
    Mutant(
        "stages/removal_limits.py",
        "            or self._loses_all(step, rule, each)\n",
        "",
        "A profile loses all of its few clusters.",
    ),
    Mutant(
        "stages/removal_limits.py",
        " or (count >= of and _is_emptied(step, cluster, losing)):",
        ":",
        "A cluster loses all of its few add-ons.",
    ),
    Mutant(
        "stages/removal_limits.py",
        "len(_rules_of(step.after, cluster) - before) < len(rules)",
        "bool(rules)",
        "A cluster that moves to as many other profiles is held.",
    ),
]
