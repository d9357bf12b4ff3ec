"""Mutants of what matches."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/evaluate.py",
        "            return _Judged(source, candidate, unknown=sees is None)\n",
        "            pass\n",
        "What an account may not see matches.",
    ),
    Mutant(
        "stages/evaluate.py",
        "unknown=sees is None)",
        "unknown=False)",
        "What nobody knows of an account's rights is taken for no.",
    ),
    Mutant(
        "stages/evaluate.py",
        "if not source.account or candidate is None:",
        "if not source.account:",
        "What is gone waits for its account's rights.",
    ),
    Mutant(
        "stages/permitting.py",
        "elif kept.value.allowed:",
        "else:",
        "A denial is taken for a permit.",
    ),
    Mutant(
        "stages/permitting.py",
        "return permit.at is not None and abs(now - permit.at) <= longest",
        "return permit.at is not None",
        "A permit counts for ever.",
    ),
    Mutant(
        "stages/permitting.py",
        "            self.owe(message)\n            raise\n",
        "            raise\n",
        "Who waited while a cluster was away is told nothing.",
    ),
    Mutant(
        "stages/permitting.py",
        "told = old is None or (old.told and old.allowed == allowed)",
        "told = True",
        "That rights changed is told to nobody.",
    ),
    Mutant(
        "stages/permitting.py",
        "if old and fresh and old.told:",
        "if old and fresh:",
        "What one who died had to tell is told by nobody.",
    ),
    Mutant(
        "stages/permitting.py",
        "return not kube.rights(checks)",
        "return len(kube.rights(checks)) < len(checks)",
        "One of two rights is enough.",
    ),
    Mutant(
        "stages/permitting.py",
        "account=message.account\n",
        'account=""\n',
        "Bellhop's own rights are asked for.",
    ),
    Mutant(
        "stages/permitting.py",
        "            if (permit.account, permit.gvk) not in needed:\n",
        "            if not needed:\n",
        "Permits that nobody needs are kept.",
    ),
    Mutant(
        "stages/sweep.py",
        "        self._permitting.ask_again(course.catalog, course.name)\n",
        "",
        "Rights that come and go are never found.",
    ),
    Mutant(
        "engine/generating.py",
        "        _refuse_strangers(trigger, self.source)\n",
        "",
        "A tenant is shown what others read.",
    ),
    Mutant(
        "engine/catalog.py",
        "CLOUD_EVENT_TTL), found.account))",
        "CLOUD_EVENT_TTL),))",
        "A source that changes hands keeps what it matched.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            self._records.matches.delete(match.cluster, match.source,"
        " match.key, expect=token)\n",
        "            self._records.matches.put(replace(match, told=True), expect=token)\n",
        "What matches no more leaves its match behind.",
    ),
    Mutant(
        "stages/evaluate.py",
        "matching = was if judged.error else judged.matching",
        "matching = judged.matching",
        "An error is taken for an empty answer.",
    ),
    Mutant(
        "stages/evaluate.py",
        "                if not changed and match.told and not match.held:\n",
        "                if not changed:\n",
        "A death between a match and its message is not made good.",
    ),
    Mutant(
        "stages/evaluate.py",
        "self._records.matches.put(replace(match, told=told), expect=token)",
        "self._records.matches.put(replace(match, told=True), expect=token)",
        "A match is marked as told before it is.",
    ),
    Mutant(
        "stages/evaluate.py",
        "self._records.matches.put(replace(match, told=told), expect=token)",
        "self._records.matches.put(replace(match, told=told))",
        "The slower of two judgements of an object is written over the other.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            if not (wrote or ended) or self._stands(catalog, seen):\n",
        "            if ended or not ended:\n",
        "Nobody looks again at the object after judging it.",
    ),
    Mutant(
        "stages/evaluate.py",
        "return token == seen.token and self._catalogs.current().revision == catalog.revision",
        "return self._catalogs.current().revision == catalog.revision",
        "An object that changed while it was judged counts as judged.",
    ),
    Mutant(
        "stages/evaluate.py",
        "return token == seen.token and self._catalogs.current().revision == catalog.revision",
        "return token == seen.token",
        "Sources that changed while an object was judged are not asked again.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            self._take_back(catalog, message, written)\n",
        "",
        "What was written for a source that went meanwhile stays.",
    ),
    Mutant(
        "stages/evaluate.py",
        "or self._nothing(cluster, key)\n",
        "\n            if seen is None:\n                return\n",
        "What nothing is known of keeps what it brought.",
    ),
    Mutant(
        "stages/evaluate.py",
        "if old and _said(old) == (matching, mark, judged.error, held):",
        "if old and (old.matching, old.error, old.held) == (matching, judged.error, held):",
        "An object that changed and still matches is not told of.",
    ),
    Mutant(
        "stages/evaluate.py",
        "for each in catalog.sources_of(cluster, key) if message.source",
        "for each in catalog.sources_of(cluster, key)[:1] if message.source",
        "Only one of the sources that name a kind is asked.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            seen = self._expiry.heed(catalog, seen)\n",
        "",
        "A CloudEvent never ends by its time.",
    ),
    Mutant(
        "stages/expiry.py",
        "        self._records.observations.put(tomb, asked=seen.token)\n"
        "        return self._records.observations.get(event.cluster, event.key) or seen\n",
        "        return Kept(tomb, seen.token)\n",
        "A CloudEvent whose time is over is kept.",
    ),
    Mutant(
        "stages/following.py",
        "        for name in catalog.triggers_on(cluster, match.source)\n    ]",
        "        for name in catalog.triggers_on(cluster, match.source)[:1]\n    ]",
        "Only one trigger of a source is told.",
    ),
    Mutant(
        "stages/following.py",
        "if catalog.triggers[name].one_for_event else",
        "if name else",
        "A trigger for all objects is asked for one.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            if not (wrote or ended) or self._stands(catalog, seen):\n",
        "            if not wrote or self._stands(catalog, seen):\n",
        "Who ends a trail does not look whether its object is back.",
    ),
    Mutant(
        "stages/evaluate.py",
        "if leaves and (trail.ended or not all(map(trail.may_name, leaves))):",
        "if leaves and not all(map(trail.may_name, leaves)):",
        "The trail of an object that is back stays ended.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            if trail.may_name(each.name)\n",
        "            if trail.ended\n",
        "What matched once is not asked for its match.",
    ),
    Mutant(
        "stages/evaluate.py",
        "                    judged = self._judge(catalog, source, judged.candidate, message)\n",
        "",
        "A judgement counts though another was written since.",
    ),
    Mutant(
        "stages/evaluate.py",
        "        self._put_off([each for each in judged if each.open], message)\n",
        "",
        "A script that takes long is never asked again.",
    ),
    Mutant(
        "stages/evaluate.py",
        "(each.leaves or (each.source.name in there and not each.open))",
        "(each.leaves or each.source.name in there)",
        "What a script had no time to say is taken for no.",
    ),
    Mutant(
        "stages/evaluate.py",
        "limits = None if self._pacing.is_slow(source.name, digest) else self._first",
        "limits = self._first",
        "A script that takes long gets its slice each time.",
    ),
    Mutant(
        "stages/evaluate.py",
        "whole = seen.value.gone and not message.source",
        "whole = seen.value.gone",
        "Who is asked for one source ends the trail for all.",
    ),
    Mutant(
        "stages/pacing.py",
        "return self._slow.get(source) == digest",
        "return source in self._slow",
        "A script that is written anew is still slow.",
    ),
    Mutant(
        "stages/pacing.py",
        "        self._records.paces.quick(source)\n",
        "",
        "A script that is quick again is slow for ever.",
    ),
]
