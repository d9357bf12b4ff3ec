"""Classifiers as they are written: versions, selectors and labels."""

from __future__ import annotations

import pytest

from bellhop.api.classifier import Classifier, read_version
from bellhop.api.kinds import InvalidDocuments, parse_all, read_documents
from bellhop.api.names import classifier_of

TEXT = """\
apiVersion: lib.projectsveltos.io/v1beta1
kind: Classifier
metadata: {name: gpu}
spec:
  kubernetesVersionConstraints: [VERSIONS]
  deployedResourceConstraint:
    resourceSelectors:
    - {group: apps, version: v1, kind: DaemonSet, name: nvidia, evaluate: 'x'}
    - {group: '', version: v1, kind: Node}
    aggregatedClassification: SCRIPT
  classifierLabels: [{key: accelerator, value: nvidia}]
"""


def read(versions: str = "", script: str = "''") -> Classifier:
    text = TEXT.replace("VERSIONS", versions).replace("SCRIPT", script)
    [found] = parse_all(read_documents(text, source="f"))
    assert isinstance(found, Classifier)
    return found


@pytest.mark.parametrize(
    ("comparison", "version", "passes"),
    [
        pytest.param(
            "Equal", "1.34.2", "1.34.2 v1.34.2+k3s1 1.34.2-eks-1", id="marks do not count"
        ),
        pytest.param("Equal", "1.34", "1.34.0 1.34.2 1.34.2-eks-1 v1.34.2+k3s1", id="any patch"),
        pytest.param("NotEqual", "1.34", "1.33.9 1.35.0", id="no patch of it"),
        pytest.param("GreaterThan", "1.34", "1.35.0", id="beyond every patch"),
        pytest.param("GreaterThan", "1.34.1", "1.34.2 v1.34.2+k3s1 1.34.2-eks-1 1.35.0", id=">"),
        pytest.param("GreaterThanOrEqualTo", "v1.35.0", "1.35.0", id=">="),
        pytest.param("LessThan", "1.34.0", "1.33.9", id="<"),
        pytest.param(
            "LessThanOrEqualTo", "1.34", "1.33.9 1.34.0 1.34.2 v1.34.2+k3s1 1.34.2-eks-1", id="<="
        ),
        pytest.param(
            "GreaterThan", "1.35.0-rc.1", "1.35.0", id="a release comes after what is before"
        ),
    ],
)
def test_compares_versions(comparison: str, version: str, passes: str) -> None:
    """As Sveltos does, which leaves out what marks a build or one before a release."""
    asked = read(f"{{comparison: {comparison}, version: '{version}'}}")
    all_of_them = ["1.33.9", "1.34.0", "1.34.2", "v1.34.2+k3s1", "1.34.2-eks-1", "1.35.0"]

    assert {each for each in all_of_them if asked.admits(each)} == {*passes.split()}


def test_all_comparisons_must_hold() -> None:
    """Of a version that nobody can read it is not known; without comparisons any will do."""
    both = "{comparison: GreaterThan, version: '1.30'}, {comparison: LessThan, version: '1.34'}"

    assert [read(both).admits(each) for each in ("1.30.1", "1.33.0", "1.34.0")] == [
        False,
        True,
        False,
    ]
    assert read(both).admits("unknown") is None
    assert read().admits("unknown") is True
    assert read_version("one") is None


def test_asks_by_a_source_for_each_selector() -> None:
    """Or by one for all, which has the script; their names are no names of manifests."""
    assert [(each.name, len(each.selectors), each.aggregation) for each in read().sources] == [
        ("classifier:gpu:0", 1, ""),
        ("classifier:gpu:1", 1, ""),
    ]
    assert [
        (each.name, len(each.selectors), each.aggregation) for each in read(script="all").sources
    ] == [("classifier:gpu", 2, "all")]
    assert [classifier_of(each) for each in ("classifier:gpu:0", "classifier:gpu", "gpu")] == [
        "gpu",
        "gpu",
        "",
    ]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        pytest.param(
            "VERSIONS",
            "{comparison: Equal, version: new}",
            "is not a Kubernetes version",
            id="version",
        ),
        pytest.param(
            "VERSIONS", "{comparison: Like, version: '1.1'}", "comparison", id="comparison"
        ),
        pytest.param("value: nvidia", "value: 'n v'", "label", id="value"),
        pytest.param("[{key: acc", "[{key: accelerator, value: x}, {key: acc", "twice", id="twice"),
        pytest.param(
            "[{key: accelerator, value: nvidia}]", "[]", "classifierLabels", id="no label"
        ),
        pytest.param("kind: Node", "kynd: Node", "did you mean 'kind'", id="field"),
    ],
)
def test_refuses_with_a_sentence(old: str, new: str, error: str) -> None:
    """That names what is wrong."""
    text = TEXT.replace(old, new).replace("VERSIONS", "").replace("SCRIPT", "''")
    with pytest.raises(InvalidDocuments, match=error):
        parse_all(read_documents(text, source="f"))
