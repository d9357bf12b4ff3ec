"""-l and --all in place of a name, and values that are not replaced unasked."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from bellhop.core import sveltos_annotations
from bellhop.core.names import LARGEST_ANNOTATIONS
from bellhop.installation import Installation
from bellhop.ports.queue import Done
from tests.fakes.manifests import config, holder, join, profile, trigger
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

KEYS = ("default/a", "default/b", "other/c")


@pytest.fixture
def clusters(here: Installation) -> Installation:
    """Three clusters, of which two have a label."""
    for key, env in zip(KEYS, ("prod", "prod", "test"), strict=True):
        namespace, _, name = key.partition("/")
        here.declare.register(fleet.cluster(namespace=namespace, name=name, env=env))
    drain(here)
    return here


def drain(here: Installation) -> list[str]:
    """Return the clusters for which a resync waits, and take them out of the queue."""
    found = []
    while deliveries := here.dead["sweep"].receive(10, wait=timedelta(0)):
        for delivery in deliveries:
            found.append(str(delivery.message.body["cluster"]))
            here.dead["sweep"].settle(delivery, Done())
    return sorted(found)


def paused(here: Installation) -> list[str]:
    return sorted(each.key for each in here.records.clusters.all() if each.spec.get("paused"))


def test_pauses_and_resumes_selected_clusters(bellhop: Bellhop, clusters: Installation) -> None:
    """By labels or all of them, and each is named."""
    said = bellhop("pause", "clusters", "-l", "env=prod").stdout

    assert said == "Cluster 'default/a' paused.\nCluster 'default/b' paused.\n"
    assert paused(clusters) == ["default/a", "default/b"]
    assert bellhop("resume", "cluster", "--all").exit_code == 0
    assert paused(clusters) == []


def test_pauses_selected_profiles_and_triggers(bellhop: Bellhop, here: Installation) -> None:
    """All that users applied; a profile of a trigger is paused by its trigger."""
    text = join(profile(), profile(namespace="team"), trigger(), holder("own", config("x")))
    fleet.declare(here, text)

    assert bellhop("pause", "clusterprofiles", "--all").stdout == "ClusterProfile 'own' paused.\n"
    assert bellhop("pause", "profiles", "--all").stdout == "Profile 'team/own' paused.\n"
    assert bellhop("pause", "triggers", "--all").stdout == "EventTrigger 'made' paused.\n"
    kept = here.records.manifests.get("EventTrigger", "", "made")
    assert kept
    assert kept.value["metadata"]["annotations"] == {sveltos_annotations.TRIGGER_PAUSED: "true"}


def test_resyncs_selected_clusters(bellhop: Bellhop, clusters: Installation) -> None:
    assert "a resync of 2 clusters." in bellhop("resync", "-l", "env=prod").stdout
    assert drain(clusters) == ["default/a", "default/b"]

    bellhop("resync", "--all", "--namespace", "other")
    assert drain(clusters) == ["other/c"]


def test_checks_selected_clusters(bellhop: Bellhop, clusters: Installation) -> None:
    del clusters
    found = json.loads(bellhop("doctor", "-l", "env!=prod", "-o", "json").stdout)

    assert {each["cluster"] for each in found} == {"", "other/c"}


@pytest.mark.parametrize("words", [("clusters",), ("clusterprofiles",), ("triggers",)])
def test_redeploys_what_is_selected(
    bellhop: Bellhop, here: Installation, words: tuple[str, ...]
) -> None:
    """Of each kind; what is deployed nowhere is left out."""
    fleet.populate(here)
    here.declare.register(fleet.cluster(namespace="other", name="empty"))

    assert "Asked for 1 deployment." in bellhop("redeploy", *words, "--all").stdout


def test_deregisters_selected_clusters(bellhop: Bellhop, clusters: Installation) -> None:
    """The others stay."""
    said = bellhop("deregister", "cluster", "-l", "env=prod").stdout

    assert said.count("deregistered") == 2
    assert [each.key for each in clusters.records.clusters.all()] == ["other/c"]


def test_labels_and_annotates_selected_clusters(bellhop: Bellhop, clusters: Installation) -> None:
    """Each word is a change then."""
    labelled = bellhop("label", "cluster", "-l", "env=prod", "tier=gold").stdout
    annotated = bellhop("annotate", "cluster", "--all", "owner=red").stdout

    assert labelled.splitlines() == [
        f"cluster/{key} labelled env=prod,tier=gold" for key in KEYS[:2]
    ]
    assert len(annotated.splitlines()) == 3
    assert [each.labels.get("tier") for each in clusters.records.clusters.all()] == [
        "gold",
        "gold",
        None,
    ]


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (("label", "cluster", "default/a", "env=prodution"), "env"),
        (("label", "cluster", "default/a", "env=prodution", "--dry-run"), "env"),
        (("annotate", "cluster", "default/a", "owner=blue"), "owner"),
        (("annotate", "cluster", "default/a", "--data", "registry=us"), "registry"),
    ],
)
def test_a_value_is_replaced_only_if_that_is_asked_for(
    bellhop: Bellhop, clusters: Installation, arguments: tuple[str, ...], key: str
) -> None:
    """The same value is no change, and a key may always be removed."""
    clusters.declare.annotate("default/a", {"owner": "red"}, {"registry": "eu"})
    refused = bellhop(*arguments)

    assert refused.exit_code == 1
    assert f"default/a': '{key}' already has the value '" in refused.stderr
    assert "replace it with --overwrite" in refused.stderr
    assert bellhop(*arguments, "--overwrite").exit_code == 0
    assert bellhop("label", "cluster", "default/b", "env=prod").exit_code == 0
    assert bellhop("label", "cluster", "default/b", "env-").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("resync", "-l", "env=none"), 1, "there is no cluster with the labels 'env=none'"),
        (("resync", "-l", "env=prod", "--all"), 2, "say -l or --all, not both"),
        (("resync", "-l", ""), 2, "name labels after -l, or use --all"),
        (("redeploy", "-l", " "), 2, "name labels after -l, or use --all"),
        (("deregister", "cluster", "-l", " "), 2, "name labels after -l, or use --all"),
        (("label", "cluster", "-l", "", "a=b", "c=d"), 2, "name labels after -l"),
        (("delete", "clusterprofiles", "-l", ",", "--dry-run"), 2, "error: "),
        (("resync", "default/a", "--all"), 2, "name a cluster, or use -l or --all, not both"),
        (("pause", "--all"), 2, "name a kind beside -l or --all: clusters, clusterprofiles"),
        (("pause", "secrets", "--all"), 2, "name a kind beside -l or --all"),
        (("redeploy", "-l", "a=b"), 2, "name a kind beside -l"),
        (("redeploy", "clusters", "--all", "--unchecked"), 2, "use -l and --all with only a kind"),
        (("deregister", "cluster", "default/a", "--all"), 2, "not both"),
        (("label", "cluster", "default/a"), 2, "name a cluster, -l or --all, and a change"),
    ],
)
def test_refuses_what_is_not_clear(
    bellhop: Bellhop, clusters: Installation, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """With a sentence of what to write, and nothing is changed."""
    result = bellhop(*arguments)

    assert (result.exit_code, said in " ".join(result.stderr.split())) == (code, True)
    assert len(list(clusters.records.clusters.all())) == 3


def test_a_failure_keeps_no_other_cluster_from_a_change(
    bellhop: Bellhop, clusters: Installation
) -> None:
    result = bellhop("label", "cluster", "--all", "env=prod")

    assert result.exit_code == 1
    assert result.stdout.count(" labelled ") == 2
    assert "cannot label cluster 'other/c'" in result.stderr
    assert clusters.records.clusters.get("other/c") is not None


def test_a_failure_keeps_no_other_object_from_a_pause(bellhop: Bellhop, here: Installation) -> None:
    full = f"name: full, annotations: {{a: {'x' * (LARGEST_ANNOTATIONS - 1)}}}"
    fleet.declare(here, join(profile().replace("name: own", full, 1), profile()))
    result = bellhop("pause", "clusterprofiles", "--all")

    assert (result.exit_code, result.stdout) == (2, "ClusterProfile 'own' paused.\n")
    assert "annotations have at most" in result.stderr


def test_deletes_what_is_selected(bellhop: Bellhop, here: Installation) -> None:
    """By labels, without the profiles that a trigger generated; a dry run deletes nothing."""
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: "
    one, two = "{name: one, labels: {team: a}}", "{name: two, labels: {team: b}}"
    fleet.declare(here, f"{head}{one}\n---\n{head}{two}\n")

    assert bellhop("delete", "configmaps", "-l", "team=a", "--dry-run").stdout == (
        "configmap/one deleted (dry run)\n"
    )
    assert bellhop("delete", "configmaps", "-l", "team=a").stdout == "configmap/one deleted\n"
    assert bellhop("delete", "cm", "--all", "-n", "default").stdout == "configmap/two deleted\n"
    assert "cannot delete clusters" in bellhop("delete", "clusters", "--all").stderr
    assert bellhop("delete", "cm", "one", "--all").exit_code == 2


def test_a_selection_of_nothing_is_an_error(bellhop: Bellhop, here: Installation) -> None:
    """Generated profiles are no objects of users; --ignore-not-found accepts an empty selection."""
    fleet.populate(here)

    for verb in ("delete", "pause"):
        result = bellhop(verb, "clusterprofiles", "--all")
        assert result.exit_code == 1
        assert "triggers or promotions made all 1 that are selected" in result.stderr
    assert bellhop("delete", "profiles", "-l", "a=b").exit_code == 1
    for words in (("clusterprofiles", "--all"), ("profiles", "-l", "a=b")):
        assert bellhop("delete", *words, "--ignore-not-found").exit_code == 0
