"""Profiles come to real clusters in their order, and a few clusters at a time."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from bellhop.core.gvk import GVK, ObjectKey
from tests.flow.conftest import Flow
from tests.waiting import eventually

BOTH = (
    "clusterRefs: [{namespace: fleet, name: source}, {namespace: fleet, name: destination}]\n"
    "  {more}\n"
)
NAMESPACE = GVK("", "v1", "Namespace")
_PATIENCE = 60.0


def profile(name: str, text: str, more: str = "") -> str:
    """Return a profile for both clusters, and what it brings."""
    body = "".join(f"    {line}\n" for line in text.strip().splitlines())
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: {name}}}
spec:
  {BOTH.replace("{more}", more)}
  policyRefs: [{{kind: ConfigMap, namespace: default, name: {name}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default}}
data:
  main.yaml: |
{body}"""


def config(name: str, v: str = "1") -> str:
    return (
        "apiVersion: v1\nkind: ConfigMap\n"
        f"metadata: {{name: {name}, namespace: default}}\ndata: {{v: '{v}'}}\n"
    )


def apply(flow: Flow, folder: Path, *texts: str) -> None:
    file = folder / "steps.yaml"
    file.write_text("---\n".join(texts))
    flow.stand.do("apply", "-f", str(file))


def found(flow: Flow, name: str) -> list[str]:
    """Return which version of an object each cluster has."""
    key = ObjectKey(GVK("", "v1", "ConfigMap"), "default", name)
    there = (flow.source.get(key), flow.destination.get(key))
    return [each["data"]["v"] if each else "" for each in there]


def test_profiles_come_and_go_in_their_order(flow: Flow, tmp_path: Path) -> None:
    """The later one waits while the first fails, follows it, and goes before it.

    It takes seconds: each change is waited for in both clusters.
    """
    later = profile("steps-apps", config("steps-apps"), "dependsOn: [steps-base]")
    bad = config("steps-base").replace("'1'", "[1]")
    apply(flow, tmp_path, later, profile("steps-base", bad))
    eventually("it waits", lambda: "'steps-base' (dependsOn) to finish" in flow.failures())
    assert found(flow, "steps-apps") == ["", ""]

    apply(flow, tmp_path, profile("steps-base", config("steps-base")))
    eventually(
        "both are there", lambda: found(flow, "steps-apps") == ["1", "1"], patience=_PATIENCE
    )
    keys = [
        ObjectKey(GVK("", "v1", "ConfigMap"), "default", f"steps-{x}") for x in ("base", "apps")
    ]
    for user in (flow.source, flow.destination):
        made = [(user.get(key) or {})["metadata"]["creationTimestamp"] for key in keys]
        assert datetime.fromisoformat(made[0]) <= datetime.fromisoformat(made[1])

    flow.stand.do("delete", "clusterprofile", "steps-base")
    eventually("it stays", lambda: "depend on it there" in flow.failures())
    assert found(flow, "steps-base") == ["1", "1"]
    flow.stand.do("delete", "clusterprofile", "steps-apps")
    eventually("both are gone", lambda: found(flow, "steps-base") == ["", ""], patience=_PATIENCE)
    assert found(flow, "steps-apps") == ["", ""]


def test_a_profile_stays_until_its_successor_is_deployed(flow: Flow, tmp_path: Path) -> None:
    """Their common object keeps its uid, in each cluster.

    It takes seconds: each change is waited for in both clusters.
    """
    apply(flow, tmp_path, profile("steps-v1", config("steps-v") + "---\n" + config("steps-v1")))
    eventually(
        "the former is there", lambda: found(flow, "steps-v1") == ["1", "1"], patience=_PATIENCE
    )
    key = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "steps-v")
    uids = [(user.get(key) or {})["metadata"]["uid"] for user in (flow.source, flow.destination)]

    bad = config("steps-v", "2") + "---\n" + config("steps-v2").replace("'1'", "[1]")
    apply(flow, tmp_path, profile("steps-v2", bad, "transitionFrom: [steps-v1]"))
    flow.stand.do("delete", "clusterprofile", "steps-v1")
    eventually("it stays", lambda: "by transitionFrom ClusterProfile 'steps-v2'" in flow.failures())
    assert found(flow, "steps-v1") == ["1", "1"]

    good = config("steps-v", "2")
    apply(flow, tmp_path, profile("steps-v2", good, "transitionFrom: [steps-v1]"))
    eventually(
        "the former is gone", lambda: found(flow, "steps-v1") == ["", ""], patience=_PATIENCE
    )
    assert found(flow, "steps-v") == ["2", "2"]
    kept = [(user.get(key) or {})["metadata"]["uid"] for user in (flow.source, flow.destination)]
    assert kept == uids
    flow.stand.do("delete", "clusterprofile", "steps-v2")
    eventually("all is gone", lambda: found(flow, "steps-v") == ["", ""], patience=_PATIENCE)


def test_a_roll_out_stops_at_the_cluster_that_fails(flow: Flow, tmp_path: Path) -> None:
    """The other cluster keeps what it has until the first one is mended; then both follow.

    It takes seconds: each revision is waited for in both clusters.
    """
    apply(flow, tmp_path, profile("steps-agent", config("steps-agent"), "maxUpdate: 1"))
    eventually("all have it", lambda: found(flow, "steps-agent") == ["1", "1"], patience=_PATIENCE)
    bad = config("steps-agent", "2") + "immutable: maybe\n"
    apply(flow, tmp_path, profile("steps-agent", bad, "maxUpdate: 1"))
    told = ("describe", "clusterprofile", "steps-agent")
    stopped = "0 updated, 0 updating, 1 failed, 1 waiting; 1 at a time"
    eventually("it stops", lambda: stopped in flow.stand.do(*told))
    assert found(flow, "steps-agent") == ["1", "1"]

    good = config("steps-agent", "3")
    apply(flow, tmp_path, profile("steps-agent", good, "maxUpdate: 1"))
    eventually("both follow", lambda: found(flow, "steps-agent") == ["3", "3"], patience=_PATIENCE)
    eventually("it is told", lambda: "2 updated, 0 updating" in flow.stand.do(*told))
    flow.stand.do("delete", "clusterprofile", "steps-agent")
    eventually("all is gone", lambda: found(flow, "steps-agent") == ["", ""], patience=_PATIENCE)


def test_nothing_changes_in_a_paused_cluster(flow: Flow, tmp_path: Path) -> None:
    """A roll-out goes past it; what changed and what was deleted meanwhile follows at once."""
    paced = "maxUpdate: 1"
    apply(flow, tmp_path, profile("steps-kept", config("steps-kept"), paced))
    eventually("all have it", lambda: found(flow, "steps-kept") == ["1", "1"], patience=_PATIENCE)
    apply(flow, tmp_path, profile("steps-past", config("steps-past")))
    eventually("all have both", lambda: found(flow, "steps-past") == ["1", "1"], patience=_PATIENCE)

    flow.stand.do("pause", "cluster", "fleet/source")
    apply(flow, tmp_path, profile("steps-kept", config("steps-kept", "2"), paced))
    flow.stand.do("delete", "clusterprofile", "steps-past")
    eventually(
        "the other follows", lambda: found(flow, "steps-kept") == ["1", "2"], patience=_PATIENCE
    )
    eventually("and is left", lambda: found(flow, "steps-past") == ["1", ""], patience=_PATIENCE)
    told = ("describe", "cluster", "fleet/source")
    for said in ("cannot deploy 'steps-kept'", "cannot withdraw 'steps-past'"):
        eventually("it says why", lambda said=said: said in flow.stand.do(*told))
    assert "steps-" not in flow.failures()

    flow.stand.do("resume", "cluster", "fleet/source")
    eventually("it follows", lambda: found(flow, "steps-kept") == ["2", "2"], patience=_PATIENCE)
    eventually(
        "and is left, too", lambda: found(flow, "steps-past") == ["", ""], patience=_PATIENCE
    )
    flow.stand.do("delete", "clusterprofile", "steps-kept")
    eventually("all is gone", lambda: found(flow, "steps-kept") == ["", ""], patience=_PATIENCE)
