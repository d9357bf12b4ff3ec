"""Mutants of roll-outs in steps."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/execute.py",
        "                self._turns.refuse_early(work)\n",
        "",
        "All clusters change at once, whatever a profile asks for.",
    ),
    Mutant(
        "stages/deployer.py",
        ("        if not profile.error:\n            self._turns.end(profile, cluster, outcome)\n"),
        "",
        "The turn of a cluster that is done never ends.",
    ),
    Mutant(
        "stages/deployer.py",
        (
            "        self._order.leave(profile, cluster, outcome)\n"
            "        self._turns.end(profile, cluster, outcome)\n"
        ),
        "        self._order.leave(profile, cluster, outcome)\n",
        "Nobody is let in for a cluster that leaves.",
    ),
    Mutant(
        "stages/deployer.py",
        "            self._turns.begin(work)\n",
        "",
        "Who ends the turn of a cluster by what he saw before wins over who is at work in it.",
    ),
    Mutant(
        "stages/turns.py",
        "                self._records.rotas.put(which, kept.value, expect=kept.token)\n",
        "",
        "Who begins at his turn does not let others see that he has begun.",
    ),
    Mutant(
        "stages/turns.py",
        "            if idle:\n                self._refuse_overtaken(idle)\n",
        "",
        "A cluster that was paused a moment ago loses its turn while another worker is at it.",
    ),
    Mutant(
        "stages/turns.py",
        "            self._forget(profile, cluster)\n",
        "            pass\n",
        "Who waited for a turn is noted for ever once nobody has to.",
    ),
    Mutant(
        "stages/turns.py",
        " or is_done(work):\n",
        ":\n",
        "What has the present revision is put back at its turn alone.",
    ),
    Mutant(
        "stages/turns.py",
        "        self._records.rotas.wait(place(profile), cluster)\n",
        "",
        "Who waits is not let in by others.",
    ),
    Mutant(
        "stages/turns.py",
        ('            done = ""\n        wanted'),
        ("            pass\n        wanted"),
        "A new revision takes the place of who is at it.",
    ),
    Mutant(
        "stages/turns.py",
        "if each in wanted and each != done]",
        "if each != done]",
        "A cluster that leaves keeps its place.",
    ),
    Mutant(
        "stages/turns.py",
        "if each in wanted and each != done]",
        "if each in wanted]",
        "A cluster that is done keeps its place.",
    ),
    Mutant(
        "stages/turns.py",
        "        free = now.rollout.places(len(wanted)) - len(stay)\n",
        "        free = now.rollout.places(len(wanted))\n",
        "More are let in than there are places.",
    ),
    Mutant(
        "stages/turns.py",
        "            self._publisher.publish(Apply(*which, each) for each in others)\n",
        "",
        "Who is let in is not told.",
    ),
    Mutant(
        "stages/turns.py",
        "            new = Rota((*stay, *names), (*untold, *names))\n",
        "            new = Rota((*stay, *names))\n",
        "Who was let in by one that dies is told by nobody.",
    ),
    Mutant(
        "stages/turns.py",
        "                token = self._records.rotas.put(which, new, expect=token)\n",
        "                token = self._records.rotas.put(which, new, expect=None)\n",
        "Two who let in at once let in too many.",
    ),
    Mutant(
        "stages/turns.py",
        (
            "        elif token != ABSENT and not rota.at_work:\n"
            "            self._records.rotas.delete(which, expect=token)\n"
        ),
        "",
        "The rota of a roll-out that is over stays for ever.",
    ),
    Mutant(
        "model/rollout.py",
        "            number = -(-number * clusters // 100)\n",
        "            number = number * clusters // 100\n",
        "A share of clusters is rounded down.",
    ),
    Mutant(
        "model/rollout.py",
        "min(max(number, 1), MOST_PLACES)",
        "min(number, MOST_PLACES)",
        "A share of few clusters lets in nobody.",
    ),
    Mutant(
        "model/rollout.py",
        "min(max(number, 1), MOST_PLACES)",
        "max(number, 1)",
        "A rota may be larger than a record.",
    ),
]
