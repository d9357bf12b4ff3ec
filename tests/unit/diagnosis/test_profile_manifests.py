"""Generated profiles as users see them, by the names of Sveltos."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.core.names import label_value_problem
from bellhop.diagnosis.profile_manifests import manifest
from bellhop.rendering.origin_labels import instance_labels
from bellhop.state.check import Check, JobSource, MetricQuery, MetricSource
from bellhop.state.content import Content, FileRef, Handling, Reading
from bellhop.state.profile import Profile

PREFIX = "eventtrigger.lib.projectsveltos.io/"
ROLE = "rbac.authorization.k8s.io/v1/ClusterRole//"


def profile(key: str = "") -> Profile:
    return Profile("p", "t", "prod/eu", key, (), (), "")


def test_one_for_all_objects_names_none() -> None:
    """It has its origin, and no resource."""
    assert manifest(profile(), "s")["metadata"]["labels"] == {
        f"{PREFIX}eventtriggername": "t",
        f"{PREFIX}clusterNamespace": "prod",
        f"{PREFIX}clustername": "eu",
        f"{PREFIX}clustertype": "Sveltos",
        f"{PREFIX}eventreportname": "s",
        f"{PREFIX}eventsourcename": "s",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("admin", "admin", id="a label's value"),
        pytest.param("system:node", "system-node-", id="a colon"),
        pytest.param("n" * 70, "n" * 50 + "-", id="too long"),
        pytest.param(":", "", id="nothing that is legal"),
    ],
)
def test_what_is_no_labels_value_becomes_one(name: str, expected: str) -> None:
    """Two names that are cut alike stay apart, and a label can always be written."""
    labels = instance_labels(profile(f"{ROLE}{name}"), "s", "default", "c")
    value = labels[f"{PREFIX}resourcename"]

    assert value.startswith(expected)
    assert label_value_problem(value) == ""
    assert (labels[f"{PREFIX}refnamespace"], labels[f"{PREFIX}refname"]) == ("default", "c")
    assert f"{PREFIX}resourcenamespace" not in labels


def test_deploy_options_are_shown_where_they_are_not_the_defaults() -> None:
    """Metadata that are added, and what a ref asks for."""
    labelled = Handling(labels={"team": "red"})
    asked = Handling(tier=50, force=True, skip_namespace=True, labels={"team": "red"})
    contents = (
        Content("ConfigMap default/a", "x", how=labelled),
        Content("Secret default/b", "x", how=asked),
    )

    spec = manifest(replace(profile(), contents=contents), "s")["spec"]

    assert spec["extraLabels"] == {"team": "red"}
    assert "extraAnnotations" not in spec
    assert spec["policyRefs"] == [
        {"kind": "ConfigMap", "namespace": "default", "name": "a"},
        {
            "kind": "Secret",
            "namespace": "default",
            "name": "b",
            "tier": 50,
            "force": True,
            "skipNamespaceCreation": True,
        },
    ]


def test_objects_that_its_templates_read_are_shown() -> None:
    """By the names that the event gave, as a user writes them."""
    reads = (Reading("Read", "v1", "Secret", "default", "a", optional=True),)

    assert manifest(replace(profile(), reads=reads), "s")["spec"]["templateResourceRefs"] == [
        {
            "identifier": "Read",
            "resource": {
                "apiVersion": "v1",
                "kind": "Secret",
                "namespace": "default",
                "name": "a",
            },
            "optional": True,
        }
    ]


def test_shows_the_metrics_and_jobs_of_checks() -> None:
    """As they were written."""
    metrics = MetricSource("https://prom", "/q", (MetricQuery("up", "sum(up)"),), "token", "team")
    gvk = GVK("", "", "")
    checks = (
        Check("validateHealths", "a", gvk, script="x", metrics=metrics),
        Check("validateHealths", "b", gvk, job=JobSource("ConfigMap", "team", "smoke", 60)),
    )
    found = manifest(replace(profile(), checked=("validateHealths",), checks=checks), "s")

    assert found["spec"]["validateHealths"] == [
        {
            "name": "a",
            "featureID": "Resources",
            "script": "x",
            "metricSource": {
                "url": "https://prom",
                "path": "/q",
                "secretRef": {"name": "token", "namespace": "team"},
            },
            "metricQueries": [{"name": "up", "query": "sum(up)"}],
        },
        {
            "name": "b",
            "featureID": "Resources",
            "jobCheck": {
                "jobRef": {"kind": "ConfigMap", "namespace": "team", "name": "smoke"},
                "timeout": "60s",
            },
        },
    ]


def test_each_path_of_a_source_is_a_ref() -> None:
    """The source has one name, however many refs name it."""
    refs = (FileRef(f"policyRefs[{number}]", path) for number, path in enumerate("ab"))
    made = tuple(Content("GitRepository flux/web", each.path, files=each) for each in refs)
    found = manifest(replace(profile(), contents=made), "s")["spec"]["policyRefs"]
    assert [each["path"] for each in found] == ["a", "b"]
