"""show: deployed objects, events and problems; dead letters, resyncs and labels."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from bellhop.installation import Installation
from bellhop.ports.queue import Again, Done, Message
from bellhop.state.cluster import Health
from bellhop.state.deployment import Phase
from bellhop.state.event_log import Entry
from bellhop.state.ingest_policy import Refusals
from bellhop.state.match import Match
from tests.fakes.kept import require_value
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

PROGRAM = Path(sys.executable).parent / "bellhop"
NOTHING = timedelta(0)

# Add-ons ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        pytest.param(("--namespace", "default", "--cluster", "workload"), True, id="the cluster"),
        pytest.param(("--cluster", "default/workload"), True, id="the cluster by its whole name"),
        pytest.param(("--clusterprofile", fleet.PROFILE, "--resources"), True, id="in their words"),
        pytest.param(("--helm-charts",), False, id="charts"),
        pytest.param(("--profile", f"ClusterProfile/{fleet.PROFILE}"), True, id="the profile"),
        pytest.param(("--profile", fleet.PROFILE), True, id="its name alone"),
        pytest.param(("--profile", "ClusterProfile/other"), False, id="another profile"),
    ],
)
def test_add_ons_are_chosen_by_cluster_and_profile(
    bellhop: Bellhop, here: Installation, arguments: tuple[str, ...], *, found: bool
) -> None:
    """Sveltosctl's options choose."""
    fleet.populate(here)
    rows = json.loads(bellhop("show", "addons", *arguments, "-o", "json").stdout)

    assert bool(rows) == found


@pytest.mark.parametrize(
    ("arguments", "types"),
    [
        pytest.param((), ["helm chart", "networking.k8s.io:NetworkPolicy"], id="all"),
        pytest.param(("--helm-charts",), ["helm chart"], id="charts"),
        pytest.param(("--resources",), ["networking.k8s.io:NetworkPolicy"], id="the rest"),
        pytest.param(("--helm-charts", "--verbose"), ["apps:Deployment", "helm chart"], id="parts"),
        pytest.param(
            ("--verbose",),
            ["apps:Deployment", "helm chart", "networking.k8s.io:NetworkPolicy"],
            id="all, with parts",
        ),
        pytest.param(
            ("--resources", "--verbose"), ["networking.k8s.io:NetworkPolicy"], id="no parts"
        ),
    ],
)
def test_a_chart_is_one_add_on(
    bellhop: Bellhop, here: Installation, arguments: tuple[str, ...], types: list[str]
) -> None:
    fleet.populate(here)
    fleet.chart(here)
    shown = bellhop("show", "addons", *arguments, "-o", "json").stdout

    assert sorted(row["resourceType"] for row in json.loads(shown)) == types
    assert "hush" not in shown


def test_what_a_chart_was_made_of_is_no_kind_in_use(bellhop: Bellhop, here: Installation) -> None:
    """`show usage` has the profile and the ConfigMap, and no field of a manifest."""
    fleet.populate(here)
    fleet.chart(here)
    rows = json.loads(bellhop("show", "usage", "-o", "json").stdout)

    assert [row["kind"] for row in rows] == ["ClusterProfile", "ConfigMap"]


def test_refuses_profiles_of_other_kinds(bellhop: Bellhop) -> None:
    """Of a Profile the namespace is missing, which it has in its name."""
    result = bellhop("show", "addons", "--profile", "Profile/x")

    assert result.exit_code == 2
    assert "write its NAME, ClusterProfile/NAME, Profile/NAMESPACE/NAME or" in result.stderr


# Events ----------------------------------------------------------------------------------------


def story() -> list[Entry]:
    """The lines of one event, and of a resync."""
    since = {"since_ring_ms": 20.0}
    return [
        fleet.entry("rang", ago=60, context=since),
        fleet.entry(
            "matched", ago=59.9, took_ms=0.3, context={"source": "sveltos-service", **since}
        ),
        fleet.entry("rendered", ago=59.8, took_ms=17, detail="NetworkPolicy front-my-service"),
        fleet.entry("applied", ago=59.7, cluster="prod/eu-2", detail="NetworkPolicy front"),
        fleet.entry("failed", trace="", ago=30, detail="no such thing"),
        fleet.entry("gone", trace="77aa00beefed", ago=10),
    ]


def test_events_are_printed_by_blocks(bellhop: Bellhop, here: Installation) -> None:
    for each in story():
        here.records.ledger.note(each)
    lines = bellhop("show", "events").stdout.splitlines()

    printed = [line.partition("Z  ")[2] or line for line in lines]
    assert printed == [
        "3f9a1c20  Service default/my-service changed in default/workload",
        "  matched   sveltos-service  (took 0.3 ms, 20 ms after the event)",
        "  rendered  NetworkPolicy front-my-service  (took 17.0 ms)",
        "  applied   prod/eu-2: NetworkPolicy front",
        "Service default/my-service in default/workload, after a resync or a change of manifests",
        "  failed    no such thing",
        "77aa00be  Service default/my-service was deleted in default/workload",
    ]


@pytest.mark.parametrize(
    ("arguments", "whats"),
    [
        pytest.param((), ["rang", "matched", "rendered", "applied", "failed", "gone"], id="all"),
        pytest.param(("--since", "20s"), ["gone"], id="since"),
        pytest.param(("--trace", "77aa"), ["gone"], id="by trace"),
        pytest.param(("--cluster", "prod/eu-2"), ["applied"], id="by cluster"),
    ],
)
def test_events_are_chosen(
    bellhop: Bellhop, here: Installation, arguments: tuple[str, ...], whats: list[str]
) -> None:
    """JSON is one object a line, for programs that read while it grows."""
    for each in story():
        here.records.ledger.note(each)
    result = bellhop("show", "events", *arguments, "-o", "json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    again = yaml.safe_load(bellhop("show", "events", *arguments, "-o", "yaml").stdout)

    assert [row["what"] for row in rows] == whats
    assert again == rows


def test_a_block_is_whole_where_one_line_is_asked_for(bellhop: Bellhop, here: Installation) -> None:
    for each in story():
        here.records.ledger.note(each)
    output = bellhop("show", "events", "--cluster", "prod/eu-2").stdout

    assert "changed in default/workload" in output
    assert "no such thing" not in output


def test_shows_the_last_hour_unless_asked(bellhop: Bellhop, here: Installation) -> None:
    here.records.ledger.note(fleet.entry("rang", trace="aa", ago=3700))
    here.records.ledger.note(fleet.entry("rang", trace="bb", ago=3500))

    rows = bellhop("show", "events", "-o", "json").stdout.splitlines()
    assert [json.loads(row)["trace"] for row in rows] == ["bb"]


def test_events_of_yesterday_are_there(bellhop: Bellhop, here: Installation) -> None:
    here.records.ledger.note(fleet.entry("rang", ago=86_400))
    here.records.ledger.note(fleet.entry("applied", ago=5))

    rows = bellhop("show", "events", "--since", "1d1h", "-o", "json").stdout.splitlines()
    assert [json.loads(row)["what"] for row in rows] == ["rang", "applied"]


def test_events_of_all_clusters_are_one_timeline(bellhop: Bellhop, here: Installation) -> None:
    clusters = ("default/workload", "prod/eu-2", "default/workload", "", "prod/eu-2", "gone/long")
    for ago, cluster in enumerate(reversed(clusters)):
        here.records.ledger.note(replace(fleet.entry("rang", ago=ago + 1), cluster=cluster))

    rows = bellhop("show", "events", "-o", "json").stdout.splitlines()
    assert [json.loads(row)["cluster"] for row in rows] == list(clusters)
    rows = bellhop("show", "events", "-o", "json", "--cluster", "prod/eu-2").stdout.splitlines()
    assert [json.loads(row)["cluster"] for row in rows] == ["prod/eu-2"] * 2


@pytest.mark.parametrize(
    ("limit", "expected"),
    [((), 200), (("--limit", "3"), 3), (("--limit", "0"), 450), (("--limit", "450"), 450)],
    ids=["not asked", "some", "all", "as many"],
)
def test_shows_the_last_lines(
    bellhop: Bellhop, here: Installation, limit: tuple[str, ...], expected: int
) -> None:
    """Two hundred unless asked; over hours, oldest first."""
    for number in range(450):
        here.records.ledger.note(
            fleet.entry("rang", trace=f"{number:016}", ago=20 * (450 - number))
        )
    rows = bellhop("show", "events", "--since", "1d", "-o", "json", *limit).stdout.splitlines()
    printed = bellhop("show", "events", "--since", "1d", *limit).stdout.splitlines()

    last = [f"{number:016}" for number in range(450 - expected, 450)]
    assert [json.loads(row)["trace"] for row in rows] == last
    assert len(printed) == expected


def test_an_event_of_which_the_last_lines_show_one_is_printed_whole(
    bellhop: Bellhop, here: Installation
) -> None:
    for what, trace, ago in (
        ("rang", "bb", 60),
        ("rang", "aa", 9),
        ("rang", "cc", 8),
        ("applied", "cc", 7),
        ("rang", "bb", 6),
        ("applied", "aa", 5),
    ):
        here.records.ledger.note(fleet.entry(what, trace=trace, ago=ago))
    printed = bellhop("show", "events", "--limit", "2").stdout.splitlines()

    assert [each.partition("Z  ")[2][:2] or each.split()[0] for each in printed] == [
        "aa",
        "applied",
        "bb",
    ]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("text", ["1", "h", "1x", "1h 2m", "-1h", ""])
def test_refuses_what_is_no_duration(bellhop: Bellhop, text: str) -> None:
    """A duration has a unit."""
    result = bellhop("show", "events", "--since", text)

    if text:
        assert result.exit_code == 2
        assert f"cannot read '{text}' as a duration" in result.stderr
    else:
        assert result.stderr == "No events found in the last 1h.\n"


@pytest.fixture
def following(state: Path, here: Installation) -> Iterator[subprocess.Popen[str]]:
    """A `show events --follow` that has begun."""
    here.records.ledger.note(fleet.entry("rang", ago=1))
    process = subprocess.Popen(
        [PROGRAM, "show", "events", "--follow", "--since", "1m", "-o", "json"],
        env={**os.environ, "BELLHOP_STATE": str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["what"] == "rang"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.clocked
def test_follows_what_comes_also_when_it_comes_late(
    following: subprocess.Popen[str], here: Installation
) -> None:
    assert following.stdout is not None
    here.records.ledger.note(fleet.entry("applied", at=here.records.clock.now()))
    first = json.loads(following.stdout.readline())
    late = here.records.clock.now() - timedelta(milliseconds=800)
    here.records.ledger.note(fleet.entry("matched", at=late))
    second = json.loads(following.stdout.readline())
    time.sleep(0.5)
    following.send_signal(signal.SIGINT)
    rest, said = following.communicate(timeout=10)

    assert (first["what"], second["what"], rest) == ("applied", "matched", "")
    assert (following.returncode, said.strip()) == (0, "")


@pytest.mark.clocked
def test_follows_closely(following: subprocess.Popen[str], here: Installation) -> None:
    assert following.stdout is not None
    here.records.ledger.note(fleet.entry("applied", at=here.records.clock.now()))
    began = time.monotonic()
    following.stdout.readline()

    assert time.monotonic() - began < 2.0


# Failures --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("served")
def test_reports_all_that_is_wrong(bellhop: Bellhop, here: Installation) -> None:
    """Every place where a failure may stand is looked at, and each is one sentence."""
    fleet.populate(here)
    here.records.health.put("default/workload", Health("Down", message="no answer"))
    for walk in ("first", "second"):
        here.records.strikes.add("default/workload", fleet.SERVICE.gvk, walk)
    here.declare.delete([("EventSource", "", "sveltos-service")])
    failed = Match(
        "default/workload",
        "sveltos-service",
        fleet.SERVICE,
        matching=True,
        digest="",
        since=fleet.now(),
        error="attempt to index a nil value",
    )
    here.records.matches.put(failed)
    here.records.profiles.put(fleet.profile(error="template: oops"))
    here.records.outcomes.put(fleet.outcome(phase="Failed", message="denied", failures=3))
    bury(here, "the queue's reason")
    rows = json.loads(bellhop("show", "failures", "-o", "json").stdout)

    assert {(row["what"], row["sentence"]) for row in rows} == {
        ("cluster", "it is down: no answer"),
        ("trigger", "there is no EventSource 'sveltos-service', which it names"),
        ("evaluation", "attempt to index a nil value"),
        ("trigger", "template: oops"),
        ("deployment", "denied (failed 3 times)"),
        ("dead letter", "dead-lettered after 12 attempts: the queue's reason"),
    }


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ("Failed", "denied; next try at 09:30:00 UTC"),
        (
            "FailedNonRetriable",
            "denied; it is tried when an input changes, and checked again at 09:30:00 UTC",
        ),
    ],
)
def test_says_when_a_failed_profile_is_tried_again(
    bellhop: Bellhop, here: Installation, phase: Phase, said: str
) -> None:
    """FailedNonRetriable has no next try, only a check in case an input has changed."""
    fleet.populate(here)
    at = fleet.now().replace(hour=9, minute=30, second=0)
    here.records.outcomes.put(fleet.outcome(phase=phase, message="denied", retry_at=at))
    rows = json.loads(bellhop("show", "failures", "-o", "json").stdout)

    assert [row["sentence"] for row in rows if row["what"] == "deployment"] == [said]
    assert said in " ".join(bellhop("describe", "cp", fleet.PROFILE).stdout.split())


def test_reports_a_source_whose_script_takes_long(bellhop: Bellhop, here: Installation) -> None:
    """As long as it is written as it was, and wherever somebody would look for it."""
    fleet.populate(here)
    catalog = here.catalogs.current()
    here.records.paces.slow("sveltos-service", catalog.digest("sveltos-service"), 3)
    here.records.paces.slow("gone", "d", 3)
    said = "its script took more than 0.05 s 3 times in a row"
    rows = json.loads(bellhop("show", "failures", "-o", "json").stdout)
    output = " ".join(bellhop("describe", "eventsource", "sveltos-service").stdout.split())

    [row] = [row for row in rows if row["what"] == "script"]
    assert row["which"] == "sveltos-service"
    assert said in row["sentence"]
    assert said in output
    here.records.paces.slow("sveltos-service", "as it is written now", 3)
    assert "took more than" not in bellhop("show", "failures").stdout


def test_reports_deletions_that_are_held(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)
    for walk in ("first", "second"):
        here.records.strikes.add("default/workload", fleet.SERVICE.gvk, walk)
    output = bellhop("show", "failures").stdout

    assert "Service in default/workload" in output
    assert "held until 3 resyncs agree (2 did)" in output


# Dead letters ----------------------------------------------------------------------------------


def bury(here: Installation, reason: str) -> str:
    """Dead-letter a message; return its name."""
    here.dead["evaluate"].publish([Message({"object": "x"}, "group-1")])
    for _ in range(here.settings.attempts):
        (delivery,) = here.dead["evaluate"].receive(1, wait=timedelta(seconds=5))
        here.dead["evaluate"].settle(delivery, Again(NOTHING, reason))
    return f"evaluate/{here.dead['evaluate'].list()[0].id}"


def test_lists_and_replays_dead_letters(bellhop: Bellhop, here: Installation) -> None:
    """A dead letter is listed with its reason, and back in its queue once replayed."""
    name = bury(here, "no way")
    listed = bellhop("dead-letters", "list", "-o", "wide").stdout
    result = bellhop("dead-letters", "replay", name)

    assert name in listed
    assert "no way" in listed
    assert '{"object": "x"}' in listed
    assert result.stdout == f"dead-letter/{name} replayed\n"
    assert len(here.dead["evaluate"].receive(1, wait=timedelta(seconds=5))) == 1


def test_drops_dead_letters(bellhop: Bellhop, here: Installation) -> None:
    name = bury(here, "no way")
    result = bellhop("dead-letters", "drop", name)

    assert result.stdout == f"dead-letter/{name} dropped\n"
    assert list(here.dead["evaluate"].list()) == []
    assert list(here.dead["evaluate"].receive(1, wait=NOTHING)) == []


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("replay",), 2, "either INBOX/ID, or --all", id="nothing named"),
        pytest.param(("replay", "12"), 2, "write INBOX/ID, as the list has it", id="no stage"),
        pytest.param(("drop", "x/12"), 1, "evaluate, review, patient, deploy", id="inbox"),
    ],
)
def test_says_which_dead_letter_it_cannot_find(
    bellhop: Bellhop, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """A wrong name is no letter."""
    result = bellhop("dead-letters", *arguments)

    assert (result.exit_code, said in result.stderr) == (code, True)


# Resyncs, labels, serve --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "bodies"),
    [
        pytest.param((), ["a/one", "b/two"], id="all"),
        pytest.param(("b/two",), ["b/two"], id="one"),
    ],
)
def test_asks_for_resyncs(
    bellhop: Bellhop, here: Installation, arguments: tuple[str, ...], bodies: list[str]
) -> None:
    here.declare.register(fleet.cluster("a", "one"))
    here.declare.register(fleet.cluster("b", "two"))
    drain(here)
    result = bellhop("resync", *arguments, "--full")

    assert result.exit_code == 0
    assert "does not answer" in result.stderr
    assert sorted(message["cluster"] for message in drain(here)) == bodies


def drain(here: Installation) -> list[dict[str, object]]:
    """Take all messages of the queue for resyncs."""
    found = []
    while deliveries := here.dead["sweep"].receive(10, wait=NOTHING):
        for delivery in deliveries:
            found.append(dict(delivery.message.body))
            here.dead["sweep"].settle(delivery, Done())
    return found


def test_labels_a_cluster(bellhop: Bellhop, here: Installation) -> None:
    here.declare.register(fleet.cluster(env="fv", old="yes"))
    drain(here)
    result = bellhop(
        "label", "cluster", "default/workload", "env=prod", "old-", "a.b/c=d", "--overwrite"
    )

    found = require_value(here.records.clusters.get("default/workload"))
    assert found.labels == {"env": "prod", "a.b/c": "d"}
    assert result.stdout == "cluster/default/workload labelled a.b/c=d,env=prod\n"
    assert drain(here) == []


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param("env", "write key=value, or key- to remove it", id="neither"),
        pytest.param("a/b/c=d", "what stands before '/' must be a DNS name", id="key"),
        pytest.param("env=a b", "is not a label's value", id="value"),
    ],
)
def test_refuses_labels_that_are_none(bellhop: Bellhop, change: str, said: str) -> None:
    """A label that Kubernetes would refuse is refused here."""
    result = bellhop("label", "cluster", "a/b", change)

    assert (result.exit_code, said in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("--listen", "8443"), "write HOST:PORT", id="no host"),
        pytest.param(("--listen", "a:b"), "write HOST:PORT", id="no port"),
        pytest.param(("--listen", "a:99999"), "write HOST:PORT", id="no such port"),
        pytest.param(("--listen", "0.0.0.0:1"), "without --advertise", id="everywhere"),
        pytest.param(("--listen", "[::]:1"), "without --advertise", id="everywhere in IPv6"),
        pytest.param(("--advertise", "http://a"), "advertise https://HOST:PORT, not", id="http"),
        pytest.param(("--metrics", "9464"), "as in 127.0.0.1:9464", id="no host for metrics"),
        pytest.param(("--metrics", ":9464"), "name the address", id="metrics everywhere"),
    ],
)
def test_refuses_to_serve_where_nobody_could_send(
    bellhop: Bellhop, arguments: tuple[str, ...], said: str
) -> None:
    """An address that clusters cannot use, or that shows metrics to all, is refused at once."""
    result = bellhop("serve", *arguments)

    assert (result.exit_code, said in result.stderr) == (2, True)


def test_failures_name_senders_that_are_refused(bellhop: Bellhop, here: Installation) -> None:
    """A state restored from before a registration: the cluster's own forwarder is refused."""
    fleet.populate(here)
    at = fleet.now()
    here.records.refusals.put("default/workload", Refusals(2, at, at))
    before = bellhop("show", "failures").stdout + bellhop("get", "clusters", "-o", "wide").stdout
    here.records.refusals.put("default/workload", Refusals(40, at, at))
    failures = " ".join(bellhop("show", "failures").stdout.split())
    clusters = bellhop("get", "clusters", "-o", "yaml").stdout

    assert "refused" not in before
    assert "register the cluster again" in failures
    assert "40 requests in its name were refused since" in failures
    assert "40 requests in its name were refused since" in " ".join(clusters.split())


def test_failures_name_what_troubles_a_healthy_cluster(
    bellhop: Bellhop, here: Installation
) -> None:
    """It answers, and yet something is wrong: a clock, a kind that may not be listed."""
    fleet.populate(here)
    health = here.records.health.get("default/workload").value
    here.records.health.put(
        "default/workload", replace(health, state="Healthy", message="its clock is off")
    )

    assert "its clock is off" in bellhop("show", "failures").stdout


def test_what_a_cluster_holds_of_charts_is_described(bellhop: Bellhop, here: Installation) -> None:
    """Each release with its chart, each object of one with its release."""
    fleet.populate(here)
    fleet.chart(here)
    cluster = bellhop("describe", "cluster", "default/workload").stdout
    profile = bellhop("describe", "clusterprofile", fleet.PROFILE).stdout

    for output in (cluster, profile):
        assert "chart web 1.0.0 of https://charts.example.com/stable" in output
        assert "part of release apps/web" in output
        assert "hush" not in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--metrics", "127.0.0.1:0", "--metrics-labels", "cluster,object"),
            "cannot serve metrics with the label 'object': use cluster, profile or promotion",
        ),
        (
            ("--metrics-labels", "cluster"),
            "cannot use --metrics-labels without an address: add --metrics",
        ),
    ],
)
def test_labels_of_metrics_are_checked(
    bellhop: Bellhop, arguments: tuple[str, ...], said: str
) -> None:
    """A name that is not bounded is refused, and so are labels of nothing."""
    result = bellhop("serve", "--listen", "127.0.0.1:0", *arguments)

    assert (result.exit_code, said in result.stderr) == (2, True)
