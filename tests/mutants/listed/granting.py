"""Mutants of who gets rights by RoleRequests, and what they bring."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "engine/granting.py",
        "            if gvk.group != _GROUP or gvk.kind not in _BINDINGS:\n",
        "            if gvk.kind not in _BINDINGS:\n",
        "What is called a role in another group is brought, and bound.",
    ),
    Mutant(
        "engine/granting.py",
        "    own, *roles = contents\n    refuse_others(roles)\n",
        "    own, *roles = contents\n",
        "A template may bring anything by a RoleRequest.",
    ),
    Mutant(
        "engine/granting.py",
        'hashlib.sha256(f"{request}\\0{name}".encode())',
        "hashlib.sha256(name.encode())",
        "Two RoleRequests with roles of one name take them from each other.",
    ),
    Mutant(
        "engine/granting.py",
        ", how=Handling(shared=True))",
        ")",
        "Of two RoleRequests for one account one fails.",
    ),
    Mutant(
        "engine/granting.py",
        ', "annotations": {ADOPT: "true"}}',
        "}",
        "An account that somebody has made keeps its rights from it.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "refused=None if each.how.shared else error",
        "refused=error",
        "Who shares an account fails after its roles are claimed.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "            if step.wanted.how.shared:\n                return Claimed(key)\n",
        "",
        "Nothing is given to an account that another has made.",
    ),
    Mutant(
        "stages/granting.py",
        "            if head and head.value.account == account:\n",
        "            if head:\n",
        "Everybody who was denied anything is tried again.",
    ),
    Mutant(
        "stages/granting.py",
        "        if account := work.profile.grants:\n",
        "        if (account := work.profile.grants) and not work.changed:\n",
        "Who was denied waits for his own next try.",
    ),
    Mutant(
        "stages/granting.py",
        "            self._show(work.cluster.key, account)\n",
        "",
        "A source sees by new rights when the next sweep is due.",
    ),
    Mutant(
        "stages/granting.py",
        "        if not all(each.allowed for each in permits):\n",
        "        if True:\n",
        "Whoever gets rights has his cluster swept, though he reads nothing by them.",
    ),
    Mutant(
        "stages/granting.py",
        "self._records.permits.of(cluster, account)\n",
        "self._records.permits.of(cluster)\n",
        "Whoever gets rights has his cluster swept for others who may not see all.",
    ),
    Mutant(
        "stages/permitting.py",
        "                self._doubt(permit)\n",
        "                pass\n",
        "A sweep takes a denial of a moment ago for what is so now.",
    ),
    Mutant(
        "stages/granting.py",
        "                self._records.outcomes.recount(cluster, each.profile)\n",
        "",
        "Who was given up for want of a right stays so when it comes.",
    ),
    Mutant(
        "stages/granting.py",
        "        if not work.changed and old and",
        "        if not work.changed or old and",
        "Who dies having given rights leaves those who were denied to their pauses.",
    ),
    Mutant(
        "stages/execute.py",
        "                self._revoking.refuse_early(work)\n",
        "",
        "Rights go before what was written by them, which stays for ever.",
    ),
    Mutant(
        "stages/deployer.py",
        "            self._revoking.look_ahead(work)\n",
        "",
        "What is just coming to a cluster is written while its rights go, and stays for ever.",
    ),
    Mutant(
        "stages/revoking.py",
        "        noted = work.held and work.outcome",
        "        noted = work.outcome",
        "Who comes back to a cluster is struck out by who notes that it has left.",
    ),
    Mutant(
        "stages/revoking.py",
        "waiting.put(cluster, rights_of(profile.grants), ",
        "waiting.get(cluster, rights_of(profile.grants), ",
        "Rights that wait are not told that nothing leaves by them any more.",
    ),
    Mutant(
        "stages/revoking.py",
        "        if not still:\n            return\n",
        "",
        "Rights wait for what has left as they began to wait.",
    ),
    Mutant(
        "stages/revoking.py",
        "            elif head.value.account == account and",
        "            elif",
        "Rights wait for what leaves by those of another account.",
    ),
    Mutant(
        "stages/revoking.py",
        "            until=self._records.clock.now() + spread(work.message.group, _LATEST),\n",
        "",
        "Rights wait for ever for what is to stay after all.",
    ),
    Mutant(
        "stages/order.py",
        "    needed = dict.fromkeys((*needs(profile), *(outcome.needs if outcome else ())))\n",
        "    needed = needs(profile)\n",
        "Rights are not told that what left by them has others now.",
    ),
    Mutant(
        "engine/leaving.py",
        "    if not declared:\n        return True\n",
        "",
        "Rights go before what is deleted with them, if that is worked on later.",
    ),
    Mutant(
        "engine/leaving.py",
        "    return catalog.may_reach(trigger, profile.cluster, cluster)\n",
        "    return True\n",
        "Rights go with a label before what a trigger brought by that label.",
    ),
    Mutant(
        "engine/leaving.py",
        '    if profile.sync == "DryRun":\n        return False\n',
        "",
        "Rights wait for what is only tried dry.",
    ),
    Mutant(
        "engine/leaving.py",
        "        return declared.paused or catalog.selects(declared, cluster)\n",
        "        return True\n",
        "Rights go with a label before what goes with it, too.",
    ),
    Mutant(
        "engine/leaving.py",
        "    if catalog.source_of(trigger, profile.cluster) is None:\n        return False\n",
        "",
        "Rights go before what a trigger brought whose source goes with them.",
    ),
    Mutant(
        "stages/order.py",
        (
            "        self._forget(profile, cluster, [*needs(profile), *waits])\n"
            "        self.tell(profile, cluster, outcome)\n"
        ),
        (
            "        self.tell(profile, cluster, outcome)\n"
            "        self._forget(profile, cluster, [*needs(profile), *waits])\n"
        ),
        "Rights are told that all has left before they can see that.",
    ),
]
