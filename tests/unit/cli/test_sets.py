"""get, describe and explain of ClusterSets: who is chosen, who could be, and who names them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from bellhop.installation.installation import Installation
from bellhop.state.record import Cluster
from tests.fakes.clock import START
from tests.fakes.manifests import holder, join, profile, source, trigger

Bellhop = Callable[..., Result]

SETS = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterSet
metadata: {name: active}
spec: {clusterSelector: env=production, maxReplicas: 1}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterSet
metadata: {name: named}
spec: {clusterRefs: [{namespace: fleet, name: west}]}
"""


@pytest.fixture
def two(bellhop: Bellhop, here: Installation, tmp_path: Path) -> Installation:
    """Two clusters, two sets, and a trigger and a profile that name one of them."""
    for name in ("east", "west"):
        labels = {"env": "production"}
        here.declare.register(Cluster("fleet", name, labels, "v1.34.2", name, START))
    watching = trigger(more="").replace(
        "sourceClusterSelector: {matchLabels: {env: production}}", "clusterSetRefs: [active]"
    )
    rules = join(SETS, source(), watching, profile("setRefs: [active]"), holder("own"))
    file = tmp_path / "sets.yaml"
    file.write_text(rules)
    assert bellhop("apply", "-f", str(file)).exit_code == 0
    return here


def test_get_shows_who_has_a_place(bellhop: Bellhop, two: Installation) -> None:
    """As a table, and as the status that Sveltos writes; that can be applied again."""
    assert two.catalogs.current().sets
    assert bellhop("get", "clustersets", "-o", "wide").stdout.splitlines() == [
        "NAME     SELECTS          MATCHING   SELECTED   MAX   FAILING   CLUSTERS",
        "active   env=production   2          1          1     0         fleet/east",
        "named    fleet/west       1          1          -     0         fleet/west",
    ]

    shown = bellhop("get", "cs", "active", "-o", "yaml").stdout
    status = yaml.safe_load(shown)["status"]
    assert [each["name"] for each in status["selectedClusterRefs"]] == ["east"]
    assert [each["name"] for each in status["matchingClusterRefs"]] == ["east", "west"]
    assert "unchanged" in bellhop("apply", "-f", "-", stdin=shown).stdout


def test_describe_shows_who_could_have_it_and_who_names_it(
    bellhop: Bellhop, two: Installation
) -> None:
    """The one that is chosen comes first."""
    assert two.catalogs.current().sets
    told = bellhop("describe", "clusterset", "active").stdout
    lines = [" ".join(line.split()) for line in told.splitlines()]

    assert "fleet/east selected Unknown" in lines
    assert "fleet/west Unknown" in lines
    assert "EventTrigger made" in told
    assert "ClusterProfile own" in told
    assert "ClusterSet active" in bellhop("describe", "eventtrigger", "made").stdout


def test_explain_says_who_has_the_place(bellhop: Bellhop, two: Installation) -> None:
    """Of a cluster that could be chosen, and of one that the set does not select."""
    two.declare.register(Cluster("fleet", "other", {}, "v1.34.2", "other", START))
    told = " ".join(bellhop("explain", "eventtrigger", "made").stdout.split())

    assert "its clusterSetRefs take it" in told
    assert "ClusterSet 'active' has other clusters, as many as its maxReplicas says" in told
    assert "its clusterSetRefs name 'active', of which none selects the cluster" in told


def test_a_set_that_goes_is_missed(bellhop: Bellhop, two: Installation) -> None:
    """`show failures` names it with each who names it."""
    assert two.catalogs.current().sets
    assert "there is no ClusterSet" not in bellhop("show", "failures").stdout
    assert bellhop("delete", "clusterset", "active").exit_code == 0

    told = " ".join(bellhop("show", "failures").stdout.split())

    assert told.count("there is no ClusterSet 'active', which it names") == 2
