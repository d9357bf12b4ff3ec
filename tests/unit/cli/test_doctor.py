"""`bellhop doctor` on clusters that are dead, slow or missing: bounded, and reported."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.diagnosis.calls import find_unanswered_here
from bellhop.installation import Installation, Ticking
from bellhop.runtime.embedded.state import Embedded, open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Health, Heartbeat
from bellhop.state.ingest_policy import Refusals, Sender
from tests.fakes.kept import require_value
from tests.fakes.silent import Silent, enrol
from tests.lab.http_server import HttpServer, Request, Response
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

CLUSTER = "default/workload"
DEAD, SLOW = "prod/dead-", "prod/slow-"


@pytest.fixture
def opened(state: Path) -> Iterator[Embedded]:
    """The installation, opened to register clusters that do not answer."""
    one = open_state(state, Settings())
    yield one
    one.close()


@pytest.fixture
def slow() -> Iterator[Silent]:
    """An API server that accepts connections and never answers."""
    one = Silent(tls=True)
    yield one
    one.close()


@pytest.fixture
def dead() -> Iterator[Silent]:
    """An API server whose port nobody else can get once it refuses."""
    one = Silent(tls=True)
    yield one
    one.close()


def rows(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)
    return found


@pytest.mark.rest
@pytest.mark.usefixtures("served")
def test_examines_many_at_once_however_slow(
    bellhop: Bellhop, opened: Embedded, slow: Silent, dead: Silent
) -> None:
    for number in range(40):
        enrol(opened, f"{SLOW}{number:02}", slow, {})
        enrol(opened, f"{DEAD}{number:02}", dead, {})
    dead.refuse()
    begun = time.monotonic()
    result = bellhop("doctor", "-o", "json")
    took = time.monotonic() - begun
    wrong = [row for row in rows(result.stdout) if row["verdict"] == "wrong" and row["cluster"]]

    assert result.exit_code == 1
    assert [(row["cluster"], row["piece"]) for row in wrong] == [
        (f"{kind}{number:02}", "API server") for kind in (DEAD, SLOW) for number in range(40)
    ]
    assert all("see whether" in row["cure"] for row in wrong)
    assert took < 30


@pytest.mark.clocked
@pytest.mark.usefixtures("served")
def test_failures_name_the_silent_without_waiting_long(
    bellhop: Bellhop, opened: Embedded, slow: Silent
) -> None:
    """It takes seconds: each call of a silent cluster lasts until its deadline."""
    for number in range(20):
        enrol(opened, f"{SLOW}{number:02}", slow, {})
    begun = time.monotonic()
    failures = rows(bellhop("show", "failures", "-o", "json").stdout)
    took = time.monotonic() - begun

    assert [row["which"] for row in failures] == [f"{SLOW}{number:02}" for number in range(20)]
    assert all(row["sentence"].startswith("it is down: ") for row in failures)
    assert took < 10


def test_says_what_is_wrong_at_home(bellhop: Bellhop, here: Installation) -> None:
    """Without a cluster, and without a process that serves."""
    assert here.vitals is None
    result = bellhop("doctor")

    assert result.exit_code == 1
    assert "`bellhop serve` does not run" in result.stdout
    assert "-> start it" in result.stdout
    assert "No cluster is registered." in result.stderr


@pytest.mark.usefixtures("served")
def test_reports_a_cluster_without_credentials(bellhop: Bellhop, here: Installation) -> None:
    """Its kubeconfig is lost: the cure is to register it again."""
    fleet.populate(here)
    result = bellhop("doctor", "default/workload")

    assert result.exit_code == 1
    assert "cluster 'default/workload' has no stored credentials" in result.stdout
    assert "-> register the cluster again" in result.stdout


class Greeter(HttpServer):
    """An API server that answers with its version, and nothing else."""

    def respond(self, request: Request) -> Response:
        """Answer one request."""
        if request.target.startswith("/version"):
            return Response.of(200, {"gitVersion": "v1.34.0"})
        return Response.of(404, {"kind": "Status", "code": 404, "reason": "NotFound"})


def log_in(here: Installation, server: str, ends: float) -> None:
    """Register the cluster with a token that ends at a time, in seconds since 1970."""
    claims = json.dumps({"exp": int(ends)}).encode()
    token = f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.c2ln"
    kubeconfig = Kubeconfig(server, token=token)
    here.secrets.put(f"kubeconfig/{CLUSTER}", json.dumps(kubeconfig.to_dict()).encode())
    kept = require_value(here.records.clusters.get(CLUSTER))
    here.declare.register(replace(kept, credentials=kubeconfig.version))


@pytest.mark.usefixtures("served")
def test_says_days_before_that_credentials_end(bellhop: Bellhop, here: Installation) -> None:
    """With the command that gives it others; of what lasts longer than a week nothing is said."""
    fleet.populate(here)
    ends = fleet.now() + timedelta(days=3)
    with Greeter() as server:
        log_in(here, server.address, (ends + timedelta(days=6)).timestamp())
        assert ("API server", "well") in found(bellhop)
        assert ("credentials", "wrong") not in found(bellhop)

        log_in(here, server.address, ends.timestamp())
        said = found(bellhop)["credentials", "wrong"]
    assert said["sentence"] == (
        f"the stored credentials end at {ends:%Y-%m-%d %H:%M} UTC; from then on nothing is"
        " applied there, and resyncs fail"
    )
    assert said["cure"] == f"`bellhop register cluster {CLUSTER} --kubeconfig FILE`"


@pytest.mark.usefixtures("served")
def test_says_what_to_do_where_the_authority_has_changed(
    bellhop: Bellhop, opened: Embedded, slow: Silent
) -> None:
    """A cluster whose certificate another authority signs than the stored kubeconfig knows."""
    enrol(opened, CLUSTER, slow, {})
    slow.renew_authority()
    said = found(bellhop)["certificate", "wrong"]

    assert "not signed by the certificate authority of the stored kubeconfig" in said["sentence"]
    assert said["cure"] == (
        "if its certificate authority has changed, `bellhop register cluster"
        f" {CLUSTER} --kubeconfig FILE`"
    )


def found(bellhop: Bellhop) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what was found of the cluster, by piece and verdict."""
    each = rows(bellhop("doctor", CLUSTER, "-o", "json").stdout)
    return {(row["piece"], row["verdict"]): row for row in each if row["cluster"]}


@pytest.mark.usefixtures("served")
def test_reports_a_nats_that_is_silent(bellhop: Bellhop, here: Installation) -> None:
    """Here and in `status`, with what the forwarder said; no more once it says something else."""
    fleet.populate(here)
    kept = require_value(here.records.clusters.get(CLUSTER))
    here.declare.register(replace(kept, forwarder={"url": "", "path": "/ring/x"}))
    said = Heartbeat(
        fleet.now(), version="0.1.0", messaging="cannot subscribe to NATS at 'nats:4222'"
    )
    here.records.hearings.put(CLUSTER, said)
    sentence = "its forwarder hears no CloudEvents of its NATS: cannot subscribe to NATS at 'nats"
    output = bellhop("doctor", CLUSTER).stdout
    assert f"FAIL  NATS         {sentence}" in output
    assert "-> see what the Secret 'projectsveltos/sveltos-nats' says" in output
    assert f"messaging {CLUSTER}: {sentence}" in bellhop("status").stdout

    here.records.hearings.put(CLUSTER, replace(said, messaging=""))
    assert "NATS" not in bellhop("doctor", CLUSTER).stdout + bellhop("status").stdout
    # Who has been silent since says nothing about now.
    here.records.hearings.put(CLUSTER, replace(said, at=fleet.now() - timedelta(hours=1)))
    assert "of its NATS" not in bellhop("doctor", CLUSTER).stdout


@pytest.mark.usefixtures("served")
def test_reports_who_is_refused_of_those_outside(bellhop: Bellhop, here: Installation) -> None:
    """A sender that shows another secret, and whether its former one has ended meanwhile."""
    fleet.populate(here)
    ended = fleet.now() - timedelta(hours=2)
    here.records.senders.put(Sender(CLUSTER, "ci", fleet.now(), proof="digest"))
    old = Sender(CLUSTER, "store", fleet.now(), proof="new", former="old", former_until=ended)
    here.records.senders.put(old)
    assert "OK    senders      ci, store: nothing was refused lately" in examine(bellhop)

    share = f"{CLUSTER}/senders/store"
    here.records.refusals.put(share, Refusals(1, ended, fleet.now()))
    assert "FAIL  senders" not in examine(bellhop)
    here.records.refusals.put(share, Refusals(7, ended, fleet.now()))
    assert (
        f"FAIL  senders      'store' from outside was refused 7 times since"
        f" {ended:%Y-%m-%d %H:%M} UTC; its former secret ended at {ended:%Y-%m-%d %H:%M} UTC"
    ) in examine(bellhop)
    assert f"draw a new one: `bellhop sender rotate {CLUSTER} store`" in examine(bellhop)
    ongoing = replace(old, former_until=fleet.now() + timedelta(days=1))
    here.records.senders.put(ongoing)
    assert "its former secret ended" not in examine(bellhop)


def examine(bellhop: Bellhop) -> str:
    return bellhop("doctor", CLUSTER).stdout


def test_clusters_of_functions_are_not_called_from_here(opened: Embedded, slow: Silent) -> None:
    """Functions may reach what this machine does not: that it hangs from here says nothing."""
    enrol(opened, "prod/slow", slow, {})
    here = opened.installation

    assert find_unanswered_here(replace(here, vitals=Ticking("lab")), ["prod/slow"]) == {}
    assert "prod/slow" in find_unanswered_here(here, ["prod/slow"])


@pytest.mark.usefixtures("served")
def test_a_cluster_that_hangs_is_down_wherever_clusters_are_shown(
    bellhop: Bellhop, opened: Embedded, slow: Silent
) -> None:
    """The last resync found it healthy minutes ago; it takes connections, and answers none."""
    enrol(opened, "prod/slow", slow, {})
    swept_at = fleet.now() - timedelta(minutes=3)
    opened.installation.records.health.put("prod/slow", Health("Healthy", swept_at=swept_at))
    shown = bellhop("get", "clusters").stdout
    [cluster] = json.loads(bellhop("get", "clusters", "-o", "json").stdout)["items"]

    assert " Down " in shown
    assert cluster["status"]["connectionStatus"] == "Down"
    assert "does not answer" in cluster["status"]["failureMessage"]
    assert "Down" in bellhop("describe", "cluster", "prod/slow").stdout
