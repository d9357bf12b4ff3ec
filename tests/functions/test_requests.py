"""What the page says that events ask for is what they ask for, in each cloud."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from bellhop.state.messages import INBOXES
from infra.lab.cluster import Cluster
from tests.benchmarks.clouds.aws_play import AwsPlay
from tests.benchmarks.clouds.bill import (
    CONFIGURATION_CHANGE,
    COUNTS,
    PAGE,
    PROMOTION_RELEASE,
    Count,
    counted,
    fill,
    tables,
)
from tests.benchmarks.clouds.gcp_play import GooglePlay, carried
from tests.benchmarks.clouds.module import AWS, GOOGLE, Module
from tests.benchmarks.clouds.play import Play, measure, measure_configuration, measure_promotion
from tests.benchmarks.requests import BILLS
from tests.lab.google_storage import Storage
from tests.lab.moto import Moto

COLD = "the same, all functions cold"
KEPT = (
    "an event, 1 destination",
    COLD,
    "a resync",
    "a tick",
    "an hour's house-keeping",
    "an object goes, 1 destination",
    CONFIGURATION_CHANGE,
)


@pytest.mark.parametrize("cloud", BILLS)
def test_the_page_has_the_tables_of_what_was_counted(cloud: str) -> None:
    """Counts, prices and tables are changed together: `python -m tests.benchmarks.requests`."""
    page = PAGE.read_text()

    made = tables(BILLS[cloud], counted()[cloud])
    assert page == fill(page, made), f"{PAGE.name} is not what {COUNTS.name} says"


@pytest.mark.parametrize(
    ("module", "queues"),
    [(AWS, len({*INBOXES.values()})), (GOOGLE, len(INBOXES))],
    ids=["aws", "gcp"],
)
def test_the_modules_are_read_as_they_are(module: Module, queues: int) -> None:
    """Queues and functions are priced by their number, which changes with the module."""
    assert module.queues == queues
    assert module.memory.keys() == {"ingest", "schedule", *INBOXES.values()}


def test_each_metric_of_an_alarm_is_counted() -> None:
    """AWS bills the metrics that an alarm reads: `terraform test` holds the same sum."""
    queues, functions = AWS.queues, len(AWS.memory)

    assert sum(AWS.alarms.values()) == 3 * queues + 2 * functions + 12


@pytest.mark.timeout(600)
def test_what_was_counted_is_what_is_asked_of_aws(moto: Moto, source_cluster: Cluster) -> None:
    """A change that makes events dearer, or cheaper, counts again.

    It takes long: each situation of the bill is played on moto and counted.
    """
    kubeconfig = source_cluster.kubeconfig()
    with closing(AwsPlay(moto, kubeconfig)) as play:
        _compare(play, "aws", source_cluster)


@pytest.mark.timeout(600)
def test_what_was_counted_is_what_is_asked_of_google(
    pubsub_place: str, storage: Storage, source_cluster: Cluster
) -> None:
    """The same by what Google counts."""
    kubeconfig = source_cluster.kubeconfig()
    with closing(GooglePlay(pubsub_place, storage, kubeconfig)) as play:
        _compare(play, "gcp", source_cluster)


@pytest.mark.timeout(600)
def test_a_release_of_a_promotion_asks_of_aws_what_was_counted(
    moto: Moto, source_cluster: Cluster
) -> None:
    """And one that waits for an approval has no timer, so that it asks nothing."""
    kubeconfig = source_cluster.kubeconfig()
    with closing(AwsPlay(moto, kubeconfig)) as play:
        _compare_release(play, "aws", source_cluster)


@pytest.mark.timeout(600)
def test_a_release_of_a_promotion_asks_of_google_what_was_counted(
    pubsub_place: str, storage: Storage, source_cluster: Cluster
) -> None:
    """The same by what Google counts."""
    kubeconfig = source_cluster.kubeconfig()
    with closing(GooglePlay(pubsub_place, storage, kubeconfig)) as play:
        _compare_release(play, "gcp", source_cluster)


def _compare_release(play: Play, cloud: str, cluster: Cluster) -> None:
    now = _comparable(measure_promotion(play, cluster.kubeconfig())[PROMOTION_RELEASE])

    assert now == pytest.approx(_comparable(counted()[cloud][PROMOTION_RELEASE]), rel=0.1, abs=2)


def _compare(play: Play, cloud: str, cluster: Cluster) -> None:
    kubeconfig = cluster.kubeconfig()
    now = measure(play, kubeconfig, 1) | measure_configuration(play, kubeconfig)
    then = counted()[cloud]

    for name in KEPT:
        units = {**now[name].units}
        if name in (COLD, "a resync"):
            # It reads all clusters, or all that matches: there is less of either here.
            units["read"] = then[name].units["read"]
        compared, expected = _comparable(replace(now[name], units=units)), _comparable(then[name])
        # On a slow machine a process may read a kubeconfig once more.
        none = dict.fromkeys(compared.keys() | expected.keys(), 0.0)
        # A status that was written within five seconds takes three requests of a queue more, and
        # reads its records once more.
        few, share = (6, 0.15) if name == CONFIGURATION_CHANGE else (2, 0.1)
        assert none | compared == pytest.approx(none | expected, rel=share, abs=few), name


def _comparable(count: Count) -> dict[str, float]:
    services = {name.partition(":")[0] for name in count.asked}
    asked = {service: count.by(service) for service in sorted(services)}
    # A document is as little as a kB of what Pub/Sub carries.
    units = {name: each / 1000 if name == "bytes" else each for name, each in count.units.items()}
    return {**asked, **units, "invocations": count.invocations}


@pytest.mark.parametrize("cloud", BILLS)
def test_an_event_costs_the_same_whatever_else_there_is(cloud: str) -> None:
    """Beside its destinations, of which each costs what the one before did.

    One read of eight depends on what the process that gets the message has cached.
    """
    one, ten, hundred = (
        counted()[cloud][f"an event, {many} destination{'s' * (many > 1)}"] for many in (1, 10, 100)
    )

    for unit in ("read", "written"):
        of_one, of_ten, of_hundred = (each.units[unit] for each in (one, ten, hundred))
        first, later = (of_ten - of_one) / 9, (of_hundred - of_ten) / 90
        assert later == pytest.approx(first, rel=0.15)


def test_what_pubsub_carries_is_a_kilobyte_a_request_at_least() -> None:
    """Publishing is one request, and each push is one."""
    small = {"data": b"x", "attributes": {"group": "g"}}
    large = {"data": b"x" * 5_000, "attributes": {}}

    assert carried([small]) == 1_000 + 1_000
    assert carried([small, small]) == 1_000 + 2_000
    assert carried([large, small]) == (5_040 + 47) + 5_040 + 1_000
