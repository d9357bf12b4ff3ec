"""Mutants of what a profile is made of."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/deploy.py",
        "leaving = {*old.destinations, *old.leaving} - {*draft.destinations}",
        "leaving = {*old.leaving} - {*draft.destinations}",
        "A cluster that is chosen no more keeps everything.",
    ),
    Mutant(
        "stages/deploy.py",
        "return replace(draft, contents=old.contents, digest=old.digest)",
        "return draft",
        "A text that fails takes away what was applied.",
    ),
    Mutant(
        "stages/deploy.py",
        "            if old.told:\n                return True\n            new = old\n",
        "            if old:\n                return True\n            new = old\n",
        "A death between a profile and its messages is not made good.",
    ),
    Mutant(
        "stages/deploy.py",
        "            elif old.told:\n                return True\n",
        "            elif old:\n                return True\n",
        "A death between a withdrawal and its messages is not made good.",
    ),
    Mutant(
        "stages/deploy.py",
        "                new = replace(new, revision=_drawn(), told=False)\n"
        "                token = self._put(old, new, token)\n"
        "            except",
        "                new = replace(new, revision=_drawn(), told=True)\n"
        "                token = self._put(old, new, token)\n"
        "            except",
        "A profile is marked as told before it is.",
    ),
    Mutant(
        "stages/deploy.py",
        "return self._records.profiles.put(new, expect=token)",
        "return self._records.profiles.put(new)",
        "A profile is written over what another worker wrote.",
    ),
    Mutant(
        "stages/deploy.py",
        "keys = {profile.object for profile in self._records.profiles.heads(name, cluster)}",
        "keys = set()",
        "Profiles whose objects match no more are not asked for.",
    ),
    Mutant(
        "stages/deploy.py",
        "keys.update(str(match.key) for match in matches if match.matching)",
        "keys.update(())",
        "Profiles that should be there are not asked for.",
    ),
    Mutant(
        "stages/deploy.py",
        "for destination in (*profile.destinations, *profile.leaving)",
        "for destination in profile.destinations",
        "Nobody leaves a cluster.",
    ),
    Mutant(
        "stages/deploy.py",
        "            if not found or not found.value.matching:\n                return []\n",
        "            if not found:\n                return []\n",
        "An object that matches no more is rendered.",
    ),
    Mutant(
        "stages/deploy.py",
        "leaving = tuple(sorted({*old.destinations, *noted}))",
        "leaving = tuple(sorted({*old.destinations}))",
        "A withdrawal forgets the clusters that were being left.",
    ),
    Mutant(
        "stages/deploy.py",
        "if trigger is None or not matched:",
        "if trigger is None:",
        "A trigger with no matches keeps its profile.",
    ),
    Mutant(
        "stages/deploy.py",
        "            if inputs == self._inputs(self._catalogs.current(), trigger, message):\n",
        "            if inputs == inputs:\n",
        "Nobody looks again at what a profile was rendered from.",
    ),
    Mutant(
        "stages/deploy.py",
        "            if made and self._catalogs.current().revision == catalog.revision:\n",
        "            if made:\n",
        "Nobody looks again at what a user's own profile was made from.",
    ),
    Mutant(
        "stages/deploy.py",
        "found and (found.value.matching, found.value.digest)]",
        "found and found.value.matching]",
        "An object that changed while it was rendered counts as rendered.",
    ),
    Mutant(
        "stages/deploy.py",
        "            if not message.object:\n"
        "                self._fan_out(catalog, trigger, message)\n",
        "",
        "A trigger that changed asks for no object's profile.",
    ),
]
