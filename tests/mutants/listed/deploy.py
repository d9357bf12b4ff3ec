"""Mutants of what a profile is made of."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/concluding.py",
        "            if not seen or seen.value.manifest != manifest:\n",
        "            if not seen:\n",
        "A CloudEvent is buried that came after the one that is over.",
    ),
    Mutant(
        "stages/concluding.py",
        '        return said == {"Delete"}\n',
        "        return True\n",
        "What one trigger is done with is withdrawn from all.",
    ),
    Mutant(
        "stages/concluding.py",
        "            self._publisher.publish([follow])\n",
        "            pass\n",
        "That a CloudEvent was buried is told to nobody.",
    ),
    Mutant(
        "stages/writer.py",
        "leaving = {*old.destinations, *old.leaving} - {*draft.destinations}",
        "leaving = {*old.leaving} - {*draft.destinations}",
        "A cluster that is chosen no more keeps everything.",
    ),
    Mutant(
        "stages/writer.py",
        "    stays = bool(draft.error) or old.pinned\n",
        "    stays = old.pinned\n",
        "A text that fails takes away what was applied.",
    ),
    Mutant(
        "stages/writer.py",
        "    stays = bool(draft.error) or old.pinned\n",
        "    stays = bool(draft.error)\n",
        "Whatever is declared undoes a rollback.",
    ),
    Mutant(
        "stages/writer.py",
        "pinned=old.pinned, **contents_of(old)",
        "**contents_of(old)",
        "A rollback is undone by the second event after it.",
    ),
    Mutant(
        "stages/writer.py",
        "            if old.latest > 1:\n",
        "            if old.latest > 99:\n",
        "What a profile held before is never deleted.",
    ),
    Mutant(
        "stages/revisions.py",
        "if not lost and (new.pinned or new.recipe != old.recipe):",
        "if not lost:",
        "Events drive out what declarations have replaced.",
    ),
    Mutant(
        "stages/revisions.py",
        "if not lost and (new.pinned or new.recipe != old.recipe):",
        "if not lost and new.recipe != old.recipe and not new.pinned:",
        "What is rolled back is kept by nobody.",
    ),
    Mutant(
        "stages/revisions.py",
        "        number = known or old.latest + 1\n",
        "        number = old.latest + 1\n",
        "What comes again gets another number.",
    ),
    Mutant(
        "fleet/rollback.py",
        "    if number == profile.number or (profile.pinned and not number):\n",
        "    if number == profile.number:\n",
        "Who rolls back twice goes back twice.",
    ),
    Mutant(
        "fleet/rollback.py",
        "here.records.profiles.put_head(new, expect=found.token)",
        "here.records.profiles.put_head(new)",
        "Undoing a rollback writes over what another worker wrote.",
    ),
    Mutant(
        "fleet/rollback.py",
        '        new = replace(old, pinned=False, made_of="")\n',
        "        new = replace(old, pinned=False)\n",
        "A profile for all objects stays rolled back, though that is undone.",
    ),
    Mutant(
        "fleet/rollback.py",
        "    here.records.timers.set(name, at, _rendered(profile).message().body)\n",
        "",
        "A death while a profile is rolled back is not made good.",
    ),
    Mutant(
        "stages/writer.py",
        "                if old.told:\n                    return self._note(new, token)\n",
        "                if old:\n                    return self._note(new, token)\n",
        "A death between a profile and its messages is not made good.",
    ),
    Mutant(
        "stages/writer.py",
        "            elif old.told:\n                return True\n",
        "            elif old:\n                return True\n",
        "A death between a withdrawal and its messages is not made good.",
    ),
    Mutant(
        "stages/writer.py",
        "                new = replace(new, revision=_drawn(), told=False)\n"
        "                token = self._put_titled(",
        "                new = replace(new, revision=_drawn(), told=True)\n"
        "                token = self._put_titled(",
        "A profile is marked as told before it is.",
    ),
    Mutant(
        "stages/writer.py",
        "return self._records.profiles.put(new, expect=token)",
        "return self._records.profiles.put(new)",
        "A profile is written over what another worker wrote.",
    ),
    Mutant(
        "stages/instantiate.py",
        "keys = {profile.object for profile in self._records.profiles.heads(name, cluster)}",
        "keys = set()",
        "Profiles whose objects match no more are not asked for.",
    ),
    Mutant(
        "stages/instantiate.py",
        "keys.update(key for key, _ in marks)",
        "keys.update(())",
        "Profiles that should be there are not asked for.",
    ),
    Mutant(
        "stages/writer.py",
        "for destination in (*profile.destinations, *profile.leaving)",
        "for destination in profile.destinations",
        "Nobody leaves a cluster.",
    ),
    Mutant(
        "stages/reports.py",
        'return found.value.digest if found and found.value.matching else ""',
        'return found.value.digest if found else ""',
        "An object that matches no more is rendered.",
    ),
    Mutant(
        "stages/writer.py",
        "leaving = tuple(sorted({*old.destinations, *noted}))",
        "leaving = tuple(sorted({*old.destinations}))",
        "A withdrawal forgets the clusters that were being left.",
    ),
    Mutant(
        "stages/instantiate.py",
        "if trigger is None or not matched:",
        "if trigger is None:",
        "A trigger with no matches keeps its profile.",
    ),
    Mutant(
        "stages/instantiate.py",
        "            if inputs == self._inputs(self._catalogs.current(), trigger, message):\n",
        "            if inputs == inputs:\n",
        "Nobody looks again at what a profile was rendered from.",
    ),
    Mutant(
        "stages/resolve.py",
        "            if made and self._catalogs.current().revision == catalog.revision:\n",
        "            if made:\n",
        "Nobody looks again at what a user's own profile was made from.",
    ),
    Mutant(
        "stages/instantiate.py",
        "return _Inputs(catalog.revision, ((message.object, mark),) if mark else ())",
        "return _Inputs(catalog.revision, ((message.object, ''),) if mark else ())",
        "An object that changed while it was rendered counts as rendered.",
    ),
    Mutant(
        "stages/instantiate.py",
        "            if not message.object:\n"
        "                self._fan_out(catalog, trigger, message)\n",
        "",
        "A trigger that changed asks for no object's profile.",
    ),
    Mutant(
        "stages/instantiate.py",
        "return whole and profile.told and bool(self.mark)",
        "return whole and bool(self.mark)",
        "A profile for all that died before its clusters were told counts as made.",
    ),
    Mutant(
        "stages/instantiate.py",
        "return digest([self.revision, self.marks])",
        "return digest(self.marks)",
        "A profile for all is not rendered again when its trigger changes.",
    ),
    Mutant(
        "stages/instantiate.py",
        "            if found and inputs.made(found.value):\n                return\n",
        "",
        "A profile for all is rendered for each of a burst's messages.",
    ),
    Mutant(
        "stages/instantiate.py",
        "        self._rest(message)\n",
        "",
        "A profile that takes long to render never rests.",
    ),
    Mutant(
        "stages/objects.py",
        "if manifest and digest(content(manifest)) == mark:",
        "if manifest:",
        "An object is kept as what it was not.",
    ),
    Mutant(
        "stages/titles.py",
        "            self._publisher.publish(Instantiate(*each) for each in kept.value.waiting)\n",
        "",
        "A name that is given up stays nobody's.",
    ),
    Mutant(
        "stages/titles.py",
        "self._records.titles.put(*name, kept.value, expect=token)",
        "self._records.titles.put(*name, kept.value)",
        "Of two who take a name at once both keep it.",
    ),
    Mutant(
        "stages/titles.py",
        "return self._manifest(title, name) is not None",
        "return True",
        "Who died before its profile was written has a name for ever.",
    ),
    Mutant(
        "stages/writer.py",
        "                self._titles.keep(self._take(new))\n",
        "                pass\n",
        "Who lost a name before its profile was written goes on without it.",
    ),
    Mutant(
        "stages/execute.py",
        "                if any(feature.reads_otherwise(work) for feature in self._features):\n",
        "                if not self:\n",
        "What was read while it changed stays as it was.",
    ),
    Mutant(
        "stages/instantiate.py",
        "                turns=turns.times + 1,\n",
        "                turns=turns.times,\n",
        "Turns are not counted, and a loop is fed.",
    ),
    Mutant(
        "engine/looping.py",
        "each.turning is not None and each.turned_under == revision",
        "each.turning is not None",
        "Who mends a trigger waits for a minute.",
    ),
    Mutant(
        "engine/looping.py",
        "left = PACE * (self.times - MOST + 1) -",
        "left = PACE * (self.times - MOST) -",
        "A loop has a turn too many.",
    ),
    Mutant(
        "engine/looping.py",
        "max((each for each in known if each.level(now) > 0), default",
        "max((each for each in known), default",
        "A loop that ended is never forgotten.",
    ),
    Mutant(
        "stages/loops.py",
        "if kept is None or kept.value.at <= now:",
        "if True:",
        "A turn that waits is told of again with each message.",
    ),
    Mutant(
        "stages/loops.py",
        "place = owner.value.trigger, owner.value.source, owner.value.profile",
        "place = owner.value.trigger, cluster, owner.value.profile",
        "A loop across clusters is fed.",
    ),
]
