"""`bellhop status`, and what `show failures` counts: causes, with how many follow from each."""

from __future__ import annotations

import json
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.local.queue import SqliteQueue
from bellhop.cli.commands.status import NOT_COMPARED
from bellhop.core.gvk import ObjectKey
from bellhop.diagnosis.failures import list_failures
from bellhop.diagnosis.worker_status import check_worker
from bellhop.installation import Inbound, Installation, ProcessStatus, Room
from bellhop.ports.queue import Again
from bellhop.ports.store import Item
from bellhop.state.cluster import Circuit, Cluster, Health, Heartbeat
from bellhop.state.delays import sweep_timer
from bellhop.state.heartbeats import WorkerHeartbeat
from bellhop.state.ingest_policy import Refusals
from bellhop.state.match import Match, Selection
from bellhop.state.messages import Apply, Resync
from tests.fakes.kept import require_value
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

CLUSTER = "default/workload"
HOUR = timedelta(hours=1)
MEBI = 1024 * 1024


def send_events(here: Installation, how: str = "", **changes: Any) -> None:
    """Have the example's cluster send events by a forwarder, `direct`ly, or by its `audit` log."""
    fleet.populate(here)
    kept = require_value(here.records.clusters.get(CLUSTER))
    forwarder = {"url": "", "path": "/ring/x", **({how: "yes"} if how else {})}
    here.declare.register(replace(kept, forwarder=forwarder, **changes))


def failures(bellhop: Bellhop) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(bellhop("show", "failures", "-o", "json").stdout)
    return found


def state_of(bellhop: Bellhop) -> str:
    [cluster] = json.loads(bellhop("get", "clusters", "-o", "json").stdout)["items"]
    return str(cluster["status"]["connectionStatus"])


@pytest.mark.usefixtures("served")
def test_shows_a_healthy_installation(bellhop: Bellhop, here: Installation) -> None:
    """One screen with what there is, and exit code 0."""
    send_events(here)
    now = fleet.now()
    here.records.hearings.put(CLUSTER, Heartbeat(now - timedelta(seconds=30), 0.0, "0.1.0"))
    here.records.pulses.put(WorkerHeartbeat(now - HOUR, now))
    result = bellhop("status")
    lines = [line.split() for line in result.stdout.splitlines()]

    assert result.exit_code == 0, result.stdout
    assert lines[0][:3] == ["bellhop", "serve", "runs"]
    assert ["declared", "1", "EventSource,", "1", "trigger,", "0", "profiles"] in lines
    assert ["deployments", "1", "of", "1", "Provisioned"] in lines
    assert ["queues", "nothing", "waits"] not in lines
    assert [CLUSTER, "Healthy", "30s", "120s", "1/10", "0", "0"] in _rounded(lines)
    assert result.stdout.splitlines()[-1] == f"No problem is known. {NOT_COMPARED}"


@pytest.mark.usefixtures("served")
def test_names_what_is_paused(bellhop: Bellhop, here: Installation) -> None:
    send_events(here)
    now = fleet.now()
    here.records.hearings.put(CLUSTER, Heartbeat(now, 0.0, "0.1.0"))
    here.records.pulses.put(WorkerHeartbeat(now - HOUR, now))
    assert "paused" not in bellhop("status").stdout
    bellhop("pause", "trigger", "service-network-policy")
    result = bellhop("status")
    status = json.loads(bellhop("status", "-o", "json").stdout)

    assert result.exit_code == 0, result.stdout
    assert (
        "paused          trigger service-network-policy; `bellhop resume` ends that\n"
    ) in result.stdout
    assert "No problem is known, but not everything is active: see `paused`." in result.stdout
    assert (status["well"], status["paused"]) == (True, ["trigger service-network-policy"])


@pytest.mark.usefixtures("served")
def test_a_paused_cluster_is_not_called_healthy(bellhop: Bellhop, here: Installation) -> None:
    """It is named, as a paused trigger or profile is."""
    working(here)
    assert bellhop("pause", "cluster", CLUSTER).exit_code == 0
    result = bellhop("status")

    assert result.exit_code == 0, result.stdout
    assert f"paused          cluster {CLUSTER}; `bellhop resume` ends that\n" in result.stdout
    assert "not everything is active" in result.stdout


@pytest.mark.usefixtures("served")
def test_counts_no_misses_where_nothing_sends_events(bellhop: Bellhop, here: Installation) -> None:
    """A cluster without a forwarder has no push that could miss anything."""
    fleet.populate(here)
    [row] = [line for line in bellhop("status").stdout.splitlines() if CLUSTER in line]
    status = json.loads(bellhop("status", "-o", "json").stdout)

    assert row.split()[-3:] == ["-", "0", "0"]
    assert (status["clusters"][0]["missed"], status["clusters"][0]["observed"]) == (1, 10)
    assert status["clusters"][0]["countedSince"]


@pytest.mark.usefixtures("served")
def test_names_the_first_heartbeat_that_is_due(bellhop: Bellhop, here: Installation) -> None:
    """A cluster that was registered just now is healthy, and its forwarder may not run."""
    send_events(here, registered_at=fleet.now())
    words = "no heartbeat of its forwarder yet"
    assert words in bellhop("get", "clusters", "-o", "wide").stdout
    here.records.hearings.put(CLUSTER, Heartbeat(fleet.now(), 0.0, "0.1.0"))

    assert words not in bellhop("get", "clusters", "-o", "wide").stdout


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("how", ["direct", "audit"])
def test_awaits_no_heartbeat_of_an_api_server(
    bellhop: Bellhop, here: Installation, how: str
) -> None:
    """Only a forwarder sends them, and what one sent earlier does not count."""
    send_events(here, how)
    here.records.hearings.put(CLUSTER, Heartbeat(fleet.now() - HOUR, 0.0, "0.1.0"))
    [row] = [line for line in bellhop("status").stdout.splitlines() if CLUSTER in line]

    assert row.split()[2] == "-"
    assert "heartbeat" not in bellhop("describe", "cluster", CLUSTER).stdout


@pytest.mark.usefixtures("served")
def test_says_how_long_the_oldest_work_waits(bellhop: Bellhop, here: Installation) -> None:
    """As the last tick of functions found it; without any the line is not there."""
    now = fleet.now()
    here.records.pulses.put(WorkerHeartbeat(now - HOUR, now))
    assert "oldest pending" not in bellhop("status").stdout
    here.records.pulses.put(WorkerHeartbeat(now - HOUR, now, pending=now - 2 * HOUR))

    assert "oldest pending  for 2h, late or retried\n" in bellhop("status").stdout
    assert json.loads(bellhop("status", "-o", "json").stdout)["oldestPending"]


@pytest.mark.usefixtures("served")
def test_says_which_messages_are_tried_again_and_why(bellhop: Bellhop, here: Installation) -> None:
    """A message that met the lease of another worker is not due, and its reason is shown."""
    here.publisher.publish([Apply("", "", "web", CLUSTER)])
    queue = here.queues["apply"]
    assert isinstance(queue, SqliteQueue)
    [taken] = queue.receive(1, wait=timedelta(0))
    queue.settle(taken, Again(HOUR, "another worker is at it"))

    line = "delayed         1 message in apply, tried again soon: another worker is at it\n"
    said = bellhop("status").stdout
    assert line in said
    assert "No problem is known, but some work failed and is tried again: see `delayed`." in said
    counts = json.loads(bellhop("status", "-o", "json").stdout)["queues"]["apply"]
    assert (counts["waiting"], counts["delayed"]) == (0, 1)


def _rounded(lines: list[list[str]]) -> list[list[str]]:
    # A second may pass before the command looks.
    return [[{"31s": "30s", "2m": "120s"}.get(word, word) for word in line] for line in lines]


def test_says_that_nobody_serves(bellhop: Bellhop, here: Installation) -> None:
    """And when somebody did last; exit code 1, and the same for programs."""
    fleet.populate(here)
    here.records.pulses.put(WorkerHeartbeat(fleet.now() - 3 * HOUR, fleet.now() - 2 * HOUR))
    result = bellhop("status")
    status = json.loads(bellhop("status", "-o", "json").stdout)

    assert result.exit_code == 1
    assert "does not run, last at work 2h ago" in result.stdout
    assert (
        "`bellhop serve` does not run: no event is received, evaluated or deployed" in result.stdout
    )
    assert (status["well"], status["running"], status["failures"][0]["what"]) == (
        False,
        False,
        "serve",
    )
    assert status["queues"]["sweep"]["waiting"] >= 1


@pytest.mark.usefixtures("served")
def test_says_that_who_serves_has_written_nothing(bellhop: Bellhop, here: Installation) -> None:
    """A process that is stopped holds its lock still."""
    here.records.pulses.put(WorkerHeartbeat(fleet.now() - HOUR, fleet.now() - timedelta(minutes=2)))
    result = bellhop("status")

    assert result.exit_code == 1
    assert "`bellhop serve` runs and has written nothing since then" in result.stdout


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_says_what_it_can_of_a_state_that_it_cannot_read(
    bellhop: Bellhop, here: Installation, state: Path, form: str
) -> None:
    """One of a newer version, or without its key: whether somebody serves, and the reason."""
    fleet.populate(here)
    with sqlite3.connect(state / "store.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    result = bellhop("status", "-o", form)

    assert result.exit_code == 1
    assert "a newer Bellhop wrote it" in result.stdout + result.stderr
    assert "does not run" in result.stdout or "running" in result.stdout


def test_names_a_bad_setting_where_there_is_no_state_either(
    bellhop: Bellhop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting is read first, and that the folder is missing is no failure of its disk."""
    monkeypatch.setenv("BELLHOP_EGRESS_ALLOW", "https://charts.example.com")
    result = bellhop("status", "--state", str(tmp_path / "none"))

    assert result.exit_code == 1
    assert "'https://charts.example.com' is neither a host" in result.stderr
    assert "file system" not in result.stderr


@pytest.mark.usefixtures("served")
def test_says_that_it_cannot_read_a_record(bellhop: Bellhop, here: Installation) -> None:
    """One that another version wrote in another way: the sentence, beside what is known."""
    fleet.populate(here)
    here.records.store.put(Item("outcome/default/workload", "x", {"phase": 7}))
    result = bellhop("status")

    assert result.exit_code == 1
    assert "bellhop serve   runs" in result.stdout
    assert "it is of another version of Bellhop" in result.stderr


def test_reads_what_a_later_version_adds(bellhop: Bellhop, here: Installation) -> None:
    """A field that is not known yet is passed over."""
    send_events(here)
    item = here.records.store.get("cluster", CLUSTER)
    assert item is not None
    here.records.store.put(Item("cluster", CLUSTER, {**item.value, "later": {"a": 1}}))

    assert CLUSTER in bellhop("status").stdout


@pytest.mark.parametrize(
    ("room", "said"),
    [
        (Room(Path("/s"), 300 * MEBI, 9000 * MEBI), ""),
        (Room(Path("/s"), 255 * MEBI, 9000 * MEBI), "255 MiB are left of 9000 MiB; below 4 MiB"),
        (Room(Path("/s"), 60 * MEBI, 500 * MEBI), ""),
        (Room(Path("/s"), 40 * MEBI, 500 * MEBI), "40 MiB are left of 500 MiB; below 4 MiB"),
        (Room(Path("/s"), 3 * MEBI, 500 * MEBI), "it is full (3072 KiB are left), and nothing is"),
        (Room(Path("/s"), 300 * MEBI, 500 * MEBI, names=False), "all its inodes are used"),
    ],
)
def test_warns_of_a_disk_before_it_is_full(here: Installation, room: Room, said: str) -> None:
    """Below 256 MiB, or a tenth of a small disk: by status and doctor, with what happens next."""
    there = replace(here, vitals=ProcessStatus(room.folder, running=True, room=room))
    messages = [each.message for each in list_failures(there) if each.type == "disk"]
    [sign] = [each for each in check_worker(there, answers=True) if each.type == "disk"]

    assert [said in each for each in messages] == ([True] if said else [])
    assert said in sign.message
    assert sign.status == ("failed" if said else "yes")


def test_doctor_names_no_address_where_there_is_none(here: Installation) -> None:
    room = Room(Path("/s"), 300 * MEBI, 9000 * MEBI)
    process = ProcessStatus(room.folder, running=True, room=room)
    there = replace(here, vitals=process, inbound=Inbound("", ""))
    [check] = [each for each in check_worker(there, answers=False) if each.type == "listener"]

    assert (check.status, check.message) == ("failed", "it has no address for clusters")


def test_says_what_waits(bellhop: Bellhop, here: Installation) -> None:
    """Messages by inbox and since when, and profiles by the cluster that they wait for."""
    fleet.populate(here)
    here.records.circuits.put(CLUSTER, Circuit(fleet.now(), fleet.now(), "no connection in time"))
    waiting = fleet.outcome(phase="Failed", message="cannot reach it", reason="Away")
    for number in range(3):
        here.records.outcomes.put(replace(waiting, profile=f"p{number}"))
    here.publisher.publish([Resync(CLUSTER)])
    status = json.loads(bellhop("status", "-o", "json").stdout)

    [cluster] = status["clusters"]
    assert (cluster["state"], cluster["waiting"], cluster["failing"]) == ("Down", 3, 0)
    assert status["queues"]["sweep"]["waiting"] >= 1
    assert "in sweep for" in bellhop("status").stdout


# Clusters that send no events ---------------------------------------------------------------------


@pytest.mark.parametrize("heard", [None, HOUR], ids=["never", "an hour ago"])
def test_a_forwarder_that_is_silent_is_reported(
    bellhop: Bellhop, here: Installation, heard: timedelta | None
) -> None:
    send_events(here)
    if heard:
        here.records.hearings.put(CLUSTER, Heartbeat(fleet.now() - heard, 0.0, "0.1.0"))
    [row] = [row for row in failures(bellhop) if row["what"] == "cluster"]

    assert state_of(bellhop) == "Silent"
    assert ("sent no heartbeat" if heard is None else "sent its last heartbeat at") in row[
        "sentence"
    ]
    assert f"`bellhop doctor {CLUSTER}` looks where it ends" in row["sentence"]


@pytest.mark.parametrize(
    "why",
    ["no forwarder", "registered just now", "an earlier forwarder", "nobody served", "began late"],
)
def test_a_silence_without_meaning_is_not_reported(
    bellhop: Bellhop, here: Installation, why: str
) -> None:
    now = fleet.now()
    if why == "no forwarder":
        fleet.populate(here)
    else:
        send_events(here, **({"registered_at": now} if why == "registered just now" else {}))
    if why == "an earlier forwarder":
        here.records.hearings.put(CLUSTER, Heartbeat(now - HOUR))
    elif why == "nobody served":
        here.records.pulses.put(WorkerHeartbeat(now - 3 * HOUR, now - HOUR))
    elif why == "began late":
        here.records.pulses.put(WorkerHeartbeat(now - timedelta(minutes=1), now))

    assert [row for row in failures(bellhop) if row["what"] == "cluster"] == []
    assert state_of(bellhop) == "Healthy"


def test_what_a_forwarder_may_not_read_is_reported(bellhop: Bellhop, here: Installation) -> None:
    """In its own words."""
    send_events(here)
    problem = "cannot read Service 'default/web' on cluster 'here': forbidden"
    here.records.hearings.put(CLUSTER, Heartbeat(fleet.now(), 0.0, "0.1.0", 1, None, problem))
    [row] = [row for row in failures(bellhop) if row["what"] == "cluster"]

    assert row["sentence"] == f"its forwarder cannot read changed objects: {problem}"
    assert state_of(bellhop) == "Silent"


def test_a_refused_forwarder_is_reported_once(bellhop: Bellhop, here: Installation) -> None:
    send_events(here)
    here.records.refusals.put(CLUSTER, Refusals(9, fleet.now(), fleet.now()))
    rows = [row for row in failures(bellhop) if row["which"] == CLUSTER]

    assert [("register the cluster again" in row["sentence"]) for row in rows] == [True]
    assert state_of(bellhop) == "Silent"


def test_a_cluster_that_cannot_be_asked_to_send_events_is_silent(
    bellhop: Bellhop, here: Installation
) -> None:
    """And not simply healthy."""
    send_events(here, registered_at=fleet.now())
    said = "its webhook configuration cannot be installed, and only resyncs find events: no"
    health = Health("Healthy", said, swept_at=fleet.now(), mute=True)
    here.records.health.put(CLUSTER, health)
    [row] = [row for row in failures(bellhop) if row["what"] == "cluster"]

    assert (row["sentence"], state_of(bellhop)) == (said, "Silent")


# Causes, not consequences -------------------------------------------------------------------------


def test_what_follows_from_a_dead_destination_is_counted(
    bellhop: Bellhop, here: Installation
) -> None:
    """Those who met it themselves, and those who were kept off: one line for all."""
    fleet.populate(here)
    here.records.circuits.put(CLUSTER, Circuit(fleet.now(), fleet.now(), "no connection in time"))
    for number in range(40):
        how = (
            {"reason": "Unreachable", "retry_at": fleet.now()} if number % 2 else {"reason": "Away"}
        )
        failed = fleet.outcome(phase="Failed", message=f"cannot reach p{number}", **how)
        here.records.outcomes.put(replace(failed, profile=f"p{number}"))
        here.records.profiles.put(fleet.profile(name=f"p{number}"))
    rows = [row for row in failures(bellhop) if row["what"] in {"cluster", "deployment"}]

    assert len(rows) == 1
    assert "no connection in time; 40 of its profiles wait for it" in rows[0]["sentence"]


def test_one_script_that_fails_in_several_clusters_is_one_cause(
    bellhop: Bellhop, here: Installation
) -> None:
    """With the clusters, and since when: a script's own, and an aggregatedSelection's."""
    fleet.populate(here)
    first = fleet.now() - HOUR
    for number in range(7):
        key, at = f"fleet/c{number}", first + timedelta(minutes=7 - number)
        here.declare.register(Cluster("fleet", f"c{number}", {}, "v1.30.0", "d", at))
        match = Match(key, "s", fleet.SERVICE, False, "", at, error="oh no", failed_at=at)  # noqa: FBT003
        here.records.matches.put(match)
        here.records.selections.put(Selection(key, "s", at, error="oh my", failed_at=at))
    rows = [row for row in failures(bellhop) if row["what"] == "evaluation"]

    named = "fleet/c0, fleet/c1, fleet/c2, fleet/c3, fleet/c4 and 2 more"
    assert [(row["count"], row["which"]) for row in rows] == [
        (7, "s on Service default/my-service in fleet/c0"),
        (7, "s in fleet/c0"),
    ]
    assert f"oh no; it fails in 7 clusters: {named}" in rows[0]["sentence"]
    assert rows[1]["sentence"] == f"oh my; it fails in 7 clusters: {named}"
    assert {row["since"] for row in rows} == {f"{first + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"}


def test_what_fails_alike_is_one_line_with_a_count(bellhop: Bellhop, here: Installation) -> None:
    """Profiles of one trigger in one cluster, objects of one source, messages of one reason."""
    fleet.populate(here)
    for number in range(30):
        name = f"p{number:02}"
        here.records.profiles.put(fleet.profile(name=name))
        denied = fleet.outcome(phase="Failed", reason="Denied", message=f"cannot apply {name}")
        here.records.outcomes.put(replace(denied, profile=name))
        key = ObjectKey(fleet.SERVICE.gvk, "default", f"web-{number:02}")
        match = Match(CLUSTER, "sveltos-service", key, matching=True, digest="", since=fleet.now())
        here.records.matches.put(replace(match, error="attempt to index a nil value"))
    rows = {row["what"]: row for row in failures(bellhop)}

    assert {what: row["count"] for what, row in rows.items() if what != "serve"} == {
        "deployment": 30,
        "evaluation": 30,
    }
    assert rows["deployment"]["which"] == f"p00 to {CLUSTER}"
    assert "so it is with 30 profiles, of which this is the first" in rows["deployment"]["sentence"]
    assert "web-00" in rows["evaluation"]["which"]


@pytest.mark.parametrize(
    ("selectors", "said"),
    [
        pytest.param(
            "clusterSelector: env=prod", ["sourceClusterSelector 'env=prod'"], id="source"
        ),
        pytest.param(
            "clusterSelector: env=fv\n  destinationClusterSelector: dep=eng",
            ["destinationClusterSelector 'dep=eng'"],
            id="destination",
        ),
        pytest.param("clusterSelector: env=fv", [], id="both select"),
    ],
)
def test_a_trigger_that_selects_no_cluster_is_reported(
    bellhop: Bellhop, here: Installation, selectors: str, said: list[str]
) -> None:
    """With what it asks for, and how to see what there is."""
    fleet.populate(here)
    fleet.declare(here, fleet.MANIFESTS.replace("clusterSelector: env=fv", selectors))
    rows = [row for row in failures(bellhop) if row["what"] == "trigger"]

    assert [
        f"its {each} selects none of the 1 clusters" in rows[0]["sentence"] for each in said
    ] == [True for _ in rows]


def working(here: Installation, **changes: Any) -> None:
    """A healthy installation but for changes to the worker's heartbeat."""
    send_events(here)
    now = fleet.now()
    here.records.hearings.put(CLUSTER, Heartbeat(now, 0.0, "0.1.0"))
    here.records.pulses.put(replace(WorkerHeartbeat(now - HOUR, now), **changes))


@pytest.mark.usefixtures("served")
def test_reports_that_the_clock_jumped_and_came_back(bellhop: Bellhop, here: Installation) -> None:
    """No problem is left, and who wonders about a time in a record learns why."""
    at = fleet.now() - timedelta(minutes=3)
    working(here, jumped_at=at, jumped=-86400.0, off=0.0)
    result = bellhop("status")

    line = f"clock           jumped back by 24 hours at {at:%Y-%m-%dT%H:%M:%SZ}"
    assert line in result.stdout
    assert result.stdout.splitlines()[-1].startswith("No problem is known. ")


@pytest.mark.usefixtures("served")
def test_reports_that_the_clock_is_wrong(bellhop: Bellhop, here: Installation) -> None:
    """For an hour: after that it may be the one that was put right."""
    at = fleet.now() - timedelta(minutes=3)
    working(here, jumped_at=at, jumped=7200.0, off=7200.0)
    [found] = failures(bellhop)
    here.records.pulses.put(
        WorkerHeartbeat(at, fleet.now(), jumped_at=at - HOUR, jumped=7200.0, off=7200.0)
    )

    assert (found["what"], found["which"]) == ("clock", "this machine")
    assert "it is 2 hours ahead of where it would be without jumps" in found["sentence"]
    assert failures(bellhop) == []


@pytest.mark.usefixtures("served")
def test_reports_what_is_overdue(bellhop: Bellhop, here: Installation) -> None:
    working(here)
    late = fleet.now() - 2 * HOUR
    here.records.timers.set(sweep_timer(CLUSTER), late, Resync(CLUSTER).message().body)
    here.records.health.put(CLUSTER, replace(here.records.health.get(CLUSTER).value, swept_at=late))
    found = failures(bellhop)

    assert [(each["what"], each["which"]) for each in found] == [
        ("overdue", f"sweep/{CLUSTER}")
    ] * 2
    assert "it is overdue by 2 hours" in found[0]["sentence"]
    assert "no resync of it has ended since then" in found[1]["sentence"]
    assert "No problem is known" not in bellhop("status").stdout


@pytest.mark.usefixtures("served")
def test_reports_that_a_resync_is_set_too_far_ahead(bellhop: Bellhop, here: Installation) -> None:
    """As by a clock that was ahead, until that is pulled in; or is not set at all."""
    working(here)
    body = Resync(CLUSTER).message().body
    here.records.timers.set(sweep_timer(CLUSTER), fleet.now() + 24 * HOUR, body)
    [far] = failures(bellhop)
    here.records.timers.cancel(sweep_timer(CLUSTER))
    [none] = failures(bellhop)

    assert "later than its interval" in far["sentence"]
    assert "no resync is scheduled" in none["sentence"]
