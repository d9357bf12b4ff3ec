"""Warnings of manifests that select nothing, with the cure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.api.kinds import Selector, parse_all, read_documents
from bellhop.catalog.nearest_cluster import nearest
from bellhop.diagnosis.warnings import MAX_WARNINGS, list_warnings
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile, source, trigger

ENG = "destinationClusterSelector: {matchLabels: {dep: eng}}"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """An installation over fakes, without a cluster."""
    one = Fleet(tmp_path)
    yield one
    one.close()


def collect_warnings(fleet: Fleet, *texts: str) -> list[str]:
    """Declare, and return what is said of it."""
    fleet.apply(*texts)
    read = [each for text in texts for each in read_documents(text, source="test")]
    return list(list_warnings(fleet.installation(), parse_all(read)))


def test_what_reaches_something_is_not_spoken_of(fleet: Fleet) -> None:
    """A warning means something."""
    fleet.register("east", env="production", dep="eng")

    assert collect_warnings(fleet, source(), trigger(more=ENG), holder("made", config("a"))) == []
    assert collect_warnings(fleet, profile(), holder("own", config("a"))) == []


def test_registered_clusters_are_no_objects(fleet: Fleet) -> None:
    """Users of Sveltos' kind for clusters get the alternative here."""
    asked = source("SveltosCluster", name="fleet", group="lib.projectsveltos.io")
    [one] = collect_warnings(fleet, asked)
    [many] = collect_warnings(fleet, asked, asked.replace("name: fleet", "name: other"))

    assert one == (
        "EventSource 'fleet' selects SveltosCluster, and only matches objects of that kind in its"
        " source clusters: clusters that `bellhop register` added are not such objects; deploy"
        " add-ons to them by the clusterSelector of a ClusterProfile, and label them by a"
        " Classifier"
    )
    assert many.startswith("EventSource 'fleet' and 1 more select SveltosCluster, and")
    assert collect_warnings(fleet, source("SveltosCluster", group="example.org")) == []


@pytest.mark.parametrize(
    ("labels", "text", "sentence"),
    [
        pytest.param(
            {"env": "prod"},
            trigger(),
            "EventTrigger 'made' selects no source cluster: its sourceClusterSelector asks for"
            " env=production, and 'fleet/east' has env=prod; correct the sourceClusterSelector, or"
            " `bellhop label cluster fleet/east env=production --overwrite`",
            id="another value",
        ),
        pytest.param(
            {"environment": "production"},
            trigger(),
            "and 'fleet/east' has no label env, but environment=production;",
            id="another key",
        ),
        pytest.param(
            {"env": "production"},
            trigger(more=ENG),
            "EventTrigger 'made' selects no destination: its destinationClusterSelector asks for"
            " dep=eng, and 'fleet/east' has no label dep; `bellhop label cluster fleet/east"
            " dep=eng`, or correct the destinationClusterSelector",
            id="no destination",
        ),
        pytest.param(
            {"env": "production", "old": "yes"},
            trigger(
                more="destinationClusterSelector:"
                " {matchExpressions: [{key: old, operator: DoesNotExist}]}"
            ),
            "and 'fleet/east' has old=yes; `bellhop label cluster fleet/east old-`",
            id="a label too many",
        ),
        pytest.param(
            {"env": "production"},
            trigger(
                more="destinationClusterSelector: {matchExpressions:"
                " [{key: env, operator: NotIn, values: [production]}]}"
            ),
            "and 'fleet/east' has env=production; `bellhop label cluster fleet/east env-`",
            id="a value that is excluded",
        ),
        pytest.param(
            {"env": "prod"},
            profile(),
            "ClusterProfile 'own' selects no cluster: its clusterSelector asks for env=production",
            id="a profile's selector",
        ),
        pytest.param(
            {"env": "prod"},
            profile("clusterRefs: [{namespace: fleet, name: est}]"),
            "it names cluster 'fleet/est', which is not registered (did you mean 'fleet/east'?);",
            id="a profile's cluster",
        ),
        pytest.param(
            {"env": "production"},
            trigger(origin="watchde"),
            "EventTrigger 'made' names EventSource 'watchde', which is not there yet (did you mean"
            " 'watched'?); apply it with `bellhop apply -f FILE`, or correct the name 'watchde'",
            id="source",
        ),
        pytest.param(
            {"env": "production"},
            trigger(ref="maed"),
            "EventTrigger 'made' names ConfigMap 'default/maed', which is not there yet (did you"
            " mean 'default/made'?)",
            id="ConfigMap",
        ),
    ],
)
def test_says_what_is_missing_and_what_to_do(
    fleet: Fleet, labels: dict[str, str], text: str, sentence: str
) -> None:
    """The nearest labels and names, and the command that corrects it."""
    fleet.register("east", **labels)
    found = collect_warnings(
        fleet, join(source(), holder("made", config("a")), holder("own")), text
    )

    assert [each for each in found if sentence in each] == found
    assert len(found) == 1


def test_the_nearest_cluster_lacks_least(fleet: Fleet) -> None:
    """It is named with how many there are."""
    fleet.register("far")
    fleet.register("near", env="productoin")
    fleet.register("other", env="test")
    (found,) = collect_warnings(fleet, source(), trigger(), holder("made"))

    assert "and 'fleet/near', the nearest of 3 clusters, has env=productoin" in found


def test_none_of_several_is_nearest_where_nothing_is_alike(fleet: Fleet) -> None:
    """Nobody is to label a cluster because it came first."""
    fleet.register("a", zone="x")
    fleet.register("b")
    (found,) = collect_warnings(fleet, source(), trigger(), holder("made"))

    assert "asks for env=production, and none of 2 clusters has that;" in found
    assert "`bellhop label cluster NAMESPACE/NAME env=production` where it is meant" in found


def test_a_template_is_not_taken_for_a_name(fleet: Fleet) -> None:
    """Its name is known with the event."""
    fleet.register("east", env="production")
    named = trigger(origin="{{ .ClusterName }}", ref="{{ .Resource.metadata.name }}")

    assert (
        collect_warnings(
            fleet, named.replace("name: {{", "name: '{{").replace("}}, name", "}}', name")
        )
        == []
    )


@pytest.mark.clocked
def test_many_of_a_sort_are_one_sentence(fleet: Fleet) -> None:
    """A thousand sources and triggers make few sentences, in a fraction of a second."""
    fleet.register("east", env="prod")
    texts = [
        source(name=f"s{number}") + "---" + trigger(f"t{number}", origin=f"x{number}", ref="no-ref")
        for number in range(200)
    ]
    fleet.apply(*texts)
    read = [each for text in texts for each in read_documents(text, source="test")]
    declared = parse_all(read)
    begun = time.perf_counter()
    found = list(list_warnings(fleet.installation(), declared))

    assert time.perf_counter() - begun < 2
    assert found[0].startswith("EventTrigger 't0' and 199 more select no source cluster: ")
    assert len(found) == 1 + 2 * (MAX_WARNINGS + 1)
    assert (
        found[MAX_WARNINGS + 1]
        == f"{200 - MAX_WARNINGS} more triggers name an EventSource that is not there yet"
    )


def test_nothing_is_nearest_where_there_is_nothing() -> None:
    """Nor to a selector that all clusters meet."""
    assert nearest(Selector.parse("a=b"), []) is None


def of_set(spec: str, name: str = "active") -> str:
    return (
        "apiVersion: lib.projectsveltos.io/v1beta1\nkind: ClusterSet\n"
        f"metadata: {{name: {name}}}\nspec: {spec}\n"
    )


BY_SET = profile("setRefs: [active]")
OWN = holder("own", config("a"))


@pytest.mark.parametrize(
    ("texts", "sentences"),
    [
        pytest.param(
            [BY_SET, OWN],
            [
                "its setRefs name ClusterSet 'active', which is not there yet; apply it with",
            ],
            id="a set that is not there",
        ),
        pytest.param(
            [BY_SET, OWN, of_set("{clusterSelector: env=test}", "activ")],
            ["which is not there yet (did you mean 'activ'?);", "ClusterSet 'activ' selects no"],
            id="a set by another name",
        ),
        pytest.param(
            [BY_SET, OWN, of_set("{clusterSelector: env=production, maxReplicas: 0}")],
            [
                "its setRefs name 'active', which has no cluster; `bellhop describe clusterset",
                "ClusterSet 'active' selects no cluster: its maxReplicas is 0; raise it, or leave",
            ],
            id="a set of none",
        ),
        pytest.param(
            [of_set("{clusterRefs: [{namespace: fleet, name: eas}]}")],
            ["it names cluster 'fleet/eas', which is not registered (did you mean 'fleet/east'?)"],
            id="a cluster that is not there",
        ),
        pytest.param(
            [BY_SET, OWN, of_set("{clusterSelector: env=production, maxReplicas: 1}")],
            [],
            id="a set with a cluster",
        ),
    ],
)
def test_reports_sets_that_lead_nowhere(
    fleet: Fleet, texts: list[str], sentences: list[str]
) -> None:
    """Missing sets, and sets without a cluster."""
    fleet.register("east", env="production")

    found = collect_warnings(fleet, *texts)

    assert len(found) == len(sentences)
    assert all(part in said for part, said in zip(sentences, found, strict=True)), found


TEAM = profile("clusterSelector: {matchLabels: {env: production}}", namespace="fleet")
TEAM_CHART = """
apiVersion: config.projectsveltos.io/v1beta1
kind: Profile
metadata: {name: own, namespace: fleet}
spec:
  clusterSelector: {matchLabels: {env: production}}
  helmCharts:
  - repositoryURL: oci://registry.example.com/web
    releaseName: web
    releaseNamespace: apps
    valuesFrom: [{kind: ConfigMap, namespace: other, name: v}]
"""
TEAM_URL = """
apiVersion: config.projectsveltos.io/v1beta1
kind: Profile
metadata: {name: own, namespace: fleet}
spec:
  clusterSelector: {matchLabels: {env: production}}
  policyRefs:
  - remoteURL: {url: 'https://files.example', secretRef: {namespace: other, name: login}}
"""
MEASURED = """validateHealths:
  - name: errors
    featureID: Resources
    metricSource: {url: 'https://prom', secretRef: {name: prom, namespace: other}}
    metricQueries: [{name: errors, query: sum(errors)}]
    script: function evaluate() return {healthy = metrics.errors == 0} end"""
TEAM_SET = of_set("{clusterRefs: [{namespace: other, name: east}]}", "own, namespace: fleet")
TEAM_SET = TEAM_SET.replace("ClusterSet", "Set")


@pytest.mark.parametrize(
    ("texts", "sentences"),
    [
        pytest.param(
            [TEAM.replace("namespace: default", "namespace: ''"), TEAM_SET.replace("other", "''")],
            ["Profile 'fleet/own' names ConfigMap 'fleet/own', which is not there yet"],
            id="none is named",
        ),
        pytest.param(
            [TEAM, holder("own", config("a"), namespace="fleet"), TEAM_SET],
            [
                (
                    "Profile 'fleet/own' has only the namespace 'fleet': its policyRefs name"
                    " 'default/own', for which 'fleet/own' is taken; correct the namespace, or"
                    " write a ClusterProfile"
                ),
                (
                    "Set 'fleet/own' has only the namespace 'fleet': its clusterRefs name"
                    " 'other/east', for which 'fleet/east' is taken; correct the namespace, or"
                    " write a ClusterSet"
                ),
            ],
            id="another is named",
        ),
        pytest.param(
            [TEAM_CHART, holder("v", config("a"), namespace="fleet")],
            ["its helmCharts name 'other/v', for which 'fleet/v' is taken"],
            id="another is named by a chart",
        ),
        pytest.param(
            [
                TEAM_CHART.replace("oci://registry.example.com", "bucket://other"),
                holder("v", config("a"), namespace="fleet"),
            ],
            [
                "its helmCharts name 'other/v', for which 'fleet/v' is taken",
                "its helmCharts name 'other/web', for which 'fleet/web' is taken",
            ],
            id="another is named as the source of a chart",
        ),
        pytest.param(
            [TEAM_URL],
            [
                "its remoteURL name 'other/login', for which 'fleet/login' is taken",
                "Profile 'fleet/own' names Secret 'fleet/login', which is not there yet",
            ],
            id="another is named for a URL",
        ),
        pytest.param(
            [
                profile(namespace="fleet", more=MEASURED).replace("namespace: default", ""),
                holder("own", config("a"), namespace="fleet"),
            ],
            [
                (
                    "Profile 'fleet/own' has only the namespace 'fleet': its checks name"
                    " 'other/prom', for which 'fleet/prom' is taken; correct the namespace, or"
                    " write a ClusterProfile"
                ),
                "Profile 'fleet/own' names Secret 'fleet/prom', which is not there yet",
            ],
            id="another is named by a check",
        ),
        pytest.param(
            [profile("setRefs: [a]", namespace="fleet").replace("namespace: default", "")],
            ["its setRefs name Set 'fleet/a', which is not there yet", "names ConfigMap"],
            id="a set that is not there",
        ),
        pytest.param(
            [profile(namespace="empty").replace("namespace: default", "")],
            ["no cluster is registered in namespace 'empty' yet", "names ConfigMap"],
            id="a namespace without a cluster",
        ),
    ],
)
def test_says_what_a_namespace_keeps_from(
    fleet: Fleet, texts: list[str], sentences: list[str]
) -> None:
    """A Profile and a Set have what is in their namespace, whatever they name."""
    fleet.register("east", env="production")

    found = collect_warnings(fleet, *texts)

    assert len(found) == len(sentences), found
    assert all(part in said for part, said in zip(sentences, found, strict=True)), found
