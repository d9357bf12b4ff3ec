"""Mutants of how what templates read in `mgmt/mgmt` is followed, and is followed no more."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/deployer.py",
        "        self._elsewhere.note(work)\n        plans = self._plans(work)\n",
        "        plans = self._plans(work)\n        self._elsewhere.note(work)\n",
        "What is missing when it is read for the first time is followed by nobody.",
    ),
    Mutant(
        "stages/elsewhere.py",
        "                fresh[key] = self._records.readers.note(key, reader)\n",
        "                fresh[key] = token = self._records.readers.note(key, reader)\n"
        "                self._records.readers.settle(key, reader, expect=token)\n",
        "Who dies before what it reads rings is taken for one that saw to it.",
    ),
    Mutant(
        "stages/elsewhere.py",
        "            self._publisher.publish([Sweep(MANAGEMENT)])\n",
        "            pass\n",
        "What is read rings from the next sweep on.",
    ),
    Mutant(
        "stages/elsewhere.py",
        "if gate and any(self._records.readers.first(kind) == reader for kind in kinds - rings):",
        "if gate and kinds - rings:",
        "A roll-out to a fleet has the cluster that is read swept by each destination.",
    ),
    Mutant(
        "stages/elsewhere.py",
        "            if self._reads(reader, kind):\n                # It came back",
        "            if False:\n                # It came back",
        "Who reads again while it is struck out is followed by nobody.",
    ),
    Mutant(
        "stages/elsewhere.py",
        "            if self._reads(reader, kind):\n                return True\n",
        "            if reader:\n                return True\n",
        "A kind that one has read who is no more rings for ever.",
    ),
    Mutant(
        "stages/elsewhere.py",
        "        for key in sorted(known.keys() - wanted):\n"
        "            self._records.readers.delete(key, reader)\n",
        "",
        "What is read no more has its profile applied for ever.",
    ),
    Mutant(
        "stages/elsewhere.py",
        "                wanted |= known.keys()\n",
        "",
        "Who reads for more clusters than there is time for follows none of the rest.",
    ),
    Mutant(
        "stages/deployer.py",
        "        if outcome is None or outcome.value.reads:\n"
        "            self._elsewhere.forget(profile.name, cluster)\n",
        "",
        "What has left a cluster is read for it for ever.",
    ),
    Mutant(
        "stages/sweep.py",
        "        self._elsewhere.tell(each[::2] for each in rings if each not in heard)\n",
        "",
        "What changed before its kind rang is not read again.",
    ),
    Mutant(
        "stages/sweep.py",
        "if set(self._read_kinds(course)) - set(read) or set(rings) != let_in:",
        "if set(rings) != let_in:",
        "A kind that is noted while a sweep lets go of it rings no more.",
    ),
    Mutant(
        "stages/sweep.py",
        "if set(self._read_kinds(course)) - set(read) or set(rings) != let_in:",
        "if set(self._read_kinds(course)) - set(read):",
        "What rings is let in by no gate of a later catalog.",
    ),
    Mutant(
        "stages/sweep.py",
        "health.followed if uid == health.uid and not mute else ()",
        "health.followed",
        "Another cluster of that name is taken for the one whose objects were read.",
    ),
    Mutant(
        "stages/consequences.py",
        "            followed = old.value.followed if old else ()\n",
        "            followed = ()\n",
        "A declaration has rings of what is read turned away.",
    ),
    Mutant(
        "stages/mounts.py",
        "    if followed and cluster == MANAGEMENT:\n",
        "    if not held and followed and cluster == MANAGEMENT:\n",
        "What is held in the cluster that is read is followed by nobody.",
    ),
    Mutant(
        "stages/hints.py",
        "        if _is_pending(hint, seen):\n            self._wait(hint, self._records",
        "        if seen and _is_pending(hint, seen):\n            self._wait(hint, self._records",
        "What is about to come is read before it is there.",
    ),
    Mutant(
        "stages/watch.py",
        "        if cluster == MANAGEMENT:\n",
        "        if not cluster:\n",
        "What Bellhop writes itself is followed by nobody.",
    ),
    Mutant(
        "records/readers.py",
        '        prefix = f"{_place(key)}/" if key.namespace else _place(key)\n',
        '        prefix = f"{_place(key)}/"\n',
        "What has no namespace is followed by nobody who wrote one.",
    ),
    Mutant(
        "records/readers.py",
        "            token = self._beside(key, replace(reader, settled=False), expect=ANY)\n",
        "            token = ANY\n",
        "Who dies while he strikes out what is read leaves it for settled.",
    ),
    Mutant(
        "records/readers.py",
        "                    self._store.delete(*place, expect=row.token)\n",
        "                    self._store.delete(*place)\n",
        "What another notes while it is struck out is followed by nobody.",
    ),
    Mutant(
        "records/readers.py",
        "                if found is None or found.token != token:\n",
        "                if found is None:\n",
        "What another has settled while it was struck out is struck out, too.",
    ),
    Mutant(
        "records/readers.py",
        "                self.delete(key, reader)\n            raise\n",
        "                pass\n            raise\n",
        "What was struck out while it was noted is read for ever.",
    ),
    Mutant(
        "records/readers.py",
        "            self._beside(key, replace(reader, settled=True), expect=expect)\n",
        "            self._beside(key, replace(reader, settled=True), expect=ANY)\n",
        "What another has struck out meanwhile is taken for settled.",
    ),
    Mutant(
        "records/records.py",
        "        self.readers.forget(key)\n",
        "",
        "A cluster that is forgotten has things read for it for ever.",
    ),
]
