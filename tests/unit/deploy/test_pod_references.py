"""References of a workload's pods to ConfigMaps and Secrets, in each form."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import Identity
from bellhop.deploy.pod_references import RELOADED, is_changed, marked, mounted, state

MAP, SECRET = Identity("", "ConfigMap", "shop", "x"), Identity("", "Secret", "shop", "x")


def workload(**pod: Any) -> dict[str, Any]:
    return {"kind": "Deployment", "spec": {"template": {"spec": pod}}}


def of(name: str, ref: str, *, key: str = "containers") -> dict[str, Any]:
    return workload(**{key: [{"name": "c", name: [{ref: {"name": "x"}}]}]})


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (workload(volumes=[{"configMap": {"name": "x"}}]), MAP),
        (workload(volumes=[{"secret": {"secretName": "x"}}]), SECRET),
        (workload(volumes=[{"projected": {"sources": [{"configMap": {"name": "x"}}]}}]), MAP),
        (workload(volumes=[{"projected": {"sources": [{"secret": {"name": "x"}}]}}]), SECRET),
        (of("envFrom", "configMapRef"), MAP),
        (of("envFrom", "secretRef"), SECRET),
        (of("envFrom", "secretRef", key="initContainers"), SECRET),
        (workload(containers=[{"env": [{"valueFrom": {"configMapKeyRef": {"name": "x"}}}]}]), MAP),
        (workload(containers=[{"env": [{"valueFrom": {"secretKeyRef": {"name": "x"}}}]}]), SECRET),
    ],
)
def test_each_way_in_which_pods_read_counts(manifest: dict[str, Any], expected: Identity) -> None:
    """Volumes, projected ones, and both sorts of environment; init containers, too."""
    assert mounted(manifest, "shop") == {expected: False}


def test_what_may_be_missing_may_be_so_everywhere() -> None:
    """An object that one container needs is needed."""
    needs = {"envFrom": [{"configMapRef": {"name": "x"}}]}
    may = {"envFrom": [{"configMapRef": {"name": "x", "optional": True}}]}

    assert mounted(workload(containers=[may, may]), "shop") == {MAP: True}
    assert mounted(workload(containers=[may, needs]), "shop") == {MAP: False}
    assert mounted(workload(containers=[needs, may]), "shop") == {MAP: False}


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"spec": None},
        workload(volumes="none"),
        workload(volumes=[None, {"configMap": "x"}, {"secret": {"secretName": 7}}]),
        workload(containers=[{"env": [{"name": "v", "value": "x"}]}]),
        workload(imagePullSecrets=[{"name": "x"}]),
    ],
)
def test_what_is_no_pod_reads_nothing(manifest: dict[str, Any]) -> None:
    """Its API server reports a malformed template."""
    assert mounted(manifest, "shop") == {}


def test_what_counts_is_what_an_object_holds() -> None:
    """Not its labels, nor who wrote it; what is new beside what was there is no change."""
    one = {"data": {"a": "1"}, "metadata": {"labels": {"a": "b"}}}

    assert state(one) == state({"data": {"a": "1"}, "binaryData": None})
    assert state(one) != state({"data": {"a": "2"}})
    assert state(one) != state({"binaryData": {"a": "1"}})
    assert not is_changed({"x": "1"}, {"x": "1", "y": "2"})
    assert is_changed({"x": "1"}, {"x": "2"})


def test_the_mark_lies_beside_what_is_there() -> None:
    """And changes nothing of what was given; without one nothing is written."""
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    given = {"spec": {"replicas": 1, "template": {"metadata": metadata, "spec": {"a": 1}}}}

    made = marked(given, "m")["spec"]

    assert made["template"]["metadata"]["annotations"] == {"c": "d", RELOADED: "m"}
    assert (made["replicas"], made["template"]["spec"]) == (1, {"a": 1})
    assert metadata["annotations"] == {"c": "d"}
    assert marked(given, "") == given
    assert marked({}, "m")["spec"]["template"]["metadata"]["annotations"] == {RELOADED: "m"}
