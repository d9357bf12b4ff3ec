"""Mutants of what is kept, and how."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "records/observations.py",
        'if old["gone"] and old["uid"] == new.uid:\n        return True',
        'if old["gone"] and old["uid"] == new.uid:\n        return False',
        "A late message revives what is gone.",
    ),
    Mutant(
        "records/observations.py",
        'return bool(old["rv"] > new.resource_version)',
        "return False",
        "A late message brings back an older version.",
    ),
    Mutant(
        "records/observations.py",
        'return bool(old["rv"] > new.resource_version)',
        'return bool(old["rv"] >= new.resource_version)',
        "A sender that repeats itself is not heard to the end.",
    ),
    Mutant(
        "records/observations.py",
        'return bool(old["uid"] != new.uid and old["rv"] > new.resource_version)',
        "return False",
        "The late deletion of an object buries the next one of its name.",
    ),
    Mutant(
        "records/observations.py",
        "                self._payloads.follow(old, new, observation.manifest)\n",
        "                now = self._payloads.store.get(partition, sort)\n"
        "                self._payloads.follow(now, new, observation.manifest)\n",
        "The slower of two writers of an observation wins.",
    ),
    Mutant(
        "records/observations.py",
        "TOMBSTONE = timedelta(days=7)",
        "TOMBSTONE = timedelta(0)",
        "A deletion is forgotten at once.",
    ),
    Mutant(
        "records/observations.py",
        'version = max(version, old.value["rv"])',
        "version = 0",
        "A tombstone is older than the object that it buries.",
    ),
    Mutant(
        "records/clusters.py",
        "if old and (old.value.revision > gate.revision or old.value == gate):",
        "if old and old.value == gate:",
        "A gate of an older catalog stays.",
    ),
    Mutant(
        "records/clusters.py",
        'if self._payloads.store.get("cluster", cluster) is None:',
        "if not cluster:",
        "A forgotten cluster's gate is opened again.",
    ),
    Mutant(
        "records/records.py",
        "        self.owners.forget(key)\n",
        "",
        "In a cluster made anew the old owners keep everything.",
    ),
    Mutant(
        "records/records.py",
        '        self._payloads.forget(f"inventory/{key}")\n',
        "",
        "In a cluster made anew everything is held already.",
    ),
    Mutant(
        "records/timers.py",
        '        self._store.put(Item(f"due/{mark[0]}", f"{moment}/{mark}", entry))\n',
        "",
        "A timer that is set is found by nobody.",
    ),
    Mutant(
        "records/timers.py",
        "            self._store.delete(_place(name), name, expect=due.timer.token)",
        "            self._store.delete(_place(name), name)",
        "A timer that is set anew while it fires is forgotten.",
    ),
    Mutant(
        "records/timers.py",
        "            self._put(moved, expect=due.timer.token)\n",
        "            pass\n",
        "A sweep that has fired is never due again.",
    ),
    Mutant(
        "records/payloads.py",
        "        if expect != ANY:\n"
        "            return self.follow(self._expected(new, expect), new, payload)\n",
        "",
        "A record is written whatever was expected.",
    ),
    Mutant(
        "records/payloads.py",
        " if expect == ANY else self._expected(new, expect)\n",
        "\n",
        "The clear fields of a record are written whatever was expected.",
    ),
    Mutant(
        "records/payloads.py",
        '        apart = bool(value.get("payload") or (old and _kept(old).get("payload")))\n',
        '        apart = bool(value.get("payload"))\n',
        "What lay apart before a short payload is left behind.",
    ),
    Mutant(
        "records/payloads.py",
        "                self.store.put(replace(each, expires_at=self._clock.now() + _OLD))\n",
        "                pass\n",
        "What a deleted object was like lies apart for ever.",
    ),
    Mutant(
        "records/payloads.py",
        "                if now.token == item.token:",
        "                if now:",
        "A payload that was replaced while it was read counts as lost.",
    ),
]
