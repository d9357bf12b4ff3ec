"""Every command does and says the same, whatever kind of installation it is led to."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.cli.contexts import AWS, GCP, KINDS
from bellhop.cli.main import COMMANDS
from bellhop.installation import SERVE
from bellhop.runtime.cloud.installation import FUNCTIONS
from bellhop.runtime.embedded.state import only_one
from bellhop.state.heartbeats import WorkerHeartbeat
from bellhop.state.messages import Resync
from tests.cli.conftest import Google, House, embedded, on_aws, on_gcp, waiting
from tests.functions.lab import Account
from tests.lab.moto import Moto
from tests.unit.cli import fleet

READING = [
    "get clusters",
    "get clusters,eventsources -o wide",
    "get eventsources -o yaml",
    "get eventtriggers -o json",
    "get eventreports",
    "get held",
    "get configuration",
    "get promotions",
    "get clusterprofiles -o name",
    "get configmaps -A",
    "get secrets -n infra -o yaml",
    "get secret registry -n infra --show-secrets -o yaml",
    "describe cluster default/workload",
    "describe eventsource sveltos-service",
    "describe clusterprofile",
    "describe eventreport",
    f"history {fleet.PROFILE}",
    "show addons",
    "show addons --profile service-network-policy-0123456789ab -o json",
    "show usage",
    "show dryrun",
    "show dryrun --raw-diff -o json",
    "show resources --full",
    "show events",
    "show events -o json",
    "show events --cluster default/workload --limit 0",
    "show orphans",
    "describe held",
    "delete orphans --cluster default/workload",
    "show failures",
    "events --trace 3f9a",
    "dead-letters list",
    "explain default/workload Service default/my-service",
    "explain trigger service-network-policy -o json",
    "get clusters nothing",
    "get eventsources nothing",
    "describe cluster nowhere/none",
    "diff nothing",
    "install crds --print",
]
"""What changes nothing, and is answered only from the records."""

WEEKEND = "--from '0 20 * * 5' --to '0 5 * * 1'"

CHANGING = [
    ("label cluster default/workload tier=gold", "get clusters -o json"),
    ("label cluster default/workload env-", "get clusters -o wide"),
    ("annotate cluster default/workload team=web", "get clusters -o yaml"),
    ("pause trigger service-network-policy", "get eventtriggers -o wide"),
    ("resume trigger service-network-policy", "get eventtriggers -o wide"),
    ("pause cluster default/workload", "get clusters -o yaml"),
    ("resume cluster default/workload", "get clusters -o yaml"),
    (f"set maintenance-window default/workload {WEEKEND}", "get clusters -o yaml"),
    ("set maintenance-window default/workload --clear", "get clusters -o yaml"),
    (f"rollback {fleet.PROFILE}", f"history {fleet.PROFILE} -o json"),
    (f"rollback {fleet.PROFILE} --end", "describe clusterprofile"),
    ("apply -f - --dry-run=client", "get configmaps -A"),
    ("apply -f -", "get configmaps -A -o yaml"),
    ("delete configmap network-policy --dry-run=client", "get configmaps -A"),
    ("delete configmap network-policy", "get configmaps -A"),
    ("delete eventtrigger service-network-policy", "get eventtriggers"),
    ("redeploy service-network-policy-0123456789ab", "show addons"),
    ("redeploy cluster default/workload", "show addons"),
    ("release --all", "get held -o json"),
    ("resync default/workload --full", "get clusters"),
    ("deregister cluster default/workload", "get clusters"),
]
"""What changes something, and where that is seen."""

MOVING = [
    "get clusters -o yaml",
    "get eventsources,eventtriggers,configmaps -A -o yaml",
    "get secret registry -n infra --show-secrets -o yaml",
    "describe clusterprofile",
    "show resources --full",
]
"""Commands that show whether an installation was moved as a whole."""

ELSEWHERE = {
    "approve": "tests/unit/cli/test_promotions.py",
    "charts": "asks no installation: tests/unit/cli/test_charts.py",
    "completion": "prints a script",
    "context": "tests/unit/cli/test_contexts.py, tests/cli/test_contexts.py",
    "dead-letters": "below",
    "doctor": "below",
    "evaluate": "from files alone, or a declared source: tests/unit/cli/test_trials.py",
    "backup": "below, tests/cli/test_moving.py, tests/unit/cli/test_moving.py",
    "restore": "below, tests/cli/test_moving.py, tests/unit/cli/test_moving.py",
    "export": "tests/unit/cli/test_export.py",
    "import": "from files or a hub: tests/unit/cli/test_import_sveltos.py",
    "logs": "tests/cli/test_logs.py",
    "promote": "tests/unit/cli/test_promotions.py",
    "register": "tests/cli/test_register.py",
    "reject": "tests/unit/cli/test_promotions.py",
    "render": "from files alone",
    "rotate": "tests/cli/test_register.py",
    "schema": "asks no installation: tests/unit/cli/test_schema.py",
    "sender": "tests/cli/test_sender.py, tests/unit/cli/test_sender.py",
    "serve": "is the embedded mode",
    "status": "below",
    "support-bundle": "writes what other commands print: tests/unit/cli/test_support_bundle.py",
    "test": "from files alone",
    "version": "tests/unit/cli/test_version.py",
    "wait": "tests/unit/cli/test_wait.py",
}
"""Commands that are tested in another way, and where or why."""

STDIN = "{apiVersion: v1, kind: ConfigMap, metadata: {name: fresh}, data: {a: b}}"


def populate(house: House) -> None:
    """Deploy the example, with events to report."""
    fleet.populate(house.here)
    fleet.revise(house.here)
    for what, ago in (("rang", 40), ("matched", 39), ("applied", 38)):
        house.here.records.ledger.note(fleet.entry(what, ago=ago))


def plain(text: str) -> list[list[str]]:
    """Take away what differs between two runs: times, marks and the names of dead letters."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?( UTC)?", "TIME", text)
    text = re.sub(r"\b\d+(\.\d+)? ?(s|m|h)( ago)?\b", "AGE", text)
    text = re.sub(r"\bdeploy/[-\w]+", "deploy/ID", text)
    for worker in (SERVE, FUNCTIONS):
        text = text.replace(worker.start, "START").replace(worker.busy, "BUSY")
        text = text.replace(worker.name, "WORKER")
    return [line.split() for line in text.splitlines()]


Built = Callable[[str, Path], House]


@pytest.fixture(scope="module")
def built(_moto: Moto, google: Google) -> Iterator[Built]:
    """Make an installation of a kind, in which the example is deployed."""
    with ExitStack() as end:

        def build(kind: str, folder: Path) -> House:
            if kind == "embedded":
                made = embedded(folder)
            elif kind == "aws":
                account = Account(_moto)
                end.callback(account.close)
                made = on_aws(folder, account)
            else:
                project = google.project()
                end.callback(project.close)
                made = on_gcp(folder, project)
            end.callback(made.opened.close)
            populate(made)
            return made

        yield build


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory, built: Built) -> Iterator[list[House]]:
    """The same fleet in an installation of each kind; filling them on emulators takes long."""
    made = [built(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS]
    for house in made:
        house.here.records.pulses.put(
            WorkerHeartbeat(fleet.now(), fleet.now() + timedelta(minutes=1))
        )
    with only_one(made[0].context.state):
        yield made


@pytest.mark.parametrize("line", READING)
def test_reads_the_same(houses: list[House], line: str) -> None:
    """Output, errors and exit code are those of the embedded mode, in the same columns."""
    one, *others = (house(*line.split()) for house in houses)
    for other in others:
        assert plain(one.stdout) == plain(other.stdout)
        assert plain(one.stderr) == plain(other.stderr)
        assert one.exit_code == other.exit_code


@pytest.mark.timeout(600)
def test_changes_the_same(tmp_path: Path, built: Built) -> None:
    """It takes long: commands run in three installations, two of them on emulators."""
    houses = []
    for kind in KINDS:
        (tmp_path / kind).mkdir()
        houses.append(built(kind, tmp_path / kind))
    for change, look in CHANGING:
        results = [house(*shlex.split(change), stdin=STDIN) for house in houses]
        seen = [plain(house(*look.split()).output) for house in houses]
        for result, there in zip(results, seen, strict=True):
            assert plain(result.output) == plain(results[0].output), change
            assert result.exit_code == 0, f"{change}: {result.output}"
            assert there == seen[0], change


def test_every_command_is_tried() -> None:
    """A new command has to be added here."""
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
    assert waiting(house, "deploy") == 1
    again = house("dead-letters", "replay", first)
    assert (again.exit_code, "no dead letter" in again.stderr) == (1, True)


def test_drops_a_dead_letter(house: House) -> None:
    """And one that is not there is an error."""
    first = house.bury({"kind": "sweep", "cluster": "a/b"}, "it killed its workers")

    assert house("dead-letters", "drop", first).stdout == f"dead-letter/{first} dropped\n"
    assert house("dead-letters", "drop", first).exit_code == 1
    assert house("dead-letters", "replay", "nowhere/1").exit_code == 1


clouds = pytest.mark.parametrize("kind", [AWS, GCP])


def report_waiting(house: House, inbox: str, count: int) -> None:
    """Have a cloud's monitoring report for three hours that messages wait in an inbox."""
    at, age = fleet.now() - timedelta(minutes=2), 3 * 3600
    if house.monitoring:
        topic = house.context.place["topics"][inbox]
        values = {"num_undelivered_messages": count, "oldest_unacked_message_age": age}
        for metric, value in values.items():
            house.monitoring.report(topic, metric, value, at=at)
        return
    data = {
        "MetricName": "ApproximateAgeOfOldestMessage",
        "Dimensions": [{"Name": "QueueName", "Value": f"{house.context.place['table']}-{inbox}"}],
        "Timestamp": at,
        "Value": float(age),
    }
    cloudwatch = house.services.client("cloudwatch")
    cloudwatch.put_metric_data(Namespace="AWS/SQS", MetricData=[data])


@clouds
def test_status_reports_what_waits(house: House) -> None:
    """Queues, dead letters, whether the schedule ticks, and the version of who works.

    It takes seconds: the emulator of a cloud is filled with an example and asked for every queue.
    """
    populate(house)
    house.bury({"kind": "sweep", "cluster": "a/b"}, "it killed its workers")
    now = fleet.now()
    house.here.records.pulses.put(WorkerHeartbeat(now, now, "9.9.9"))
    house.here.publisher.publish([Resync("default/workload")])
    count = waiting(house, "sweep")
    report_waiting(house, "sweep", count)
    table, status = house("status"), json.loads(house("status", "-o", "json").stdout)

    lines = [line.split() for line in table.stdout.splitlines()]
    assert table.exit_code == 1
    assert lines[0][:2] == ["schedule", "ticks,"]
    assert "it is 9.9.9, and this command" in table.stdout
    assert ["dead", "letters", "1"] in lines
    assert f"{count} messages in sweep for 3h" in table.stdout
    assert (status["running"], status["version"], status["deadLetters"]) == (True, "9.9.9", 1)
    assert status["queues"]["sweep"]["waiting"] == count
    assert [each["what"] for each in status["failures"]] == ["dead letter"]


@clouds
def test_status_says_that_nothing_ticks(house: House) -> None:
    """A schedule that never ticked, or not for minutes, is a failure; `doctor` finds it, too."""
    never = house("status")
    house.here.records.pulses.put(WorkerHeartbeat(fleet.now(), fleet.now().replace(year=2025)))
    late, examined = house("show", "failures"), house("doctor", "-o", "json")

    assert "the schedule has not ticked yet" in never.stdout
    assert (never.exit_code, never.stdout.split()[:4]) == (1, ["schedule", "does", "not", "tick,"])
    assert "the schedule has not ticked since 2025-" in late.stdout
    signs = {each["piece"]: each["verdict"] for each in json.loads(examined.stdout)}
    assert signs == {"schedule": "wrong", "ingest": "wrong"}


@clouds
def test_serves_from_no_cloud(house: House) -> None:
    """`serve` is for a state folder."""
    result = house("serve")

    assert result.exit_code == 2
    assert "cannot serve from context 'prod'" in result.stderr


@clouds
def test_moves_into_a_cloud_and_back(house: House, tmp_path: Path) -> None:
    """It takes seconds: an installation on an emulator is filled and read, record by record."""
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "secret.txt").write_text("a passphrase of several words\n")
    passphrase = ("--passphrase-file", str(tmp_path / "secret.txt"))
    seen = []
    here = embedded(tmp_path / "one")
    populate(here)
    for number, there in enumerate((house, embedded(tmp_path / "other"))):
        archive = str(tmp_path / f"{number}.archive")
        seen.append([here(*line.split()).stdout for line in MOVING])
        here.opened.close()
        # With --leave a cloud is waited for: its functions look now and then whether it was left.
        left = here("backup", archive, *passphrase)
        assert left.exit_code == 0, left.output
        filled = there("restore", archive, "--without-leave", *passphrase)
        assert filled.exit_code == 0, filled.output
        here = there
    seen.append([here(*line.split()).stdout for line in MOVING])
    here.opened.close()

    assert all(seen[0])
    assert seen[0] == seen[1] == seen[2]
