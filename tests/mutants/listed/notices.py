"""Mutants of who is told that a cluster is not well."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "fleet/noticing.py",
        "timers.set_by(notice_timer(cluster), min(waiting), body, now=now)",
        "timers.set(notice_timer(cluster), min(waiting), body)",
        "Of two who look at a cluster at once the later has the notices of the other wait.",
    ),
    Mutant(
        "records/timers.py",
        "body, expect=kept.token if kept else ABSENT)",
        "body)",
        "Who asks for a timer sooner meanwhile is overwritten by who asks for it later.",
    ),
    Mutant(
        "engine/liveness.py",
        '    if any(each.phase == "Provisioning" for each in found):\n        return None\n',
        "",
        "A cluster is well while its profiles are on their way.",
    ),
    Mutant(
        "engine/liveness.py",
        "waiting = [x for x in found.notices if x.told != found.healthy or x.name in again]",
        "waiting = list(found.notices)",
        "The same is told again and again.",
    ),
    Mutant(
        "engine/liveness.py",
        "return max(told_at, notice.until) if notice.until else told_at",
        "return told_at",
        "Whoever is told is told as often as a cluster changes.",
    ),
    Mutant(
        "engine/liveness.py",
        'return replace(notice, told=healthy, until=later, failures=0, error="")',
        "return replace(notice, told=healthy, until=later)",
        "What was sent in the end is told as failed for ever.",
    ),
    Mutant(
        "engine/liveness.py",
        "found.since + policy.patience if policy and not found.healthy else found.since",
        "found.since",
        "What is over in a moment is told though a policy has patience.",
    ),
    Mutant(
        "engine/liveness.py",
        "found.since + policy.patience if policy and not found.healthy else found.since",
        "found.since + policy.patience if policy else found.since",
        "That all is well again is told as late as that it was not.",
    ),
    Mutant(
        "fleet/noticing.py",
        "until = self._here.records.clock.now() + interval",
        "until = self._here.records.clock.now()",
        "Who asked to hear of a cluster seldom hears of it each minute.",
    ),
    Mutant(
        "engine/liveness.py",
        "told = notice.told or repeats",
        "told = notice.told",
        "A refused repetition to Alertmanager is not reported, and the alert ends there.",
    ),
    Mutant(
        "engine/wording.py",
        "found.healthy, found.since.isoformat()])[:16]",
        "found.healthy])[:16]",
        "A cluster that is not well again is told of by an Event of long ago.",
    ),
    Mutant(
        "engine/wording.py",
        "    except TemplateError as error:\n        subject",
        "    except KeyError as error:\n        subject",
        "A template that fails keeps people from being told.",
    ),
    Mutant(
        "fleet/noticing.py",
        "        home = management.value if management else cluster\n",
        "        home = cluster\n",
        "Events are spread over the fleet.",
    ),
    Mutant(
        "fleet/noticing.py",
        "            found = self._noted(cluster, check, found, claimed)\n",
        "",
        "Two workers tell the same.",
    ),
    Mutant(
        "fleet/noticing.py",
        "            self._here.records.timers.set_by(notice_timer(cluster), min(waiting), body"
        ", now=now)\n",
        "            pass\n",
        "What could not be sent waits for a sweep.",
    ),
    Mutant(
        "fleet/noticing.py",
        "            self._here.records.conditions.delete(cluster, name)\n",
        "            pass\n",
        "A check that is no more leaves its conditions.",
    ),
    Mutant(
        "stages/sweep.py",
        "            self._publisher.publish([Examine(course.name)])\n",
        "            pass\n",
        "Nobody looks whether a cluster is well.",
    ),
    Mutant(
        "adapters/notices/mail_connection.py",
        "        if refused := reach.refusal_of(ip_address(address)):\n",
        '        if refused := "":\n',
        "A name that leads to the function itself is called.",
    ),
    Mutant(
        "adapters/notices/mail.py",
        "elif mail.password and mail.port != _IMPLICIT and not _is_local(client):",
        "elif False:",
        "A password goes out in the clear.",
    ),
]
