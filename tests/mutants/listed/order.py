"""Mutants of the order in which profiles come to a cluster, and leave it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/execute.py",
        (
            "                    self._order.refuse_early(work)\n"
            "                    self._turns.refuse_early(work)\n"
        ),
        "                    self._turns.refuse_early(work)\n",
        "No profile waits for another one before it looks at its cluster.",
    ),
    Mutant(
        "stages/deployer.py",
        "            self._look_ahead(work)\n",
        "",
        "What was about to be brought is, though what it stands on goes meanwhile.",
    ),
    Mutant(
        "stages/deployer.py",
        ("            work.held = dict(work.before)\n            raise\n"),
        "            raise\n",
        "Who waits after all is taken for one that is there.",
    ),
    Mutant(
        "stages/execute.py",
        "        self._deployer.keep_doubts(work)\n        if isinstance(error, PausedError):\n",
        "        if isinstance(error, PausedError):\n",
        "What is told of an object while its profile waits is lost.",
    ),
    Mutant(
        "stages/deployer.py",
        (
            "            self._endings.settle(work)\n"
            "            self.let_others(work.profile, work.cluster.key, work.outcome)\n"
        ),
        (
            "            self.let_others(work.profile, work.cluster.key, work.outcome)\n"
            "            self._endings.settle(work)\n"
        ),
        "Who waits is told before it can see that its turn has come.",
    ),
    Mutant(
        "stages/deployer.py",
        (
            "        self._order.leave(profile, cluster, outcome)\n"
            "        self._turns.end(profile, cluster, outcome)\n"
            "        self._endings.leave(profile, cluster, outcome)\n"
        ),
        (
            "        self._endings.leave(profile, cluster, outcome)\n"
            "        self._order.leave(profile, cluster, outcome)\n"
            "        self._turns.end(profile, cluster, outcome)\n"
        ),
        "Who dies as a profile is gone leaves those who wait for that.",
    ),
    Mutant(
        "stages/execute.py",
        "                self._deployer.let_others(found.value, cluster, outcome)\n",
        "                pass\n",
        "Who waits for what was brought once waits for ever.",
    ),
    Mutant(
        "stages/order.py",
        (
            "        for first in missing:\n"
            "            self._records.waiting.put(cluster, first, me)\n"
        ),
        "",
        "Nobody is told that its turn has come.",
    ),
    Mutant(
        "stages/order.py",
        "        lacks = [lack for first in missing if (lack := self._lack(first, cluster))]\n",
        "        lacks = [*missing]\n",
        "Who waits does not look again after it has said so.",
    ),
    Mutant(
        "stages/order.py",
        (
            "        for first in work.profile.rollout.after:\n"
            "            self._records.needing.put(cluster, first, me)\n"
        ),
        "",
        "What others stand on is withdrawn.",
    ),
    Mutant(
        "stages/order.py",
        ' and (profile.sync == "OneTime" or outcome.revision == profile.revision)',
        "",
        "A profile is brought before the new revision of what it comes after.",
    ),
    Mutant(
        "stages/order.py",
        '(profile.sync == "OneTime" or outcome.revision == profile.revision)',
        "outcome.revision == profile.revision",
        "What was brought once is never there.",
    ),
    Mutant(
        "stages/order.py",
        "    return certain and (",
        "    return (",
        "A profile is brought while what it comes after is in doubt.",
    ),
    Mutant(
        "stages/order.py",
        (
            "    if work.outcome is None or work.outcome.value.revision != work.profile.revision:\n"
            "        return False\n"
        ),
        ("    if work.outcome is None:\n        return False\n"),
        "What was brought once waits for nobody when it changes.",
    ),
    Mutant(
        "stages/order.py",
        "        if work.wanted and work.profile.rollout.after and not is_done(work):\n",
        "        if work.wanted and work.profile.rollout.after:\n",
        "What is there is not put back while what it comes after changes.",
    ),
    Mutant(
        "stages/order.py",
        "            self._records.waiting.put(cluster, needing.profile, me)\n",
        "            pass\n",
        "Who waits to be withdrawn is not told that nobody stands on it any more.",
    ),
    Mutant(
        "stages/order.py",
        " and inventory and inventory.value.held:\n",
        ":\n",
        "Who is not there keeps what it would stand on.",
    ),
    Mutant(
        "stages/order.py",
        "            if head and first in head.value.rollout.after and inventory",
        "            if head and inventory",
        "Who stands on a profile no more keeps it.",
    ),
    Mutant(
        "stages/order.py",
        " and not work.profile.leaves_policies\n",
        "\n",
        "A profile that leaves all it brought waits for others.",
    ),
    Mutant(
        "stages/order.py",
        "        still = needs(head.value) if head and cluster in",
        "        still = () if head and cluster in",
        "Who comes back while it goes is not known to stand on others.",
    ),
    Mutant(
        "stages/order.py",
        "                sort.delete(cluster, first, kept)\n",
        "                pass\n",
        "Profiles that are gone are noted for ever as standing on others.",
    ),
    Mutant(
        "stages/order.py",
        "            self._forget_former(work.profile, work.cluster.key, work.outcome)\n",
        "            pass\n",
        "Who dies having changed is noted for ever as standing on what it did before.",
    ),
    Mutant(
        "stages/order.py",
        "        self._forget_former(profile, cluster, outcome)\n",
        "",
        "What was brought once is noted for ever as standing on others.",
    ),
    Mutant(
        "stages/order.py",
        "set(former).difference(needs(profile)))\n",
        "())\n",
        "Who depends on others no more is noted for ever as standing on them.",
    ),
    Mutant(
        "stages/ending.py",
        "            needs=_needs(work),\n",
        "",
        "Nobody knows on whom a profile stood before it was changed.",
    ),
    Mutant(
        "stages/order.py",
        ("        if work.dry:\n            return\n"),
        "",
        "What is tried dry waits for its turn.",
    ),
    Mutant(
        "stages/ending.py",
        '        if known and old and (phase == "Failed" or old.message == str(error)):\n',
        "        if known:\n",
        "Who waits for another one than before does not say so.",
    ),
    Mutant(
        "stages/resolve.py",
        "        awaited = once or draft.name in catalog.awaited\n",
        "        awaited = draft.name in catalog.awaited\n",
        "A profile forgets that others stood on it while they are still to go.",
    ),
    Mutant(
        "stages/resolve.py",
        (
            "        for place in dict.fromkeys(lines):\n"
            "            self._resolve(replace(message, profile=place))\n"
        ),
        "        self._resolve(message)\n",
        "Of two that change at once the later one is brought first.",
    ),
    Mutant(
        "stages/resolve.py",
        "(*catalog.exchanged(message.profile), message.profile)",
        "(message.profile,)",
        "A profile leaves a cluster before its successor is known to have its objects.",
    ),
    Mutant(
        "stages/resolve.py",
        "            refuse_cycle(draft.name, catalog.after)\n",
        "            pass\n",
        "Of profiles in a circle nobody says why they wait.",
    ),
    Mutant(
        "stages/declare.py",
        "        self._refuse_cycles(declarations)\n",
        "",
        "Profiles in a circle are taken.",
    ),
    Mutant(
        "engine/catalog.py",
        "        return any(self._names(each, found) for each in (profile, *later))\n",
        "        return self._names(profile, found)\n",
        "What comes first does not go where what comes after it goes.",
    ),
    Mutant(
        "engine/difference.py",
        "        touched.resolved |= first | reached(touched.resolved | first, catalog.after)\n",
        "",
        "What comes first does not follow what comes after it.",
    ),
]
