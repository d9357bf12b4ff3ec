"""The mutants, by file; whoever rewrites a file gives them new snippets, or writes others."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_CLAIM = [
    Mutant(
        "stages/claim.py",
        "if profile.tier < owner.tier:",
        "if profile.tier <= owner.tier:",
        "An owner of the same tier loses what it has.",
    ),
    Mutant(
        "stages/claim.py",
        "self._records.put_owner(cluster, key, mine, expect=ABSENT)",
        "self._records.put_owner(cluster, key, mine, expect=-1)",
        "Two who find nobody both own an object.",
    ),
    Mutant(
        "stages/claim.py",
        "self._records.put_owner(cluster, key, new, expect=version)",
        "self._records.put_owner(cluster, key, new, expect=-1)",
        "Who takes an object overwrites whoever took it meanwhile.",
    ),
    Mutant(
        "stages/claim.py",
        "return Taken(new=True, before=owner, messages=_contests([loser], cluster, key))",
        "return Taken(new=True, before=owner)",
        "Who loses an object is not told.",
    ),
    Mutant(
        "stages/claim.py",
        "if waiter not in owner.waiting:",
        "if waiter in owner.waiting:",
        "Who does not get an object is not remembered.",
    ),
    Mutant(
        "stages/claim.py",
        "return _contests(found[0].waiting, cluster, key)",
        "return []",
        "Who waits for an object is not told when it is given up.",
    ),
    Mutant(
        "stages/claim.py",
        "if found is None or found[0].profile != profile:\n                return []",
        "if found is None:\n                return []",
        "A profile gives up what another owns.",
    ),
    Mutant(
        "stages/claim.py",
        "                    if owner.tier != profile.tier:",
        "                    if not owner.tier:",
        "An owner keeps the tier that it had when it took an object.",
    ),
    Mutant(
        "stages/claim.py",
        "if before is None:",
        "if before is None or before:",
        "A claim that led to nothing is given up instead of given back.",
    ),
    Mutant(
        "stages/claim.py",
        "owner.waiting if again or owner.tier",
        "owner.waiting if owner.tier",
        "Who claims again after a death tells nobody.",
    ),
]

_EXECUTE = [
    Mutant(
        "stages/execute.py",
        "        if begun:\n",
        "        if not self:\n",
        "Nothing is written down before the first object is applied.",
    ),
    Mutant(
        "stages/execute.py",
        "            if not work.failed:\n",
        "            if self:\n",
        "A profile that could not be applied as a whole takes something away.",
    ),
    Mutant(
        "stages/execute.py",
        "        finally:\n            self._keep(work)",
        "        except ZeroDivisionError:\n            self._keep(work)",
        "What was applied is not written down.",
    ),
    Mutant(
        "stages/execute.py",
        "if self._claims.owns(work.cluster, key, work.profile.name):",
        "if self._claims:",
        "An object that another profile took is removed.",
    ),
    Mutant(
        "stages/execute.py",
        "self._queue.publish(self._claims.give_up(work.cluster, key, work.profile.name))",
        "self._claims.give_up(work.cluster, key, work.profile.name)",
        "Who waited for a removed object is not told.",
    ),
    Mutant(
        "stages/execute.py",
        "self._queue.publish(self._claims.give_up(work.cluster, key, work.profile.name))",
        "self._queue.publish([])",
        "A removed object keeps its owner.",
    ),
    Mutant(
        "stages/execute.py",
        'if work.body.get("contested"):',
        'if work.body.get("no such"):',
        "Who lost an object goes on holding it.",
    ),
    Mutant(
        "stages/execute.py",
        "put_inventory(inventory, expect=work.version)",
        "put_inventory(inventory)",
        "An inventory is written over what another worker noted.",
    ),
    Mutant(
        "stages/execute.py",
        "            self._add(work)\n            raise",
        "            raise",
        "What a slow worker applied is noted nowhere.",
    ),
    Mutant(
        "stages/execute.py",
        "if cluster not in profile.destinations and profile.leaves_policies:",
        "if cluster not in profile.destinations:",
        "What is withdrawn stays.",
    ),
    Mutant(
        "stages/execute.py",
        "leaving=tuple(each for each in found[0].leaving if each != cluster)",
        "leaving=found[0].leaving",
        "A profile waits for ever to leave a cluster that it has left.",
    ),
    Mutant(
        "stages/execute.py",
        "if new.destinations or new.leaving or new.digest or new.error:",
        "if new:",
        "A withdrawn profile is never closed.",
    ),
    Mutant(
        "stages/execute.py",
        "if new.destinations or new.leaving or new.digest or new.error:",
        "if new.destinations or new.digest or new.error:",
        "A withdrawn profile is closed before all clusters are left.",
    ),
    Mutant(
        "stages/execute.py",
        "        self._records.delete_outcome(cluster, profile.name)\n",
        "",
        "The outcome of what was withdrawn stays.",
    ),
    Mutant(
        "stages/execute.py",
        "not work.changed and (old.phase, old.message) == (phase, text):",
        "not work.changed:",
        "A failure is shown after it has passed.",
    ),
    Mutant(
        "stages/execute.py",
        "if self._records.cluster(cluster) is None:",
        "if not cluster:",
        "A forgotten cluster is worked on.",
    ),
    Mutant(
        "stages/execute.py",
        "        if not work.held[key].digest:\n",
        "        if key in work.held:\n",
        "A refused change makes an object nobody's that is applied.",
    ),
    Mutant(
        "stages/execute.py",
        "return TemporaryError(str(error))",
        "return error",
        "A kind that is not served yet is given up.",
    ),
    Mutant(
        "stages/execute.py",
        "if not self._make_namespace(kube, each.key):",
        "if self:",
        "A namespace that is missing is not made.",
    ),
    Mutant(
        "engine/planning.py",
        "digest([manifest, content.ref, tier])",
        "digest([manifest, content.ref])",
        "A new tier is not written on what is applied.",
    ),
    Mutant(
        "engine/planning.py",
        "if key in held and held[key].digest == each.digest}",
        "if key in held and held[key].digest}",
        "An object that is held is never applied anew.",
    ),
    Mutant(
        "engine/planning.py",
        "(key for key in held if key not in unique)",
        "(key for key in held if key not in unique and held[key].digest)",
        "What a killed worker had begun, and nobody wants any more, stays.",
    ),
]

_EVALUATE = [
    Mutant(
        "stages/evaluate.py",
        "            self._records.delete_match(cluster, source.name, key)\n",
        "",
        "What matches no more stays a match.",
    ),
    Mutant(
        "stages/evaluate.py",
        "matching, error = was, str(failure)",
        "matching, error = False, str(failure)",
        "An error is taken for an empty answer.",
    ),
    Mutant(
        "stages/evaluate.py",
        "if changed is None and attempt == 1:",
        "if changed is None:",
        "A death between a match and its message is not made good.",
    ),
    Mutant(
        "stages/evaluate.py",
        "if old and (old.matching, old.digest, old.error) == (matching, mark, error):",
        "if old and (old.matching, old.error) == (matching, error):",
        "An object that changed and still matches is not told of.",
    ),
    Mutant(
        "stages/evaluate.py",
        "for source in catalog.sources_for(cluster, key.gvk):",
        "for source in catalog.sources_for(cluster, key.gvk)[:1]:",
        "Only one of the sources that name a kind is asked.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            for name in triggers\n        ]",
        "            for name in triggers[:1]\n        ]",
        "Only one trigger of a source is told.",
    ),
    Mutant(
        "stages/evaluate.py",
        "if catalog.triggers[name].one_for_event else",
        "if name else",
        "A trigger for all objects is asked for one.",
    ),
]

_RECORDS = [
    Mutant(
        "records/records.py",
        'if old["gone"] and old["uid"] == new.uid:\n        return True',
        'if old["gone"] and old["uid"] == new.uid:\n        return False',
        "A late message revives what is gone.",
    ),
    Mutant(
        "records/records.py",
        'return bool(old["rv"] > new.resource_version)',
        "return False",
        "A late message brings back an older version.",
    ),
    Mutant(
        "records/records.py",
        'return bool(old["rv"] > new.resource_version)',
        'return bool(old["rv"] >= new.resource_version)',
        "A sender that repeats itself is not heard to the end.",
    ),
    Mutant(
        "records/records.py",
        'return bool(old["uid"] != new.uid and old["rv"] > new.resource_version)',
        "return False",
        "The late deletion of an object buries the next one of its name.",
    ),
    Mutant(
        "records/records.py",
        "known = old and not (asked_at",
        "known = old and not (asked_at and asked_at.year < 2000",
        "What a restored cluster says is older than what it said before.",
    ),
    Mutant(
        "records/records.py",
        "                    expect=old.version if old else ABSENT,\n",
        "                    expect=ANY,\n",
        "The slower of two writers of an observation wins.",
    ),
    Mutant(
        "records/records.py",
        "TOMBSTONE = timedelta(days=7)",
        "TOMBSTONE = timedelta(0)",
        "A deletion is forgotten at once.",
    ),
    Mutant(
        "records/records.py",
        'if old and old.value["revision"] > gate.revision:',
        "if old and not gate:",
        "A gate of an older catalog stays.",
    ),
    Mutant(
        "records/records.py",
        'if self.store.get("cluster", cluster) is None:',
        "if not cluster:",
        "A forgotten cluster's gate is opened again.",
    ),
    Mutant(
        "records/records.py",
        'version = max(version, old.value["rv"])',
        "version = 0",
        "A tombstone is older than the object that it buries.",
    ),
    Mutant(
        "records/records.py",
        '        self._forget(f"owner/{key}")\n',
        "",
        "In a cluster made anew the old owners keep everything.",
    ),
    Mutant(
        "records/records.py",
        '        self._forget(f"inventory/{key}")\n',
        "",
        "In a cluster made anew everything is held already.",
    ),
]

_DEPLOY = [
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
        "if old == new and attempt == 1:",
        "if old == new:",
        "A death between a profile and its messages is not made good.",
    ),
    Mutant(
        "stages/deploy.py",
        "if old == new and new.leaving and attempt == 1:",
        "if old == new and new.leaving:",
        "A death between a withdrawal and its messages is not made good.",
    ),
    Mutant(
        "stages/deploy.py",
        "keys = {profile.object for profile in self._records.profile_heads(name, cluster)}",
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
        "if not match or not match.matching or not observation or",
        "if not observation or",
        "An object that matches no more is rendered.",
    ),
    Mutant(
        "stages/deploy.py",
        "                self._records.put_profile(new, expect=version)\n            except",
        "                self._records.put_profile(new)\n            except",
        "A profile is written over what another worker wrote.",
    ),
    Mutant(
        "stages/deploy.py",
        "leaving=tuple(sorted({*old.destinations, *old.leaving})),",
        "leaving=tuple(sorted({*old.destinations})),",
        "A withdrawal forgets the clusters that were being left.",
    ),
    Mutant(
        "stages/deploy.py",
        "if trigger is None or not matched:",
        "if trigger is None:",
        "A trigger with no matches keeps its profile.",
    ),
]

_SWEEP = [
    Mutant(
        "stages/sweep.py",
        "            if kube.get(gvk, key.namespace, key.name) is None\n",
        "",
        "A list is believed without a look at what it lacks.",
    ),
    Mutant(
        "stages/sweep.py",
        "if missing <= self._settings.deletion_floor or share <= self._settings.deletion_share:",
        "if missing >= 0:",
        "One surprising answer is taken for emptiness.",
    ),
    Mutant(
        "stages/sweep.py",
        "full = full or attempt > 1 or health.judged != judged",
        "full = full or attempt > 1",
        "Sources that changed while a cluster was away judge nothing.",
    ),
    Mutant(
        "stages/sweep.py",
        'judged="" if look.problems else judged,',
        "judged=judged,",
        "What could not be looked at is taken for judged.",
    ),
    Mutant(
        "stages/sweep.py",
        'if outcome.phase in {"Failed", "FailedNonRetriable"}',
        'if outcome.phase == "Failed"',
        "What was refused is never tried again.",
    ),
    Mutant(
        "stages/sweep.py",
        "if known and uid != known:",
        "if known and not uid:",
        "A cluster made anew is taken for the one that it was.",
    ),
    Mutant(
        "stages/sweep.py",
        "        if full:\n            self._reconcile(catalog, name)\n",
        "",
        "Matches of sources that are gone stay.",
    ),
    Mutant(
        "stages/sweep.py",
        "if not catalog.problems_in(cluster):",
        "if catalog:",
        "Where a trigger cannot say its source, everything is let go.",
    ),
    Mutant(
        "stages/sweep.py",
        'if self._records.cluster(body["cluster"]) is None:',
        'if body["cluster"]:',
        "What is known of a registered cluster is tidied up.",
    ),
    Mutant(
        "stages/sweep.py",
        "            pending = old is None\n",
        "            pending = False\n",
        "A creation that is not stored yet is buried.",
    ),
    Mutant(
        "stages/sweep.py",
        "if before.get(now.key) != (now.uid, now.resource_version, False):",
        "if now.key not in before:",
        "A change that the push missed is not seen.",
    ),
    Mutant(
        "stages/sweep.py",
        "due = {each.key for each in fresh} | (",
        "due = {each.key for each in fresh if each.gone} | (",
        "What a sweep finds new is not evaluated.",
    ),
    Mutant(
        "stages/sweep.py",
        "news += self._gone(kube, cluster, gvk, known, seen)",
        "news += ()",
        "A deletion that the push missed is not seen.",
    ),
]

_DECLARE = [
    Mutant(
        "stages/declare.py",
        '        self._records.put_pending(name, {"keys": [list(key) for key in keys]})\n',
        "",
        "A change that a death interrupts is not finished.",
    ),
    Mutant(
        "stages/declare.py",
        '                swept.add(f"{namespace}/{name}")\n',
        "",
        "A registered or labelled cluster is not swept.",
    ),
    Mutant(
        "stages/declare.py",
        '                self._apply_again(deploy, triggers, f"{namespace}/{name}")\n',
        "",
        "New labels of a cluster are not rendered there.",
    ),
    Mutant(
        "stages/declare.py",
        "swept |= _concerned(before, kind, name) | _concerned(after, kind, name)",
        "swept |= _concerned(after, kind, name)",
        "Where a source was in force and is no more, nothing is let go.",
    ),
    Mutant(
        "stages/declare.py",
        "clusters = {profile.cluster for profile in self._records.profile_heads(name)}",
        "clusters = set()",
        "A deleted trigger keeps its profiles.",
    ),
    Mutant(
        "stages/declare.py",
        "        self._open_gates(after)\n",
        "",
        "What new sources watch is not let in.",
    ),
    Mutant(
        "stages/declare.py",
        "        if self._records.cluster(cluster.key) is None:\n",
        "        if not cluster:\n",
        "What a killed deregistration left is believed of the next cluster of the name.",
    ),
]

_DOORS = [
    Mutant(
        "stages/inbox.py",
        "            self._again(delivery, str(error), error.delay)\n",
        "            self._queue.done(delivery)\n",
        "What fails for now is never tried again.",
    ),
    Mutant(
        "stages/inbox.py",
        "elif identity in worked and delivery.attempt == 1:",
        "elif worked:",
        "Of a batch only the first message is worked on.",
    ),
    Mutant(
        "stages/ingest.py",
        "if not hmac.compare_digest(expected, given) or gate is None:",
        "if gate is None:",
        "Anybody may send for a cluster.",
    ),
    Mutant(
        "stages/ingest.py",
        "        self._evaluate.publish([message])\n        note =",
        "        note =",
        "What is observed is told to nobody.",
    ),
    Mutant(
        "stages/ingest.py",
        "        if not self._records.put_observation(observation):\n            return\n",
        "        self._records.put_observation(observation)\n",
        "What is no news is evaluated.",
    ),
]

MUTANTS = [*_CLAIM, *_EXECUTE, *_EVALUATE, *_RECORDS, *_DEPLOY, *_SWEEP, *_DECLARE, *_DOORS]

EXPLAINED: dict[str, str] = {}
"""Mutants that nothing notices, by story: why that is right."""
