"""Every command does and says the same, whatever kind of installation it is led to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.aws.installation import FUNCTIONS
from bellhop.cli.main import COMMANDS
from bellhop.embedded.state import only_one
from bellhop.fleet.installation import SERVE
from bellhop.messages import Sweep
from bellhop.model.record import Pulse
from infra.lab.moto import Moto
from tests.cli.conftest import House, embedded, on_aws
from tests.functions.lab import Account
from tests.unit.cli import fleet

READING = [
    "get clusters",
    "get clusters,eventsources -o wide",
    "get eventsources -o yaml",
    "get eventtriggers -o json",
    "get eventreports",
    "get clusterprofiles -o name",
    "get configmaps -A",
    "get secrets -n infra -o yaml",
    "get secret registry -n infra --show-secrets -o yaml",
    "describe cluster default/workload",
    "describe eventsource sveltos-service",
    "describe clusterprofile",
    "describe eventreport",
    "show addons",
    "show addons --profile service-network-policy-0123456789ab -o json",
    "show usage",
    "show resources --full",
    "show events",
    "show events -o json",
    "show events --cluster default/workload --limit 0",
    "show strays",
    "remove-strays default/workload",
    "show failures",
    "events --trace 3f9a",
    "dead-letters list",
    "explain default/workload Service default/my-service",
    "explain trigger service-network-policy -o json",
    "get clusters nothing",
    "get eventsources nothing",
    "describe cluster nowhere/none",
]
"""What changes nothing, and is answered from the records alone."""

CHANGING = [
    ("label cluster default/workload tier=gold", "get clusters -o json"),
    ("label cluster default/workload env-", "get clusters -o wide"),
    ("annotate cluster default/workload team=web", "get clusters -o yaml"),
    ("apply -f - --dry-run=client", "get configmaps -A"),
    ("apply -f -", "get configmaps -A -o yaml"),
    ("delete configmap network-policy --dry-run=client", "get configmaps -A"),
    ("delete configmap network-policy", "get configmaps -A"),
    ("delete eventtrigger service-network-policy", "get eventtriggers"),
    ("redeploy service-network-policy-0123456789ab", "show addons"),
    ("redeploy cluster default/workload", "show addons"),
    ("sweep default/workload --full", "get clusters"),
    ("deregister cluster default/workload", "get clusters"),
]
"""What changes something, and where that is seen."""

ELSEWHERE = {
    "completion": "prints a script",
    "context": "tests/unit/cli/test_contexts.py, tests/cli/test_contexts.py",
    "dead-letters": "below",
    "doctor": "below",
    "export": "tests/unit/cli/test_moving.py, tests/functions/test_moving.py",
    "import": "tests/unit/cli/test_moving.py, tests/functions/test_moving.py",
    "logs": "tests/cli/test_logs.py",
    "register": "tests/cli/test_register.py",
    "render": "from files alone",
    "serve": "is the embedded mode",
    "status": "below",
    "version": "asks nobody",
}
"""Commands that are tested in another way, and where or why."""

STDIN = "{apiVersion: v1, kind: ConfigMap, metadata: {name: fresh}, data: {a: b}}"


def populate(house: House) -> None:
    """Have the example deployed, with something to tell of it."""
    fleet.populate(house.here)
    for what, ago in (("rang", 40), ("matched", 39), ("applied", 38)):
        house.here.records.ledger.note(fleet.entry(what, ago=ago))


def plain(text: str) -> list[list[str]]:
    """Take away what differs between two runs: times, marks and the names of dead letters."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?( UTC)?", "TIME", text)
    text = re.sub(r"\b\d+(\.\d+)? ?(s|m|h)( ago)?\b", "AGE", text)
    text = re.sub(r"\bdeploy/[-\w]+", "deploy/ID", text)
    for worker in (SERVE, FUNCTIONS):
        text = text.replace(worker.start, "START").replace(worker.name, "WORKER")
    return [line.split() for line in text.splitlines()]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, _moto: Moto) -> Iterator[tuple[House, House]]:
    """The same fleet in an installation of each kind, for commands that change nothing."""
    account = Account(_moto)
    houses = (
        embedded(tmp_path_factory.mktemp("embedded")),
        on_aws(tmp_path_factory.mktemp("aws"), account),
    )
    for house in houses:
        populate(house)
        house.here.records.pulses.put(Pulse(fleet.now(), fleet.now() + timedelta(minutes=1)))
    with only_one(houses[0].context.state):
        yield houses
    for house in houses:
        house.opened.close()
    account.close()


@pytest.mark.parametrize("line", READING)
def test_reads_the_same(both: tuple[House, House], line: str) -> None:
    """Output, errors and exit code are those of the embedded mode, in the same columns."""
    one, other = (house(*line.split()) for house in both)

    assert plain(one.stdout) == plain(other.stdout)
    assert plain(one.stderr) == plain(other.stderr)
    assert one.exit_code == other.exit_code


def test_changes_the_same(tmp_path: Path, moto: Moto) -> None:
    """What is said of each change, and what there is after it, is that of the embedded mode."""
    account = Account(moto)
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    one, other = embedded(tmp_path / "one"), on_aws(tmp_path / "other", account)
    for house in (one, other):
        populate(house)
    for change, look in CHANGING:
        results = [house(*change.split(), stdin=STDIN) for house in (one, other)]
        assert plain(results[0].output) == plain(results[1].output), change
        assert {each.exit_code for each in results} == {0}, f"{change}: {results[0].output}"
        seen = [plain(house(*look.split()).output) for house in (one, other)]
        assert seen[0] == seen[1], change
    for house in (one, other):
        house.opened.close()
    account.close()


def test_every_command_is_tried() -> None:
    """Whoever adds a command adds it here."""
    tried = {line.split()[0] for line in (*READING, *(change for change, _ in CHANGING))}

    assert tried | ELSEWHERE.keys() == set(COMMANDS)


def test_dead_letters(house: House) -> None:
    """They are listed, replayed into their queue with nothing lost, and dropped."""
    first = house.bury({"kind": "sweep", "cluster": "a/b"}, "it killed its workers")
    listed = house("dead-letters", "list").stdout
    replayed = house("dead-letters", "replay", first)

    assert "it killed its workers" in listed
    assert replayed.stdout == f"dead-letter/{first} replayed\n"
    assert house("dead-letters", "list").stdout == ""
    assert house.here.queues["deploy"].backlog().waiting == 1
    again = house("dead-letters", "replay", first)
    assert (again.exit_code, "no dead letter" in again.stderr) == (1, True)


def test_drops_a_dead_letter(house: House) -> None:
    """And one that is not there is an error."""
    first = house.bury({"kind": "sweep", "cluster": "a/b"}, "it killed its workers")

    assert house("dead-letters", "drop", first).stdout == f"dead-letter/{first} dropped\n"
    assert house("dead-letters", "drop", first).exit_code == 1
    assert house("dead-letters", "replay", "nowhere/1").exit_code == 1


def test_status_tells_what_waits(prod: House) -> None:
    """Queues, dead letters, whether the schedule ticks, and the version of who works."""
    populate(prod)
    prod.bury({"kind": "sweep", "cluster": "a/b"}, "it killed its workers")
    now = fleet.now()
    prod.here.records.pulses.put(Pulse(now, now, "9.9.9"))
    before = prod.here.queues["sweep"].backlog().waiting
    prod.here.publisher.publish([Sweep("default/workload")])
    prod.services.client("cloudwatch").put_metric_data(
        Namespace="AWS/SQS",
        MetricData=[
            {
                "MetricName": "ApproximateAgeOfOldestMessage",
                "Dimensions": [
                    {"Name": "QueueName", "Value": f"{prod.context.place['table']}-sweep"}
                ],
                "Timestamp": now - timedelta(minutes=2),
                "Value": 3 * 3600.0,
            }
        ],
    )
    table, told = prod("status"), json.loads(prod("status", "-o", "json").stdout)

    lines = [line.split() for line in table.stdout.splitlines()]
    assert table.exit_code == 1
    assert lines[0][:2] == ["schedule", "ticks,"]
    assert "it is 9.9.9, and this command" in table.stdout
    assert ["dead", "letters", "1"] in lines
    assert f"{before + 1} messages in sweep for 3h" in table.stdout
    assert (told["running"], told["version"], told["deadLetters"]) == (True, "9.9.9", 1)
    assert told["queues"]["sweep"]["waiting"] == before + 1
    assert [each["what"] for each in told["failures"]] == ["dead letter"]


def test_status_says_that_nothing_ticks(prod: House) -> None:
    """A schedule that never ticked, or not for minutes, is a failure; `doctor` finds it, too."""
    never = prod("status")
    prod.here.records.pulses.put(Pulse(fleet.now(), fleet.now().replace(year=2025)))
    late, examined = prod("show", "failures"), prod("doctor", "-o", "json")

    assert "the schedule has not ticked yet" in never.stdout
    assert (never.exit_code, never.stdout.split()[:4]) == (1, ["schedule", "does", "not", "tick,"])
    assert "the schedule has not ticked since 2025-" in late.stdout
    signs = {each["piece"]: each["verdict"] for each in json.loads(examined.stdout)}
    assert signs == {"schedule": "wrong", "ingest": "wrong"}


def test_serves_from_no_cloud(prod: House) -> None:
    """`serve` is for a state folder."""
    result = prod("serve")

    assert result.exit_code == 2
    assert "cannot serve from context 'prod'" in result.stderr
