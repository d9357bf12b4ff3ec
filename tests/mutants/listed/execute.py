"""Mutants of how a profile comes to a cluster, and leaves it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/execute.py",
        "                if self._stays_given_up(work):\n                    return True\n",
        "",
        "What was given up is tried whenever a message comes.",
    ),
    Mutant(
        "stages/work.py",
        " and old.made_of == self.made_of\n",
        "\n",
        "What was given up is not tried again when it changes.",
    ),
    Mutant(
        "stages/ending.py",
        "before + (not early and not isinstance(error, UnreachableError))",
        "before + (not isinstance(error, UnreachableError))",
        "A message that comes twice counts as two failures.",
    ),
    Mutant(
        "stages/ending.py",
        "before + (not early and not isinstance(error, UnreachableError))",
        "before + (not early)",
        "A cluster that does not answer counts as a failure of its profiles.",
    ),
    Mutant(
        "stages/ending.py",
        "                counted=old.counted,\n",
        "",
        "While a cluster is away the failures before it are forgotten.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "lambda: not ended and self._goes_on(work)",
        "lambda: self._goes_on(work)",
        "Objects are begun behind one that failed.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "    return not profile.rollout.continues\n",
        "    return bool(profile)\n",
        "No profile goes on after an error.",
    ),
    Mutant(
        "fleet/redeploying.py",
        "            here.records.outcomes.recount(key, outcome.profile)\n",
        "",
        "Who asks for what was given up is not heard.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "account=work.profile.account",
        'account=""',
        "What is a tenant's is written with all rights.",
    ),
    Mutant(
        "stages/features/resources/reading.py",
        "account=profile.account",
        'account=""',
        "A tenant's templates read what only Bellhop may.",
    ),
    Mutant(
        "stages/resolve.py",
        "            account=declared.account,\n",
        "",
        "A tenant's own profile has all rights.",
    ),
    Mutant(
        "engine/generating.py",
        "        account=trigger.account,\n",
        "",
        "What a tenant's trigger makes has all rights.",
    ),
    Mutant(
        "records/versions.py",
        '        and not item.value.get("account")\n',
        "",
        "An older version applies with all rights what has a tenant's.",
    ),
    Mutant(
        "stages/lease.py",
        "work.token = self._records.inventories.put(inventory, expect=work.token)\n\n",
        "pass\n\n",
        "Nothing is written down before the first object is applied.",
    ),
    Mutant(
        "stages/execute.py",
        "        self._leases.refuse_busy(inventory)\n",
        "",
        "Another worker's lease is ignored.",
    ),
    Mutant(
        "stages/lease.py",
        "if left > timedelta(0) and self._peers",
        "if inventory.worker and self._peers",
        "A dead worker's lease never ends.",
    ),
    Mutant(
        "stages/lease.py",
        "work.token = self._records.inventories.put(inventory, expect=work.token)\n\n",
        "work.token = self._records.inventories.put(inventory)\n\n",
        "Who takes the lease does not see that another has.",
    ),
    Mutant(
        "stages/lease.py",
        "            work.token = self._records.inventories.put(inventory, expect=work.token)\n"
        "        except StaleError:\n",
        "            work.token = self._records.inventories.put(inventory)\n"
        "        except StaleError:\n",
        "An inventory is written over what another worker noted.",
    ),
    Mutant(
        "stages/lease.py",
        "            self._add(work)\n            raise",
        "            raise",
        "What a slow worker applied is noted nowhere.",
    ),
    Mutant(
        "stages/lease.py",
        'else replace(held, digest="", uid="", secret=True)',
        "else held",
        "What two did at once is taken for certain.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "        if not work.failed:\n            # A profile",
        "        if self:\n            # A profile",
        "A profile that could not be applied as a whole takes something away.",
    ),
    Mutant(
        "stages/execute.py",
        "        finally:\n            self._leases.give_up(work)",
        "        except ZeroDivisionError:\n            self._leases.give_up(work)",
        "What was applied is not written down.",
    ),
    Mutant(
        "stages/execute.py",
        "        return self._inputs(message) == _inputs(message, found, record)\n",
        "        return True\n",
        "Nobody looks again at the profile after applying it.",
    ),
    Mutant(
        "stages/execute.py",
        'return profile.value.revision, cluster.token if cluster else ""',
        "return (profile.value.revision,)",
        "Nobody looks again at the cluster after applying to it.",
    ),
    Mutant(
        "stages/execute.py",
        'return profile.value.revision, cluster.token if cluster else ""',
        'return (cluster.token if cluster else "",)',
        "A profile that changed while it was applied counts as applied.",
    ),
    Mutant(
        "stages/execute.py",
        "return self._inputs(message) == _inputs(message, found, record)",
        "return found is None or self._inputs(message) == _inputs(message, found, record)",
        "Whether a profile that was gone has come back is not looked at again.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "        if not taken_from(name, owner):\n            secret",
        "        if self._claims:\n            secret",
        "An object that another profile took is removed.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "            if not self._claims.give_up(cluster, key, name, owner):",
        "            if taken_from(name, self._claims.owner(cluster, key)):",
        "A removed object keeps its owner.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "            if not self._claims.give_up(cluster, key, name, owner):\n"
        "                # It was taken between the question and the removal.\n"
        "                self._claims.tell_owner(cluster, key)\n",
        "            self._claims.give_up(cluster, key, name, owner)\n",
        "Whose object was removed a moment after it was taken is not told.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "        if not step.held.digest:\n"
        "            # An earlier try may have removed it for good after it was taken.\n"
        "            self._claims.tell_owner(cluster, key)\n",
        "",
        "Who died while it removed an object tells its new owner nothing.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "return kube.remove(gvk, namespace, name, uid=uid)",
        "return kube.remove(gvk, namespace, name)",
        "What somebody made in the place of ours is removed.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "if there is None or owner_of(there) != work.profile.name:",
        "if there is None:",
        "What may never have been applied is removed whosever it is.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "                return False\n            uid = uid_of(there)",
        "                return False\n            return False",
        "What a dead worker may have applied stays for ever.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "            # Between the claim and the apply another profile may have taken"
        " the object.\n"
        "            self._claims.take(work.cluster.key, key, work.profile)\n",
        "",
        "Nobody looks whether an object was taken before it was applied.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "        if applied or (before and not before.digest):\n            self._claims",
        "        if before and not before.digest:\n            self._claims",
        "Who overwrites the new owner of an object says nothing.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "        if applied or (before and not before.digest):\n            self._claims",
        "        if applied:\n            self._claims",
        "Who may have overwritten an object before it died says nothing.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "        if work.message.contested:\n"
        "            self._doubt(work, Identity.parse(work.message.contested))\n",
        "",
        "Who lost an object goes on holding it.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        '            work.held[key] = replace(held, digest="", secret=True)\n',
        "            work.held[key] = held\n",
        "Whose object was overwritten takes it for as it was applied.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "releases=work.profile.leaves_policies",
        "releases=True",
        "What is withdrawn stays.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "for wanted in plan.forth:",
        "for wanted in (plan.applies,):",
        "An object is applied beside those that it needs.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "for unwanted in plan.back:",
        "for unwanted in (plan.leaves,):",
        "An object is removed beside those that need it.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "            work.note(upshot)\n        if error:\n            raise error\n",
        "            work.note(upshot)\n",
        "What failed for now, once others were done, counts as done.",
    ),
    Mutant(
        "stages/hands.py",
        "if self._errors or number == len",
        "if number == len",
        "A cluster that stopped answering is asked for each object that is left.",
    ),
    Mutant(
        "stages/hands.py",
        "            self._changed.wait_for(lambda: not self._in_hand)\n",
        "            pass\n",
        "What helpers have in hand is not waited for.",
    ),
    Mutant(
        "stages/ending.py",
        "            departures.end(which, cluster, expect=departure)\n",
        "            pass\n",
        "A profile waits for ever to leave a cluster that it has left.",
    ),
    Mutant(
        "stages/ending.py",
        "if stays.destinations or stays.digest or stays.error:",
        "if stays:",
        "A withdrawn profile is never closed.",
    ),
    Mutant(
        "stages/ending.py",
        "            if any(each not in stays.destinations for each in others):\n"
        "                return\n",
        "",
        "A withdrawn profile is closed before all clusters are left.",
    ),
    Mutant(
        "stages/ending.py",
        "self._records.profiles.delete(*which, expect=found.token)",
        "self._records.profiles.delete(*which)",
        "A profile that came back is closed by who left its last cluster.",
    ),
    Mutant(
        "records/departures.py",
        "self._store.delete(_partition(place), cluster, expect=expect)",
        "self._store.delete(_partition(place), cluster)",
        "Who was slow to leave a cluster strikes out that it is to be left again.",
    ),
    Mutant(
        "stages/writer.py",
        "        begun = self._records.departures.begin(place(new), leaving)\n"
        "        try:\n"
        "            return self._records.profiles.put(new, expect=token)\n",
        "        begun: dict[str, str] = {}\n"
        "        try:\n"
        "            token = self._records.profiles.put(new, expect=token)\n"
        "            self._records.departures.begin(place(new), leaving)\n"
        "            return token\n",
        "It is told that clusters are left before it is noted which.",
    ),
    Mutant(
        "stages/ending.py",
        "        self._records.outcomes.delete(cluster, profile.name, expect=_token(outcome))\n",
        "",
        "The outcome of what was withdrawn stays.",
    ),
    Mutant(
        "stages/ending.py",
        "if found and cluster in found.value.destinations:",
        "if found and not self:",
        "Who was slow to leave a cluster closes a profile that is wanted again.",
    ),
    Mutant(
        "stages/ending.py",
        "        if same and not anew:\n",
        "        if old and not anew:\n",
        "A failure is shown after it has passed.",
    ),
    Mutant(
        "stages/execute.py",
        "        try:\n            if record is None or",
        "        try:\n            if record is None:\n                return True\n            if",
        "A profile waits for ever to leave a cluster that is forgotten.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "        if taken and not taken.new:\n            return work.held[step.key]\n",
        "",
        "A refused change makes an object nobody's that is applied.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "if each.how.skip_namespace or not self._make_namespace(kube, each.key):",
        "if self:",
        "A namespace that is missing is not made.",
    ),
    Mutant(
        "stages/ending.py",
        "        if pause and pause > _SOON:\n",
        "        if pause and not self:\n",
        "What failed for long is never tried again.",
    ),
    Mutant(
        "stages/execute.py",
        "if record is None or (found is None and not inventory.held):",
        "if record is None or found is None:",
        "What is left of a profile that is no more stays.",
    ),
    Mutant(
        "stages/execute.py",
        "        try:\n            if record is None or",
        "        try:\n            if found is None and not inventory.held:\n"
        "                return True\n            if record is None or",
        "An outcome that was noted too late stays.",
    ),
    Mutant(
        "stages/features/resources/executor.py",
        "if held and not taken_from(work.profile.name, self._claims.owner(work.cluster.key, key)):",
        "if held:",
        "Who lost an object goes on trying to have it as it was.",
    ),
    Mutant(
        "stages/ending.py",
        "self._records.outcomes.put(outcome, expect=_token(work.outcome))",
        "self._records.outcomes.put(outcome)",
        "Who was slow notes how it went over what another noted since.",
    ),
    Mutant(
        "stages/ending.py",
        "delete(cluster, profile.name, expect=_token(outcome))",
        "delete(cluster, profile.name)",
        "Who was slow to leave a cluster ends the outcome of who came back.",
    ),
    Mutant(
        "stages/ending.py",
        "            self._records.timers.cancel(retry_timer(work.cluster.key, profile.name))\n",
        "            pass\n",
        "What has succeeded is tried again.",
    ),
    Mutant(
        "stages/features/resources/planning.py",
        "digest([manifest, content.ref, tier, *own])",
        "digest([manifest, content.ref, *own])",
        "A new tier is not written on what is applied.",
    ),
    Mutant(
        "stages/features/resources/planning.py",
        "if key in held and held[key].digest == each.digest}",
        "if key in held and held[key].digest}",
        "An object that is held is never applied anew.",
    ),
    Mutant(
        "stages/features/resources/planning.py",
        "        if key not in unique\n    ]\n",
        "        if key not in unique and each.digest\n    ]\n",
        "What a killed worker had begun, and nobody wants any more, stays.",
    ),
    Mutant(
        "stages/ending.py",
        "features=by_feature(work.features, work.at, outcome)",
        "features=()",
        "How each feature ended is not noted.",
    ),
    Mutant(
        "stages/execute.py",
        "        if work.dry:\n",
        "        if not self:\n",
        "What is tried dry is done.",
    ),
    Mutant(
        "stages/work.py",
        'return self.profile.sync == "DryRun" and (self.wanted or bool(self.held))',
        'return self.profile.sync == "DryRun" and self.wanted',
        "A profile that is tried dry leaves a cluster that is selected no more.",
    ),
    Mutant(
        "stages/features/resources/planning.py",
        "Release(key, each) if releases or (each.adopted and each.uid) else",
        "Release(key, each) if releases else",
        "What was adopted is removed when it is wanted no more.",
    ),
    Mutant(
        "stages/features/resources/planning.py",
        "if releases or (each.adopted and each.uid)",
        "if releases or each.adopted",
        "What was made where an adopted object had been stays.",
    ),
    Mutant(
        "stages/features/resources/planning.py",
        'return Apply(wanted, held, held.uid, "" if adoption(wanted) == "own" else held.adopted)',
        "return Apply(wanted, held, held.uid)",
        "An adopted object that changes is taken for one of ours.",
    ),
    Mutant(
        "stages/features/resources/planning.py",
        "    if held is None or not held.uid:\n        return Apply(wanted, held)\n",
        "    if held is None or not held.uid:\n"
        '        return Apply(wanted, held, adopted=held.adopted if held else "")\n',
        "What is made anew where an adopted object had been is taken for adopted.",
    ),
    Mutant(
        "stages/features/resources/adopting.py",
        '        return replace(step, life="", adopted="")\n',
        '        return replace(step, life="")\n',
        "What is made in place of an adopted object that is gone is taken for adopted.",
    ),
    Mutant(
        "stages/features/resources/adopting.py",
        "    if asked or step.wanted.how.force or always:\n",
        "    if step:\n",
        "What others made is taken over unasked.",
    ),
    Mutant(
        "stages/features/resources/adopting.py",
        "isdisjoint((*WRITTEN_BY_SVELTOS, MADE_BY))",
        "isdisjoint(WRITTEN_BY_SVELTOS)",
        "What a profile has left is refused to the next one, and to itself.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "                _wait_for_its_end(doing, there)\n",
        "",
        "What is being deleted is adopted, and takes along what was brought.",
    ),
    Mutant(
        "stages/features/resources/adopting.py",
        "return replace(step, life=life, adopted=adopted_from(there))",
        "return replace(step, life=life)",
        "Who died between adoption and its note removes the object in the end.",
    ),
    Mutant(
        "stages/features/resources/adopting.py",
        "return Release(step.key, step.held) if adopted_from(there) else step",
        "return step",
        "What is adopted by its marks alone is removed.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "            return kube.apply(manifest, uid=step.life)\n        except MissingError:\n",
        "            return kube.apply(manifest)\n        except MissingError:\n",
        "What others made between plan and write is written over.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "            self._claims.give_back(work.cluster.key, key, work.profile, before)\n"
        "            return Upshot(key, None, refused=error)\n",
        "            return Upshot(key, None, refused=error)\n",
        "A profile that may not adopt an object keeps it from one that may.",
    ),
    Mutant(
        "stages/features/resources/preview.py",
        "then = kube.apply(manifest, dry_run=True)",
        "then = kube.apply(manifest)",
        "Who asks what would become of an object writes it.",
    ),
    Mutant(
        "stages/features/resources/preview.py",
        "            self._claims.refuse(work.cluster.key, key, work.profile)\n",
        "",
        "What another profile has is told as if it were ours to change.",
    ),
    Mutant(
        "stages/features/resources/comparing.py",
        "        old, new = _masked(old, old), _masked(new, old)\n",
        "        pass\n",
        "A preview tells what a Secret holds.",
    ),
    Mutant(
        "stages/ending.py",
        "                self._records.previews.delete(cluster, name, expect=token)\n",
        "                pass\n",
        "What a slow worker found out is kept after it was done.",
    ),
    Mutant(
        "stages/ending.py",
        '        if outcome.phase != "DryRun":\n            self._forget_preview(work.outcome)',
        "        if not self:\n            self._forget_preview(work.outcome)",
        "What would have been done is kept once it is.",
    ),
    Mutant(
        "stages/instantiate.py",
        'found, message, note, trigger.sync if trigger else "Continuous"',
        'found, message, note, "Continuous"',
        "What a trigger that is tried dry makes no more is withdrawn.",
    ),
    Mutant(
        "stages/execute.py",
        "        if work.message.contested:\n            self._keep_doubts(work)\n",
        "",
        "Who lost an object while it was tried dry goes on holding it.",
    ),
    Mutant(
        "stages/work.py",
        "    return brought and bool(held) and all(each.digest for each in held)\n",
        "    return brought and all(each.digest for each in held)\n",
        "A cluster that lost what it was to have once is taken for one that has it.",
    ),
    Mutant(
        "stages/work.py",
        "    return brought and bool(held) and all(each.digest for each in held)\n",
        "    return brought and bool(held)\n",
        "What is to be redeployed once is not.",
    ),
    Mutant(
        "stages/survey.py",
        '        if head and head.value.sync == "OneTime":\n            return\n',
        "",
        "What was to be brought once is put back.",
    ),
    Mutant(
        "stages/features/resources/drift.py",
        "own_fields(there) == held.fields:\n",
        "own_fields(there) != held.fields:\n",
        "What was changed is left, and what was not is applied.",
    ),
    Mutant(
        "stages/features/resources/drift.py",
        "            if key in kept and held.digest and not held.fields:\n",
        "            if not held.digest and not held.fields:\n",
        "What was applied before drift was watched is never looked at.",
    ),
    Mutant(
        "stages/features/resources/drift.py",
        "        if there is not None and own_fields(",
        "        if there is None or own_fields(",
        "What was deleted is not made again at once.",
    ),
    Mutant(
        "stages/watch.py",
        "        if not self._rings_for(cluster, kinds) and",
        "        if self._rings_for(cluster, kinds) and",
        "No cluster rings for what is watched in it.",
    ),
    Mutant(
        "stages/watch.py",
        "        if kept and kept.value == wanted:\n",
        "        if kept:\n",
        "What was never told stays untold.",
    ),
    Mutant(
        "stages/watch.py",
        "        if self._counts(watch):\n            # It",
        "        if False:\n            # It",
        "A profile that is watched again is not.",
    ),
    Mutant(
        "stages/features/resources/drift.py",
        "        if left:\n            by",
        "        if False:\n            by",
        "Two who fight are never slowed.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "return replace(held, mended=often, mended_at=held.applied_at)\n",
        "return held\n",
        "Nobody counts how often something is put back.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "mended=before.mended, mended_at=before.mended_at) if before else held\n",
        "mended=0) if before else held\n",
        "What is meant anew ends a fight that goes on.",
    ),
    Mutant(
        "engine/contending.py",
        "return 0 if quiet > max(_PEACE, pause(held.mended) * _PEACE_PAUSES) else",
        "return held.mended if quiet else",
        "Who edited four times is waited for ever after.",
    ),
    Mutant(
        "stages/ending.py",
        "if timer is None or timer.value.at <= self",
        "if timer is None or timer.value.at is not self",
        "Who rings all the time puts off that it is put back.",
    ),
    Mutant(
        "engine/excluding.py",
        "    elif below is _NOTHING or not fields:\n",
        "    elif below is _NOTHING:\n",
        "What another has decided is taken from him.",
    ),
    Mutant(
        "engine/excluding.py",
        "        written[place] = copy.deepcopy(below)\n",
        "        del written[place]\n",
        "What nobody has decided is taken away.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "if excluded and step.life else None\n",
        "if excluded and not step.life else None\n",
        "What is excluded is written each time.",
    ),
    Mutant(
        "stages/features/resources/step.py",
        "if often and version != version_of(",
        "if often and 0 != version_of(",
        "What was as it is to be counts as put back.",
    ),
    Mutant(
        "stages/features/resources/preview.py",
        "if there and excluded else manifest\n",
        "if not there and excluded else manifest\n",
        "A preview shows as changed what is others' to decide.",
    ),
    Mutant(
        "stages/watch.py",
        " and not self._is_asked_for(untold):\n",
        ":\n",
        "Each of many profiles has its cluster swept.",
    ),
]
