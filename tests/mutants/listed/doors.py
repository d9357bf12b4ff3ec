"""Mutants of what comes in, and what is due."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
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
        '_UNLIKE = ("trace", "rang")',
        '_UNLIKE = ("trace", "rang", "contested")',
        "That an object changed hands is the same work as any.",
    ),
    Mutant(
        "stages/arriving.py",
        "Observation(cluster, key, event.uid, first.order, manifest, first.at)",
        "Observation(cluster, key, event.uid, came.order, manifest, first.at)",
        "A CloudEvent that comes again is the newest.",
    ),
    Mutant(
        "stages/arriving.py",
        "                if now - seen.seen_at < _REPEATED:\n                    yield seen\n",
        "                yield seen\n",
        "A CloudEvent that comes again after its end was forgotten is back.",
    ),
    Mutant(
        "stages/recorder.py",
        "            self._publisher.publish(message for message, _ in changes)\n",
        "            pass\n",
        "What is observed is told to nobody.",
    ),
    Mutant(
        "stages/ingest.py",
        "                return _ONLY_CLOUD_EVENTS\n",
        "                return self._read(\n"
        "                    request.cluster,\n"
        "                    read_json(request.body),\n"
        "                    taking.gate,\n"
        "                    RelevantKinds(taking.gate),\n"
        "                )\n",
        "A sender from outside rings for objects.",
    ),
    Mutant(
        "stages/ingest.py",
        "            refuse_unsigned(request)\n",
        "",
        "What a signature does not cover is taken.",
    ),
    Mutant(
        "stages/ingest.py",
        "            taking.done = True\n",
        "",
        "A signed request is taken as often as it comes.",
    ),
    Mutant(
        "stages/outside.py",
        "fits and signs and signed",
        "fits and signed",
        "Who knows the key that was drawn for nobody is any sender by token.",
    ),
    Mutant(
        "stages/outside.py",
        " and gate and self._claim(request, signed)):",
        " and gate):",
        "A replay is taken.",
    ),
    Mutant(
        "stages/outside.py",
        "if caller.signed and caller.signed.in_time(now):",
        "if caller.signed:",
        "What was signed counts for ever.",
    ),
    Mutant(
        "stages/outside.py",
        "            if not taking.done:\n",
        "            if False:\n",
        "A request that failed for now is refused when it comes again.",
    ),
    Mutant(
        "stages/outside.py",
        "    return same and by_token\n",
        "    return same\n",
        "A word that everybody can read in here is everybody's token.",
    ),
    Mutant(
        "stages/outside.py",
        "        sender = kept.value if kept and gate else None\n",
        "        sender = kept.value if kept else None\n",
        "A sender of a cluster that is not there is judged.",
    ),
    Mutant(
        "stages/recorder.py",
        "        if self._records.observations.put(observation):\n",
        "        if self._records.observations.put(observation) or True:\n",
        "What is no news is evaluated.",
    ),
    Mutant(
        "stages/schedule.py",
        "            if not due.counts or due.timer is None:\n",
        "            if due.timer is None:\n",
        "A timer that was set anew fires at its old time, too.",
    ),
    Mutant(
        "stages/schedule.py",
        "            self._publisher.publish([each.message for each in batch])\n",
        "            pass\n",
        "What is due is struck out and not published.",
    ),
    Mutant(
        "stages/schedule.py",
        "            self._records.timers.move(fired.due, again)\n"
        "        self._records.timers.strike(fired.due)\n",
        "            self._records.timers.move(fired.due, again)\n",
        "What was due is due for ever.",
    ),
    Mutant(
        "stages/schedule.py",
        "            *self._fire(others, now, failures, middle),\n"
        "            *self._fire(resyncs, now, failures, until),\n",
        "            *self._fire(resyncs, now, failures, until),\n"
        "            *self._fire(others, now, failures, until),\n",
        "Retries wait for all resyncs.",
    ),
    Mutant(
        "stages/schedule.py",
        "            return [each for each in several if self._is_published(each, failures)]\n",
        "            return batch\n",
        "A timer whose message was refused is moved as if it had fired.",
    ),
    Mutant(
        "stages/outside.py",
        "            self._refused.note(visitor.share)\n",
        "            pass\n",
        "Of a sender that is refused nobody is told.",
    ),
    Mutant(
        "model/record.py",
        "    ended = until is not None and until <= now\n",
        "    ended = False\n",
        "A secret that was rotated away counts for ever.",
    ),
    Mutant(
        "records/senders.py",
        "            self._store.put(note, expect=ABSENT)\n",
        "            self._store.put(note)\n",
        "Of two replays at once both are taken.",
    ),
    Mutant(
        "stages/ingest.py",
        "        if not is_told(request.media, request.attributes):\n"
        "            return _ONLY_CLOUD_EVENTS\n",
        "",
        "Whom a cloud lets in is not told that it may send events alone.",
    ),
    Mutant(
        "stages/ingest.py",
        "        if kept is None:\n            text = (\n",
        "        if kept is None:\n            return Reply(200, {})\n            text = (\n",
        "An event of a cloud for a cluster that is not there is lost in silence.",
    ),
    Mutant(
        "stages/hearing.py",
        "heard.problem, heard.messaging, heard.owed > 0",
        "heard.problem, '', heard.owed > 0",
        "That a forwarder is away from its NATS is told when something else is.",
    ),
    Mutant(
        "stages/subscribing.py",
        "    except PermanentError as error:\n",
        "    except ZeroDivisionError as error:\n",
        "A cluster that refuses the right for NATS does not ring.",
    ),
    Mutant(
        "engine/listening.py",
        "            told.append(str(event[SUBSCRIPTION]))\n",
        "            pass\n",
        "What a forwarder subscribed to is no subject of its messages.",
    ),
    Mutant(
        "stages/batch.py",
        "        if own:\n            return asked\n",
        "",
        "What we write ourselves is looked at.",
    ),
    Mutant(
        "stages/batch.py",
        "            case TemporaryError():\n                raise error\n",
        "",
        "An item is given up while the store is away.",
    ),
    Mutant(
        "stages/batch.py",
        "            case StaleError():\n",
        "            case ZeroDivisionError():\n",
        "An object that others write holds up all that comes with it.",
    ),
    Mutant(
        "stages/consequences.py",
        "            held = old.value.held if old else ()\n",
        "            held = ()\n",
        "A declaration closes the gate for what is held.",
    ),
]
