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
        "        if account:\n",
        "        if account and not work.changed:\n",
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
        "messages.py",
        '        if ":" in self.profile:\n            return self.schema\n',
        "",
        "The version before withdraws RoleRequests.",
    ),
    Mutant(
        "records/versions.py",
        'not {"/", ":"}.intersection(item.value.get("name", ""))',
        '"/" not in item.value.get("name", "")',
        "The version before brings roles, and binds them to nobody.",
    ),
]
