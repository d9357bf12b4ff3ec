"""Others' changes of a profile's objects are corrected in a real cluster, on its event."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.registration.forwarder_manifests import HOLDING
from tests.flow.conftest import HOOKS, Flow
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.oldest

COLOURS = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "colours")
SKETCH = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "sketch")
WEB = ObjectKey(GVK("apps", "v1", "Deployment"), "default", "web")
QUICK = 10.0
"""In which a busy machine puts an edit back, if the API server calls the webhook."""

PROFILE = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: held}
spec:
  syncMode: ContinuousWithDriftDetection
  clusterSelector: {matchLabels: {env: production}}
  policyRefs: [{kind: ConfigMap, namespace: default, name: held}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: held, namespace: default}
data:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: colours
      namespace: default
      labels: {tint: dark}
      annotations: {shade: deep}
    data: {sky: blue}
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: sketch
      namespace: default
      annotations: {projectsveltos.io/driftDetectionIgnore: ok}
    data: {sky: blue}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: default}
    spec:
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}]}
"""


@pytest.fixture
def held(flow: Flow, tmp_path: Path) -> Flow:
    """Have a cluster hold the objects, and send events for them: API servers follow in seconds."""
    file = tmp_path / "held.yaml"
    file.write_text(PROFILE)
    flow.stand.do("apply", "-f", str(file))
    eventually("all is there", lambda: flow.source.get(COLOURS) and flow.source.get(WEB))
    eventually("the webhook is there", lambda: HOLDING in str(flow.source.get(HOOKS)))

    def is_sent() -> bool:
        # The same value again would change nothing, and send no event.
        return put_back(flow, {"data": {"sky": f"grey {time.monotonic()}"}}, seconds=QUICK)

    eventually("the cluster sends events", is_sent, patience=90)
    return flow


def colours(flow: Flow) -> dict[str, Any]:
    return flow.source.get(COLOURS) or {}


def put_back(flow: Flow, change: dict[str, Any], *, seconds: float = 30.0 * PATIENCE) -> bool:
    """Change an object, and say whether it is what it was declared as before any resync."""
    flow.source.patch(COLOURS, change)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = colours(flow)
        if (
            found.get("data") == {"sky": "blue"}
            and (found["metadata"].get("labels") or {}).get("tint") == "dark"
            and (found["metadata"].get("annotations") or {}).get("shade") == "deep"
        ):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"data": {"sky": "grey"}}, id="a value"),
        pytest.param({"data": {"sky": None}}, id="a value that is gone", marks=pytest.mark.rest),
        pytest.param(
            {"metadata": {"labels": {"tint": None}}},
            id="a label that is gone",
            marks=pytest.mark.rest,
        ),
        pytest.param(
            {"metadata": {"annotations": {"shade": "pale"}}},
            id="an annotation",
            marks=pytest.mark.rest,
        ),
        pytest.param(
            {"metadata": {"labels": {"projectsveltos.io/reason": None, "tint": "light"}}},
            id="the label by which it rings",
            marks=pytest.mark.rest,
        ),
        pytest.param(
            {"data": {"sky": "grey"}, "metadata": {"managedFields": [{}]}},
            id="a value, and what tells whose it was",
            marks=pytest.mark.rest,
        ),
    ],
)
def test_an_edit_is_put_back(held: Flow, change: dict[str, Any]) -> None:
    """Long before any resync."""
    assert put_back(held, change)


def test_what_is_deleted_comes_back(held: Flow) -> None:
    """As another object of that name."""
    before = colours(held)["metadata"]["uid"]

    held.source.delete(COLOURS)

    eventually("it is there again", lambda: colours(held))
    assert colours(held)["metadata"]["uid"] != before
    assert put_back(held, {"data": {"sky": "red"}})


def test_an_object_marked_to_be_ignored_is_left_unchanged(held: Flow) -> None:
    """An edit of it stays, also when its profile is resynced; one of its neighbour is corrected."""
    held.source.patch(SKETCH, {"data": {"sky": "red"}})
    held.stand.do("resync", "fleet/source")

    assert put_back(held, {"data": {"sky": "grey"}})
    assert (held.source.get(SKETCH) or {})["data"] == {"sky": "red"}


def test_what_others_decide_is_theirs(held: Flow) -> None:
    """A value that the profile never set, and replicas, stay; what is ours beside them does not."""
    held.source.patch(WEB, {"spec": {"replicas": 3}}, "scale")
    held.source.patch(COLOURS, {"data": {"sea": "green"}})
    held.source.patch(WEB, {"spec": {"template": {"metadata": {"labels": {"team": "blue"}}}}})
    held.source.patch(WEB, {"spec": {"selector": {}, "minReadySeconds": 7}})
    image = {"name": "web", "image": "web:2", "ports": [{"containerPort": 80}]}
    held.source.patch(WEB, {"spec": {"template": {"spec": {"containers": [image]}}}})

    def image_now() -> str:
        found = held.source.get(WEB) or {}
        return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

    eventually("the image is put back", lambda: image_now() == "web:1")
    spec = (held.source.get(WEB) or {})["spec"]
    assert (spec["replicas"], spec["minReadySeconds"]) == (3, 7)
    assert spec["template"]["metadata"]["labels"] == {"app": "web", "team": "blue"}
    assert colours(held)["data"] == {"sky": "blue", "sea": "green"}


def test_a_change_of_replicas_that_the_profile_sets_is_put_back(held: Flow, tmp_path: Path) -> None:
    """Scaling writes a subresource, without kind or labels: its status sends the event."""
    file = tmp_path / "scaled.yaml"
    file.write_text(
        PROFILE.replace("    spec:\n      selector", "    spec:\n      replicas: 2\n      selector")
    )
    held.stand.do("apply", "-f", str(file))

    def replicas() -> int:
        return int((held.source.get(WEB) or {})["spec"]["replicas"])

    eventually("it is scaled by the profile", lambda: replicas() == 2)
    held.source.patch(WEB, {"spec": {"replicas": 5}}, "scale")
    # The clusters of the lab have no controllers: this is what that of Deployments does next.
    held.source.patch(WEB, {"status": {"observedGeneration": 7}}, "status")

    eventually("it is put back", lambda: replicas() == 2)
    assert (held.source.get(WEB) or {})["status"]["observedGeneration"] == 7


def test_replicas_that_are_excluded_are_left_to_who_scales(held: Flow, tmp_path: Path) -> None:
    """Neither a change of the profile nor an event writes the number that somebody else decided."""
    file = tmp_path / "excluded.yaml"
    scaled = PROFILE.replace(
        "    spec:\n      selector", "    spec:\n      replicas: 2\n      selector"
    )
    exclusion = "driftExclusions: [{paths: [/spec/replicas], target: {kind: Deployment}}]"
    excluded = scaled.replace("  clusterSelector", f"  {exclusion}\n  clusterSelector")
    file.write_text(excluded)
    held.source.patch(WEB, {"spec": {"replicas": 4}}, "scale")
    held.stand.do("apply", "-f", str(file))
    file.write_text(excluded.replace("web:1", "web:3"))
    held.stand.do("apply", "-f", str(file))

    def spec() -> dict[str, Any]:
        return dict((held.source.get(WEB) or {})["spec"])

    def image() -> str:
        return str(spec()["template"]["spec"]["containers"][0]["image"])

    eventually("the new image is there", lambda: image() == "web:3")
    assert spec()["replicas"] == 4
    held.source.patch(WEB, {"spec": {"replicas": 6}}, "scale")
    held.source.patch(WEB, {"status": {"observedGeneration": 9}}, "status")
    held.source.delete(COLOURS)
    eventually("a deleted object is there again", lambda: colours(held))
    assert spec()["replicas"] == 6
