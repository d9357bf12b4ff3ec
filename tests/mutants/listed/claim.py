"""Mutants of who owns an object."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/claim.py",
        "wins = replaces or profile.tier < owner.tier",
        "wins = replaces or profile.tier <= owner.tier",
        "An owner of the same tier loses what it has.",
    ),
    Mutant(
        "stages/claim.py",
        "mine = _owned(profile, owner)\n                    self._put(cluster, key, mine, token)\n",
        "mine = _owned(profile, owner)\n"
        "                    self._put(cluster, key, mine, None and token)\n",
        "Two who find nobody both own an object.",
    ),
    Mutant(
        "stages/claim.py",
        "token = self._records.owners.put(cluster, key, owner, expect=token)\n"
        "        if not owner.tell",
        "token = self._records.owners.put(cluster, key, owner)\n        if not owner.tell",
        "Whoever writes an owner last wins.",
    ),
    Mutant(
        "stages/claim.py",
        "tell=_with(mine.tell, loser)",
        "tell=mine.tell",
        "Who loses an object is not told.",
    ),
    Mutant(
        "stages/claim.py",
        "                if me not in owner.waiting:\n",
        "                if me in owner.waiting:\n",
        "Who does not get an object is not remembered.",
    ),
    Mutant(
        "stages/claim.py",
        "            tell = _with(owner.tell, *owner.waiting)\n            try:",
        "            tell = owner.tell\n            try:",
        "Who waits for an object is not told when it is given up.",
    ),
    Mutant(
        "stages/claim.py",
        "if found is None or taken_from(profile, found):",
        "if found is None:",
        "A profile gives up what another owns.",
    ),
    Mutant(
        "stages/claim.py",
        "found = known if known and not attempt else self._records.owners.get(cluster, key)",
        "found = known or self._records.owners.get(cluster, key)",
        "Who gives an object up never learns that another took it meanwhile.",
    ),
    Mutant(
        "stages/claim.py",
        "moved = owner.tier != profile.tier",
        "moved = not owner.tier",
        "Who waits is not told that an owner's tier became another.",
    ),
    Mutant(
        "stages/claim.py",
        "        if before is None:\n            self.give_up",
        "        if before is None or before:\n            self.give_up",
        "A claim that led to nothing is given up instead of given back.",
    ),
    Mutant(
        "stages/claim.py",
        "        if not owner.tell:\n            return\n",
        "        if owner.profile:\n            return\n",
        "Whoever is to be told is told only when nobody has the object.",
    ),
    Mutant(
        "stages/claim.py",
        "                told = replace(owner, tell=())\n",
        "                told = owner\n",
        "Who was told is told again for ever.",
    ),
    Mutant(
        "stages/claim.py",
        "        self._publisher.publish(Apply(*each, cluster, contested=str(key)) for"
        " each in owner.tell)\n"
        "        with suppress(StaleError):\n",
        "        with suppress(StaleError):\n",
        "A change of owner is marked as told, and is told to nobody.",
    ),
    Mutant(
        "stages/claim.py",
        "        tell=before.tell if before else (),\n",
        "        tell=(),\n",
        "Who takes an object forgets whom its giver had not told yet.",
    ),
    Mutant(
        "stages/claim.py",
        "                    if mine != owner or tell:\n",
        "                    if mine != owner:\n",
        "Who comes to an object that a dead worker took tells nobody for it.",
    ),
    Mutant(
        "stages/claim.py",
        "return wins and profile.name not in stays.rollout.replaces",
        "return wins",
        "A profile takes an object back from the one that replaces it, without end.",
    ),
    Mutant(
        "stages/claim.py",
        "return head.value if head and cluster in head.value.destinations else None",
        "return head.value if head else None",
        "Of two profiles that replace each other neither can leave.",
    ),
    Mutant(
        "stages/features/helm/heirs.py",
        "if until <= now:",
        "if until:",
        "A release is uninstalled before the profile that is to have it has claimed it.",
    ),
    Mutant(
        "stages/claim.py",
        "self._publisher.publish([Apply(*_who(owner), cluster)])",
        "self._publisher.publish([])",
        "A profile keeps a release that it gives up for a minute though another waits for it.",
    ),
    Mutant(
        "stages/transitions.py",
        "profile.trigger or profile.leaves_policies:\n            return\n",
        "profile.trigger:\n            return\n",
        "A profile that removes nothing waits for its successor.",
    ),
    Mutant(
        "stages/transitions.py",
        "            self._records.waiting.put(work.cluster.key, each, follower(profile))\n",
        "            self._records.waiting.get(work.cluster.key, each, profile.name)\n",
        "A profile is not removed once its successor is deployed.",
    ),
    Mutant(
        "stages/transitions.py",
        "        self._let_take(work, missing)\n",
        "",
        "A successor that was in conflict does not take the objects of a profile that leaves.",
    ),
]
