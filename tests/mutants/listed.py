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
        "self._put(cluster, key, _owned(profile, owner), token)",
        "self._put(cluster, key, _owned(profile, owner), None and token)",
        "Two who find nobody both own an object.",
    ),
    Mutant(
        "stages/claim.py",
        "token = self._records.owners.put(cluster, key, owner, expect=token)\n"
        "        if not owner.tell",
        "token = self._records.owners.put(cluster, key, owner)\n        if not owner.tell",
        "Whoever writes an owner last wins.",
    ),
    Mutant(
        "stages/claim.py",
        "tell=_with(mine.tell, loser)",
        "tell=mine.tell",
        "Who loses an object is not told.",
    ),
    Mutant(
        "stages/claim.py",
        "                if me not in owner.waiting:\n",
        "                if me in owner.waiting:\n",
        "Who does not get an object is not remembered.",
    ),
    Mutant(
        "stages/claim.py",
        "            tell = _with(owner.tell, *owner.waiting)\n            try:",
        "            tell = owner.tell\n            try:",
        "Who waits for an object is not told when it is given up.",
    ),
    Mutant(
        "stages/claim.py",
        'if found is None or found.value.profile not in ("", profile):',
        "if found is None:",
        "A profile gives up what another owns.",
    ),
    Mutant(
        "stages/claim.py",
        "moved = owner.tier != profile.tier",
        "moved = not owner.tier",
        "Who waits is not told that an owner's tier became another.",
    ),
    Mutant(
        "stages/claim.py",
        "        if before is None:\n            self.give_up",
        "        if before is None or before:\n            self.give_up",
        "A claim that led to nothing is given up instead of given back.",
    ),
    Mutant(
        "stages/claim.py",
        "        if not owner.tell:\n            return\n",
        "        if owner.profile:\n            return\n",
        "Whoever is to be told is told only when nobody has the object.",
    ),
    Mutant(
        "stages/claim.py",
        "                told = replace(owner, tell=())\n",
        "                told = owner\n",
        "Who was told is told again for ever.",
    ),
    Mutant(
        "stages/claim.py",
        "        self._publisher.publish(Apply(*each, cluster, contested=str(key)) for"
        " each in owner.tell)\n"
        "        with suppress(StaleError):\n",
        "        with suppress(StaleError):\n",
        "A change of owner is marked as told, and is told to nobody.",
    ),
    Mutant(
        "stages/claim.py",
        "        tell=before.tell if before else (),\n",
        "        tell=(),\n",
        "Who takes an object forgets whom its giver had not told yet.",
    ),
    Mutant(
        "stages/claim.py",
        "                    if mine != owner or tell:\n",
        "                    if mine != owner:\n",
        "Who comes to an object that a dead worker took tells nobody for it.",
    ),
]

_EXECUTE = [
    Mutant(
        "stages/execute.py",
        "        self._begin(work, steps)\n        self._hold(work)\n",
        "        self._begin(work, steps)\n",
        "Nothing is written down before the first object is applied.",
    ),
    Mutant(
        "stages/execute.py",
        "        self._refuse_busy(inventory)\n",
        "",
        "Another worker's lease is ignored.",
    ),
    Mutant(
        "stages/execute.py",
        "alive and inventory.until and inventory.until > now:",
        "alive and inventory.until:",
        "A dead worker's lease never ends.",
    ),
    Mutant(
        "stages/execute.py",
        "work.token = self._records.inventories.put(inventory, expect=work.token)\n\n",
        "work.token = self._records.inventories.put(inventory)\n\n",
        "Who takes the lease does not see that another has.",
    ),
    Mutant(
        "stages/execute.py",
        "            work.token = self._records.inventories.put(inventory, expect=work.token)\n"
        "        except StaleError:\n",
        "            work.token = self._records.inventories.put(inventory)\n"
        "        except StaleError:\n",
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
        'else replace(held, digest="", uid="", secret=True)',
        "else held",
        "What two did at once is taken for certain.",
    ),
    Mutant(
        "stages/execute.py",
        "        for key in [key for key, held in work.held.items() if held.digest]:\n"
        "            self._claim_again(work, key)\n",
        "",
        "What was applied after it was given up is nobody's.",
    ),
    Mutant(
        "stages/execute.py",
        "            if not work.failed:\n                # A profile",
        "            if self:\n                # A profile",
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
        "        return self._stands(work)\n",
        "        return True\n",
        "Nobody looks again at the profile after applying it.",
    ),
    Mutant(
        "stages/execute.py",
        "same = cluster is not None and cluster.token == work.registered",
        "same = True",
        "Nobody looks again at the cluster after applying to it.",
    ),
    Mutant(
        "stages/execute.py",
        "return same and now.revision == work.profile.revision",
        "return same",
        "A profile that changed while it was applied counts as applied.",
    ),
    Mutant(
        "stages/execute.py",
        "        if work.wanted != (work.cluster.key in now.destinations):\n"
        "            return False\n",
        "",
        "Where a profile is to go, or not, is not looked at again.",
    ),
    Mutant(
        "stages/execute.py",
        "        if not self._claims.taken_from(cluster, key, name):\n            secret",
        "        if self._claims:\n            secret",
        "An object that another profile took is removed.",
    ),
    Mutant(
        "stages/execute.py",
        "            self._claims.give_up(cluster, key, name)\n            if gone:",
        "            if gone:",
        "A removed object keeps its owner.",
    ),
    Mutant(
        "stages/execute.py",
        "            if self._claims.taken_from(cluster, key, name):\n"
        "                # It was taken between the question and the removal.\n"
        "                self._claims.tell_owner(cluster, key)\n",
        "",
        "Whose object was removed a moment after it was taken is not told.",
    ),
    Mutant(
        "stages/execute.py",
        "        elif not work.before[key].digest:\n"
        "            # An earlier try may have removed it for good after it was taken.\n"
        "            self._claims.tell_owner(cluster, key)\n",
        "",
        "Who died while it removed an object tells its new owner nothing.",
    ),
    Mutant(
        "stages/execute.py",
        "return kube.remove(gvk, namespace, name, uid=uid)",
        "return kube.remove(gvk, namespace, name)",
        "What somebody made in the place of ours is removed.",
    ),
    Mutant(
        "stages/execute.py",
        "if there is None or _owner(there) != work.profile.name:",
        "if there is None:",
        "What may never have been applied is removed whosever it is.",
    ),
    Mutant(
        "stages/execute.py",
        "                return False\n            uid = _uid(there)",
        "                return False\n            return False",
        "What a dead worker may have applied stays for ever.",
    ),
    Mutant(
        "stages/execute.py",
        "            # Between the claim and the apply another profile may have taken"
        " the object.\n"
        "            self._claims.take(work.cluster.key, key, work.profile)\n",
        "",
        "Nobody looks whether an object was taken before it was applied.",
    ),
    Mutant(
        "stages/execute.py",
        "        if applied or (before and not before.digest):\n            self._claims",
        "        if before and not before.digest:\n            self._claims",
        "Who overwrites the new owner of an object says nothing.",
    ),
    Mutant(
        "stages/execute.py",
        "        if applied or (before and not before.digest):\n            self._claims",
        "        if applied:\n            self._claims",
        "Who may have overwritten an object before it died says nothing.",
    ),
    Mutant(
        "stages/execute.py",
        "        if work.message.contested:\n"
        "            self._doubt(work, Identity.parse(work.message.contested))\n",
        "",
        "Who lost an object goes on holding it.",
    ),
    Mutant(
        "stages/execute.py",
        '            work.held[key] = replace(held, digest="", secret=True)\n\n    def _objects',
        "            work.held[key] = held\n\n    def _objects",
        "Whose object was overwritten takes it for as it was applied.",
    ),
    Mutant(
        "stages/execute.py",
        "if not work.wanted and work.profile.leaves_policies:",
        "if not work.wanted:",
        "What is withdrawn stays.",
    ),
    Mutant(
        "stages/execute.py",
        "leaving = tuple(each for each in found.value.leaving if each != cluster)",
        "leaving = found.value.leaving",
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
        "        if self._records.outcomes.delete(cluster, profile.name):\n",
        "        if not profile:\n",
        "The outcome of what was withdrawn stays.",
    ),
    Mutant(
        "stages/execute.py",
        "if found is None or cluster in found.value.destinations:",
        "if found is None:",
        "Who was slow to leave a cluster closes a profile that is wanted again.",
    ),
    Mutant(
        "stages/execute.py",
        "not work.changed and (old.phase, old.message) == (phase, profile.error):",
        "not work.changed:",
        "A failure is shown after it has passed.",
    ),
    Mutant(
        "stages/execute.py",
        "        if record is None:\n"
        "            self._left(profile, cluster)\n"
        "            return True\n",
        "        if record is None:\n            return True\n",
        "A profile waits for ever to leave a cluster that is forgotten.",
    ),
    Mutant(
        "stages/execute.py",
        "        if taken and not taken.new:\n            return\n",
        "",
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
        "stages/execute.py",
        "        if pause and pause > _SOON:\n",
        "        if pause and not self:\n",
        "What failed for long is never tried again.",
    ),
    Mutant(
        "stages/execute.py",
        "        if found is None and not inventory.held:\n",
        "        if found is None:\n",
        "What is left of a profile that is no more stays.",
    ),
    Mutant(
        "stages/execute.py",
        "            self._left(_closed(message), cluster)\n"
        "            return True\n"
        "        profile",
        "            return True\n        profile",
        "An outcome that was noted too late stays.",
    ),
    Mutant(
        "stages/execute.py",
        "if held and not self._claims.taken_from(work.cluster.key, key, work.profile.name):",
        "if held:",
        "Who lost an object goes on trying to have it as it was.",
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
        "            self._records.matches.delete(match.cluster, match.source,"
        " match.key, expect=token)\n",
        "            self._records.matches.put(replace(match, told=True), expect=token)\n",
        "What matches no more leaves its match behind.",
    ),
    Mutant(
        "stages/evaluate.py",
        "matching, error = was, str(failure)",
        "matching, error = False, str(failure)",
        "An error is taken for an empty answer.",
    ),
    Mutant(
        "stages/evaluate.py",
        "                if not changed and match.told:\n",
        "                if not changed:\n",
        "A death between a match and its message is not made good.",
    ),
    Mutant(
        "stages/evaluate.py",
        "self._records.matches.put(replace(match, told=False), expect=token)",
        "self._records.matches.put(replace(match, told=True), expect=token)",
        "A match is marked as told before it is.",
    ),
    Mutant(
        "stages/evaluate.py",
        "self._records.matches.put(replace(match, told=False), expect=token)",
        "self._records.matches.put(replace(match, told=False))",
        "The slower of two judgements of an object is written over the other.",
    ),
    Mutant(
        "stages/evaluate.py",
        "            if not wrote or self._stands(catalog, seen):\n",
        "            if wrote or not wrote:\n",
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
        "if old and (old.matching, old.digest, old.error) == (matching, mark, error):",
        "if old and (old.matching, old.error) == (matching, error):",
        "An object that changed and still matches is not told of.",
    ),
    Mutant(
        "stages/evaluate.py",
        "for source in catalog.sources_for(cluster, key.gvk)\n                if",
        "for source in catalog.sources_for(cluster, key.gvk)[:1]\n                if",
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
        'if item and self._payloads.head(item).get("revision", 0) > gate.revision:',
        "if item and not gate:",
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
        "        self._enter(name, at)\n"
        "        self._table.put(_place(name), name, Timer(name, at, body), expect=expect)\n",
        "        self._table.put(_place(name), name, Timer(name, at, body), expect=expect)\n",
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
        "        self._enter(timer.name, at)\n        with suppress",
        "        with suppress",
        "A sweep that has fired is never due again.",
    ),
    Mutant(
        "records/payloads.py",
        "            if expect not in (ANY, old.token if old else ABSENT):\n"
        "                break\n",
        "",
        "A record is written whatever was expected.",
    ),
    Mutant(
        "records/payloads.py",
        "        if old is None or expect not in (ANY, old.token):\n",
        "        if old is None:\n",
        "The clear fields of a record are written whatever was expected.",
    ),
    Mutant(
        "records/payloads.py",
        "                if now.token == item.token:",
        "                if now:",
        "A payload that was replaced while it was read counts as lost.",
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
        "                token = self._records.profiles.put(new, expect=token)\n"
        "            except",
        "                new = replace(new, revision=_drawn(), told=True)\n"
        "                token = self._records.profiles.put(new, expect=token)\n"
        "            except",
        "A profile is marked as told before it is.",
    ),
    Mutant(
        "stages/deploy.py",
        "token = self._records.profiles.put(new, expect=token)\n            except",
        "token = self._records.profiles.put(new)\n            except",
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
        "leaving = tuple(sorted({*old.destinations, *old.leaving}))",
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

_SWEEP = [
    Mutant(
        "stages/sweep.py",
        "if known and uid != known:",
        "if known and not uid:",
        "A cluster made anew is taken for the one that it was.",
    ),
    Mutant(
        "stages/sweep.py",
        "if self._records.clusters.get(message.cluster) is None:",
        "if message.cluster:",
        "What is known of a registered cluster is tidied up.",
    ),
    Mutant(
        "stages/sweep.py",
        "                if outcome.retry_at\n",
        "                if not outcome\n",
        "What failed while a cluster was away waits for its own time.",
    ),
    Mutant(
        "stages/look.py",
        "                # With the kind's definition went every object of it.\n"
        "                return True\n",
        "                # With the kind's definition went every object of it.\n"
        "                return False\n",
        "A kind that is served no more keeps what its objects brought.",
    ),
    Mutant(
        "stages/look.py",
        "return kube.get(*key) is None",
        "return True",
        "A list is believed without a look at what it lacks.",
    ),
    Mutant(
        "stages/look.py",
        "        if not suspicious:\n",
        "        if self:\n",
        "One surprising answer is taken for emptiness.",
    ),
    Mutant(
        "stages/look.py",
        "        fresh = [key for seen in news for key in self._write(course.kube, seen)]\n",
        "        fresh: list[ObjectKey] = []\n",
        "A change that the push missed is not seen.",
    ),
    Mutant(
        "stages/look.py",
        "        self._tell(course.name, {*fresh, *due})\n",
        "        self._tell(course.name, due)\n",
        "What a sweep finds new is not evaluated.",
    ),
    Mutant(
        "stages/look.py",
        "        self._tell(course.name, {*fresh, *due})\n",
        "        self._tell(course.name, fresh)\n",
        "Sources that changed judge only what changed, too.",
    ),
    Mutant(
        "stages/look.py",
        "        self._records.walks.suspect(course.name, missing)\n",
        "",
        "A deletion that the push missed is not seen.",
    ),
    Mutant(
        "stages/look.py",
        "            course.keep(untold={**walk.untold, str(gvk): last})\n",
        "            pass\n",
        "What a sweep wrote before it died is told to nobody.",
    ),
    Mutant(
        "stages/look.py",
        "        if newer and self._records.observations.put(now, asked=head.token):",
        "        if newer and self._records.observations.put(now):",
        "What a restored cluster says is older than what it said before.",
    ),
    Mutant(
        "stages/look.py",
        "            elif head and head.gone:\n                told.append(key)\n",
        "",
        "Who was buried before a death is told to nobody.",
    ),
    Mutant(
        "stages/sweep.py",
        "            if not course.catalog.problems_in(course.name) and not"
        " self._let_go(course, kinds):\n",
        "            if not self._let_go(course, kinds):\n",
        "Where a trigger cannot say its source, everything is let go.",
    ),
    Mutant(
        "stages/sweep.py",
        "            if match.source not in sources or not known:\n",
        "            if not match.source:\n",
        "Matches of sources that are gone stay.",
    ),
    Mutant(
        "stages/sweep.py",
        "        self._publisher.publish([Survey(course.name, full=course.walk.full)])\n",
        "",
        "Destinations are not looked at.",
    ),
    Mutant(
        "stages/sweep.py",
        "            raise OvertakenError(course.name) from error\n",
        "            pass\n",
        "A sweep that was overtaken ends another's walk.",
    ),
    Mutant(
        "stages/sweep.py",
        "        if walk.again:\n            self._publisher",
        "        if not walk:\n            self._publisher",
        "What is asked for while a sweep is under way is not done.",
    ),
    Mutant(
        "stages/survey.py",
        "            if there is None:\n                who",
        "            if there is None and not owner.profile:\n                who",
        "What was deleted by hand is not put back.",
    ),
    Mutant(
        "stages/survey.py",
        "            self._publisher.publish([Apply(trigger, source, profile, cluster)])\n",
        "            pass\n",
        "What was lost is noted, and nobody is asked to put it back.",
    ),
]

_DECLARE = [
    Mutant(
        "stages/declare.py",
        'self._records.pending.put(name, {"keys": [list(key) for key in keys]})\n',
        "pass\n",
        "A change that a death interrupts is not finished.",
    ),
    Mutant(
        "stages/declare.py",
        "            yield Sweep(key, full=key in touched.anew)\n",
        "            yield from ()\n",
        "A registered or labelled cluster is not swept.",
    ),
    Mutant(
        "stages/declare.py",
        "            yield from self._applied_again(\n"
        "                destination, self._naming(after, destination) if came else ()\n"
        "            )\n",
        "            yield from ()\n",
        "New labels of a cluster are not rendered there.",
    ),
    Mutant(
        "stages/declare.py",
        "self._naming(after, destination) if came else ()",
        "()",
        "A cluster that came back is not asked for what named it.",
    ),
    Mutant(
        "stages/declare.py",
        "            yield from self._placed(trigger, destination)\n",
        "            yield from ()\n",
        "A destination that is chosen, or no more, is not told.",
    ),
    Mutant(
        "stages/declare.py",
        "        yield from (Resolve(name) for name in sorted(touched.resolved))\n",
        "",
        "Users' own profiles are never resolved.",
    ),
    Mutant(
        "stages/declare.py",
        "        self._open_gates(after, touched.gates)\n",
        "",
        "What new sources watch is not let in.",
    ),
    Mutant(
        "stages/declare.py",
        "                self._keep_sweeping(key)\n            else",
        "                pass\n            else",
        "A registered cluster is never swept by itself.",
    ),
    Mutant(
        "engine/difference.py",
        "_selecting(catalog, cluster, triggers) for catalog in catalogs)",
        "_selecting(catalog, cluster, triggers) for catalog in [after])",
        "Where a source was in force and is no more, nothing is let go.",
    ),
    Mutant(
        "engine/difference.py",
        "elif before.judgement(key) != after.judgement(key):",
        "elif not before:",
        "A label that puts a source in force has nothing swept.",
    ),
]

_DOORS = [
    Mutant(
        "stages/inbox.py",
        "return Again(self._pause(attempt) if error.delay is None else error.delay, str(error))",
        "return Done()",
        "What fails for now is never tried again.",
    ),
    Mutant(
        "stages/inbox.py",
        "Done() if message.work in worked else",
        "Done() if worked else",
        "Of a batch only the first message is worked on.",
    ),
    Mutant(
        "stages/inbox.py",
        "            if isinstance(result, Again):\n                stuck.add(group)\n",
        "",
        "What waits behind a failure overtakes it.",
    ),
    Mutant(
        "messages.py",
        'unlike: ClassVar[tuple[str, ...]] = ("trace", "rang")',
        'unlike: ClassVar[tuple[str, ...]] = ("trace", "rang", "contested")',
        "That an object changed hands is the same work as any.",
    ),
    Mutant(
        "stages/ingest.py",
        "        self._publisher.publish([message])\n        note =",
        "        note =",
        "What is observed is told to nobody.",
    ),
    Mutant(
        "stages/ingest.py",
        "        if not self._records.observations.put(observation):\n            return\n",
        "        self._records.observations.put(observation)\n",
        "What is no news is evaluated.",
    ),
    Mutant(
        "stages/schedule.py",
        "        if not due.counts or due.timer is None:\n",
        "        if due.timer is None:\n",
        "A timer that was set anew fires at its old time, too.",
    ),
    Mutant(
        "stages/schedule.py",
        "        self._publisher.publish([message])\n        again",
        "        again",
        "What is due is struck out and not published.",
    ),
    Mutant(
        "stages/schedule.py",
        "        self._records.timers.strike(due)\n        return True",
        "        return True",
        "What was due is due for ever.",
    ),
]

MUTANTS = [*_CLAIM, *_EXECUTE, *_EVALUATE, *_RECORDS, *_DEPLOY, *_SWEEP, *_DECLARE, *_DOORS]

EXPLAINED: dict[str, str] = {}
"""Mutants that nothing notices, by story: why that is right."""
