"""Service accounts whose permissions count: missing ones, and clusters that cannot answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from bellhop.installation import Installation
from bellhop.registration.permissions import check_impersonation
from bellhop.state.cluster import Cluster
from bellhop.state.match import AccessReview, Observation
from tests.fakes.clock import START
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import holder, join, source, trigger
from tests.unit.cli.conftest import Bellhop

SERVICE = GVK("", "v1", "Service")
ANN = "team/ann"
LABELS = f"labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}"
RULES = join(
    source().replace("metadata: {", f"metadata: {{{LABELS}, "),
    trigger().replace("metadata: {", f"metadata: {{{LABELS}, "),
    holder("made"),
)
OBJECT = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: a}\n"
CLUSTER = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: SveltosCluster
metadata: {name: east, namespace: fleet, labels: {env: production}}
"""
UNSAID = "whether service account 'team/ann' may see these objects"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


@pytest.fixture
def east(bellhop: Bellhop, here: Installation, rules: Path) -> Installation:
    """A cluster in which a source is in force that reads as the account."""
    labels = {"env": "production"}
    here.declare.register(Cluster("fleet", "east", labels, "v1.34.2", "token", START))
    assert bellhop("apply", "-f", str(rules)).exit_code == 0
    return here


def say(here: Installation, namespace: str, *, allowed: bool = False, error: str = "") -> None:
    """Note what the cluster has said of the account."""
    now = here.records.clock.now()
    at = None if error else now
    permit = AccessReview("fleet/east", ANN, SERVICE, namespace, allowed, at, error=error)
    here.records.permits.put(permit)


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_missing_right_is_reported_once(bellhop: Bellhop, east: Installation) -> None:
    """By failures and by the source, with all the namespaces that it is about."""
    for namespace in ("", "a", "b", "c", "d"):
        say(east, namespace)
    sentence = (
        "service account 'team/ann' may not get and list Service objects in namespaces 'a', 'b',"
        " 'c' and 1 more, so that none of them matches; bind a role to it that lets it do both"
    )
    for command in ("show failures", "describe eventsource watched"):
        assert words(bellhop(*command.split()).stdout).count(sentence) == 1

    say(east, "", allowed=True)
    for command in ("show failures", "describe eventsource watched"):
        assert "may not get and list" not in words(bellhop(*command.split()).stdout)


def test_a_cluster_that_gives_no_answer_is_reported(bellhop: Bellhop, east: Installation) -> None:
    """With what it said instead."""
    say(east, "", error="it is forbidden")

    said = words(bellhop("show", "failures").stdout)
    sentence = "cannot find out which Service objects service account 'team/ann' may see: it is"
    assert sentence in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"": False, "a": False}, "may not get and list Service objects", id="denied"),
        pytest.param({"": False}, "its cluster has not said yet whether", id="not asked"),
        pytest.param({"": False, "a": True}, "", id="allowed here"),
        pytest.param({"": True}, "", id="allowed everywhere"),
    ],
)
def test_explain_says_why_an_object_is_not_seen(
    bellhop: Bellhop, east: Installation, given: dict[str, bool], said: str
) -> None:
    """The source itself would take it."""
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    key = ObjectKey(SERVICE, "a", "web")
    seen = Observation("fleet/east", key, "uid", 7, manifest, east.records.clock.now())
    east.records.observations.put(seen)
    for namespace, allowed in given.items():
        say(east, namespace, allowed=allowed)

    output = words(bellhop("explain", "fleet/east", "service", "a/web").stdout)
    assert said in output
    assert ("service account" in output) == bool(said)


def test_offline_it_is_said_what_nobody_can_know(bellhop: Bellhop, rules: Path) -> None:
    """`evaluate` and `render` ask no cluster."""
    objects = rules.parent / "web.yaml"
    objects.write_text(OBJECT)

    evaluated = bellhop("evaluate", str(rules), "--object", str(objects))
    assert UNSAID in words(evaluated.stderr)
    cluster = rules.parent / "cluster.yaml"
    cluster.write_text(CLUSTER)
    given = ("-f", str(rules), "--object", str(objects), "--cluster", str(cluster))
    assert words(bellhop("render", *given).stderr).count(UNSAID) == 1


def test_the_right_to_act_for_accounts_is_looked_for_where_they_are() -> None:
    """Once for each of their namespaces."""
    kube = FakeKube()
    assert check_impersonation(kube, [ANN, "team/bob", "other/ann"]) == []

    acting = kube.acting_as("bellhop/itself")
    kube.rbac.grant("bellhop/itself", "ServiceAccount", "team", "impersonate")
    assert check_impersonation(acting, [ANN, "other/ann"]) == [
        "may not impersonate serviceaccounts in namespace 'other'"
    ]
