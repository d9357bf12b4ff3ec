"""Status of a SveltosCluster: what its records say of it, in Sveltos' fields."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from bellhop.configuration.cluster_status import describe_state, make_cluster_status
from bellhop.configuration.conditions import retry, stall
from bellhop.configuration.objects import SveltosClusterStatus
from bellhop.configuration.status import make_status
from bellhop.installation import Installation
from bellhop.state.cluster import Cluster, Health

NOW = datetime(2026, 5, 6, 12, tzinfo=UTC)  # A Wednesday.
CLUSTER = Cluster("prod", "eu-1", {}, "v1.36.0", "", NOW)


def test_a_healthy_cluster_is_ready() -> None:
    """Its version is that of its API server."""
    found = make_cluster_status(CLUSTER, Health("Healthy"), NOW)

    assert found == SveltosClusterStatus(version="v1.36.0", ready=True, connection_status="Healthy")


def test_a_cluster_that_was_never_reached_is_not_ready() -> None:
    """Before the first call there is no connection to speak of."""
    new = replace(CLUSTER, kubernetes="")

    assert make_cluster_status(new, Health(), NOW) == SveltosClusterStatus()
    down = Health("Down", "the connection is refused", failures=2)
    assert make_cluster_status(new, down, NOW) == SveltosClusterStatus(
        connection_status="Down",
        connection_failures=2,
        failure_message="the connection is refused",
    )


def test_a_cluster_that_is_down_stays_ready() -> None:
    """Refused credentials count as well; a silent forwarder does not."""
    refused = make_cluster_status(CLUSTER, Health("Unauthorized", "the token ended"), NOW)
    silent = make_cluster_status(CLUSTER, Health("Silent", "no heartbeat"), NOW)

    assert (refused.ready, refused.connection_status) == (True, "Down")
    assert refused.failure_message == "the token ended"
    assert (silent.connection_status, silent.failure_message) == ("Healthy", "")


def test_a_refused_object_says_why() -> None:
    """The registered cluster goes on as it was."""
    alone = make_cluster_status(None, Health(), NOW, "pullMode is not supported")
    before = make_cluster_status(CLUSTER, Health("Healthy"), NOW, "pullMode is not supported")

    assert alone == SveltosClusterStatus(failure_message="pullMode is not supported")
    assert (before.ready, before.failure_message) == (True, "pullMode is not supported")


def test_a_window_has_its_next_times() -> None:
    """It opens on Fridays at eight in the evening, and closes on Mondays at seven."""
    window = {"from": "0 20 * * 5", "to": "0 7 * * 1"}
    cluster = replace(CLUSTER, spec={"activeWindow": window})

    closed = make_cluster_status(cluster, Health("Healthy"), NOW)
    friday = datetime(2026, 5, 8, 21, tzinfo=UTC)
    opened = make_cluster_status(cluster, Health("Healthy"), friday)

    monday = datetime(2026, 5, 11, 7, tzinfo=UTC)
    assert closed.next_unpause == datetime(2026, 5, 8, 20, tzinfo=UTC)
    assert (closed.next_pause, opened.next_pause) == (monday, monday)
    assert opened.next_unpause == datetime(2026, 5, 15, 20, tzinfo=UTC)


def test_conditions_say_whether_the_api_server_answers() -> None:
    """A pause is no failure."""
    down = Health("Down", "the connection is refused", since=NOW)
    assert describe_state(CLUSTER, down, NOW) == retry("Down", down.message, NOW)
    assert describe_state(replace(CLUSTER, kubernetes=""), Health(), NOW).ready == "Unknown"
    paused = describe_state(replace(CLUSTER, spec={"paused": True}), Health("Healthy"), NOW)
    assert (paused.ready, "is paused" in paused.message) == ("True", True)


def test_a_status_is_read_from_the_records(here: Installation) -> None:
    """One that is neither registered nor refused has none."""
    refusal = stall("Invalid", "pullMode is not supported")

    assert make_status(here, "SveltosCluster", "prod", "eu-1") is None
    refused = make_status(here, "SveltosCluster", "prod", "eu-1", refusal=refusal)
    here.declare.register(CLUSTER)
    found = make_status(here, "SveltosCluster", "prod", "eu-1", generation=3)

    assert refused is not None
    assert refused["failureMessage"] == "pullMode is not supported"
    assert found is not None
    assert (found["version"], found["ready"], found["observedGeneration"]) == ("v1.36.0", True, 3)
