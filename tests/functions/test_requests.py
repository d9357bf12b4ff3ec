"""What the page says that events ask for is what they ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infra.lab.cluster import Cluster
from infra.lab.moto import Moto
from tests.benchmarks.figures_costs import COUNTS, PAGE, Count, counted, fill, tables
from tests.benchmarks.requests import measure

COLD = "the same, all functions cold"
KEPT = ("an event, 1 destination", COLD, "a sweep", "a tick")


def test_the_page_has_the_tables_of_what_was_counted() -> None:
    """Counts, prices and tables are changed together: `python -m tests.benchmarks.requests`."""
    page = PAGE.read_text()

    assert page == fill(page, tables(counted())), f"{PAGE.name} is not what {COUNTS.name} says"


@pytest.mark.timed
def test_what_was_counted_is_what_is_asked_for(moto: Moto, source_cluster: Cluster) -> None:
    """Whoever makes events dearer, or cheaper, counts again."""
    now, then = measure(moto, source_cluster.kubeconfig(), 1), counted()

    for name in KEPT:
        # A cold function reads all clusters, of which there are fewer here.
        reads = then[name].reads if name == COLD else now[name].reads
        assert _told(replace(now[name], reads=reads)) == pytest.approx(
            _told(then[name]), rel=0.1, abs=2
        ), name


def _told(count: Count) -> dict[str, float]:
    services = ("dynamodb", "sqs", "secretsmanager", "s3")
    asked = {service: count.by(service) for service in services}
    return {
        **asked,
        "units read": count.reads,
        "units written": count.writes,
        "invocations": count.invocations,
    }


def test_an_event_costs_the_same_whatever_else_there_is() -> None:
    """Beside its destinations, of which each costs what the one before did."""
    one, ten, hundred = (
        counted()[f"an event, {many} destination{'s' * (many > 1)}"] for many in (1, 10, 100)
    )

    for by in (lambda each: each.reads, lambda each: each.writes):
        first, later = (by(ten) - by(one)) / 9, (by(hundred) - by(ten)) / 90
        assert later == pytest.approx(first, rel=0.1)
