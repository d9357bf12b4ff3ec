"""Mutants of what a look at a cluster finds."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/sweep.py",
        "if known and uid != known:",
        "if known and not uid:",
        "A cluster made anew is taken for the one that it was.",
    ),
    Mutant(
        "stages/sweep.py",
        "if self._records.clusters.get(message.cluster) is None:",
        "if message.cluster:",
        "What is known of a registered cluster is tidied up.",
    ),
    Mutant(
        "stages/sweep.py",
        "                or (failed and outcome.retry_at)\n",
        "",
        "What failed while a cluster was away waits for its own time.",
    ),
    Mutant(
        "stages/look.py",
        "                # With the kind's definition went every object of it.\n"
        "                return True\n",
        "                # With the kind's definition went every object of it.\n"
        "                return False\n",
        "A kind that is served no more keeps what its objects brought.",
    ),
    Mutant(
        "stages/look.py",
        "return kube.get(*key) is None",
        "return True",
        "A list is believed without a look at what it lacks.",
    ),
    Mutant(
        "stages/look.py",
        "        if not suspicious:\n",
        "        if self:\n",
        "One surprising answer is taken for emptiness.",
    ),
    Mutant(
        "stages/look.py",
        "        fresh = [key for seen in news for key in self._write(course.kube, seen)]\n",
        "        fresh: list[ObjectKey] = []\n",
        "A change that the push missed is not seen.",
    ),
    Mutant(
        "stages/look.py",
        "        self._tell(course.name, {*fresh, *due})\n",
        "        self._tell(course.name, due)\n",
        "What a sweep finds new is not evaluated.",
    ),
    Mutant(
        "stages/look.py",
        "        self._tell(course.name, {*fresh, *due})\n",
        "        self._tell(course.name, fresh)\n",
        "Sources that changed judge only what changed, too.",
    ),
    Mutant(
        "stages/look.py",
        "        self._records.walks.suspect(course.name, missing)\n",
        "",
        "A deletion that the push missed is not seen.",
    ),
    Mutant(
        "stages/look.py",
        "            course.keep(untold={**walk.untold, str(gvk): last})\n",
        "            pass\n",
        "What a sweep wrote before it died is told to nobody.",
    ),
    Mutant(
        "stages/look.py",
        "        if newer and self._records.observations.put(now, asked=head.token):",
        "        if newer and self._records.observations.put(now):",
        "What a restored cluster says is older than what it said before.",
    ),
    Mutant(
        "stages/look.py",
        "            elif head and head.gone:\n                told.append(key)\n",
        "",
        "Who was buried before a death is told to nobody.",
    ),
    Mutant(
        "stages/sweep.py",
        "            if not course.catalog.problems_in(course.name) and not"
        " self._let_go(course):\n",
        "            if not self._let_go(course):\n",
        "Where a trigger cannot say its source, everything is let go.",
    ),
    Mutant(
        "stages/sweep.py",
        "            if head.key.gvk == CLOUD_EVENT and head.key.namespace in listeners:\n",
        "            if head.key.gvk == CLOUD_EVENT:\n",
        "CloudEvents stay that were kept for a source that takes none any more.",
    ),
    Mutant(
        "stages/look.py",
        "self._heads(course.name, CLOUD_EVENT, course.walk.last) if whole else ()",
        "self._heads(course.name, CLOUD_EVENT, course.walk.last) if not whole else ()",
        "A source that changes does not judge the CloudEvents again that are kept.",
    ),
    Mutant(
        "stages/sweep.py",
        "            if not counts or not known:\n",
        "            if not match.source:\n",
        "Matches of sources that are gone stay.",
    ),
    Mutant(
        "stages/sweep.py",
        "self._publisher.publish([Survey(course.name, full=course.walk.full,",
        "list([Survey(course.name, full=course.walk.full,",
        "Destinations are not looked at.",
    ),
    Mutant(
        "stages/sweep.py",
        "            raise OvertakenError(course.name) from error\n",
        "            pass\n",
        "A sweep that was overtaken ends another's walk.",
    ),
    Mutant(
        "stages/sweep.py",
        "        if walk.again:\n            self._publisher",
        "        if not walk:\n            self._publisher",
        "What is asked for while a sweep is under way is not done.",
    ),
    Mutant(
        "stages/survey.py",
        "            if there is None:\n                unsure",
        "            if there is None and not owner.profile:\n                unsure",
        "What was deleted by hand is not put back.",
    ),
    Mutant(
        "stages/survey.py",
        "            self._publisher.publish([Apply(trigger, source, profile, cluster)])\n",
        "            pass\n",
        "What was lost is noted, and nobody is asked to put it back.",
    ),
    Mutant(
        "stages/survey.py",
        "            if not former or not former.lasts or",
        "            if not former or",
        "A stray is forgotten while it is there.",
    ),
    Mutant(
        "stages/survey.py",
        "            known = _is_known(noted.get(key), listed)\n",
        "            known = False\n",
        "Each sweep reads each stray again.",
    ),
    Mutant(
        "stages/drift.py",
        'return held.fields not in ("", own_fields(there, manager_of(held)))\n',
        "return False\n",
        "What drifted and did not ring is not found.",
    ),
    Mutant(
        "stages/survey.py",
        "or (known and superseded(owner.profile, known.part_of))",
        "or False",
        "A resync finds no rollback of a Helm release of which no event came.",
    ),
    Mutant(
        "stages/hints.py",
        "        if _is_pending(hint, seen):\n            self._wait(hint, self._records.",
        "        if not seen:\n            self._wait(hint, self._records.",
        "A profile is told before the change can be seen.",
    ),
    Mutant(
        "stages/hints.py",
        "            uid = old.uid if hint.creates else hint.uid or old.uid\n",
        "            uid = hint.uid or old.uid\n",
        "A creation that is not stored yet is recorded as deleted.",
    ),
    Mutant(
        "engine/hints.py",
        '    creates = same and request.get("operation") == "CREATE"\n',
        "    creates = False\n",
        "The version that a client sends with a creation counts as one that was stored.",
    ),
]
