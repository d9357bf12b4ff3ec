"""How long a profile counts in real clusters: once, until it is paused, or as it was before."""

from __future__ import annotations

from pathlib import Path

from bellhop.core.gvk import GVK, ObjectKey
from tests.flow.conftest import Flow
from tests.flow.test_steps import apply, config, found, profile
from tests.waiting import eventually

_PATIENCE = 60.0
_BOTH = ["1", "1"]


def test_what_is_brought_once_is_the_clusters_own_from_then_on(flow: Flow, tmp_path: Path) -> None:
    """By OneTime neither a change nor an edit counts; what fails is tried until it is deployed."""
    once = "syncMode: OneTime"
    bad = config("modes-once").replace("'1'", "[1]")
    apply(flow, tmp_path, profile("modes-once", bad, once))
    eventually("it fails", lambda: "modes-once" in flow.failures())
    apply(flow, tmp_path, profile("modes-once", config("modes-once"), once))
    eventually("all have it", lambda: found(flow, "modes-once") == _BOTH, patience=_PATIENCE)
    told = ("describe", "clusterprofile", "modes-once")
    eventually("it is told", lambda: flow.stand.do(*told).count("Provisioned") >= 2)

    apply(flow, tmp_path, profile("modes-once", config("modes-once", "2"), once))
    flow.source.delete(ObjectKey(GVK("", "v1", "ConfigMap"), "default", "modes-once"))
    flow.stand.do("resync", "fleet/source")
    # Another profile comes by the same queues after it: had it been asked for, it would be there.
    apply(flow, tmp_path, profile("modes-after", config("modes-after")))
    eventually("another has come", lambda: found(flow, "modes-after") == _BOTH, patience=_PATIENCE)
    assert found(flow, "modes-once") == ["", "1"]

    flow.stand.do("redeploy", "modes-once")
    eventually(
        "it is brought again", lambda: found(flow, "modes-once") == ["2", "2"], patience=_PATIENCE
    )
    flow.stand.do("delete", "clusterprofile", "modes-once", "modes-after")
    eventually("it is gone", lambda: found(flow, "modes-once") == ["", ""], patience=_PATIENCE)


def test_a_paused_profile_waits_and_a_rolled_back_one_stays(flow: Flow, tmp_path: Path) -> None:
    """What changes meanwhile comes when that ends; a revision is chosen by its number."""
    for v in "12":
        apply(flow, tmp_path, profile("modes-kept", config("modes-kept", v)))
        eventually(
            "it is there", lambda v=v: found(flow, "modes-kept") == [v, v], patience=_PATIENCE
        )

    flow.stand.do("pause", "modes-kept")
    apply(flow, tmp_path, profile("modes-past", config("modes-past")))
    held = "metadata: {name: modes-kept, annotations: {profile.projectsveltos.io/paused: ok}}"
    third = profile("modes-kept", config("modes-kept", "3"))
    apply(flow, tmp_path, third.replace("metadata: {name: modes-kept}", held))
    eventually("another has come", lambda: found(flow, "modes-past") == _BOTH, patience=_PATIENCE)
    assert found(flow, "modes-kept") == ["2", "2"]
    flow.stand.do("resume", "modes-kept")
    eventually("it follows", lambda: found(flow, "modes-kept") == ["3", "3"], patience=_PATIENCE)

    flow.stand.do("rollback", "modes-kept", "--to", "1")
    eventually("it is as it was", lambda: found(flow, "modes-kept") == _BOTH, patience=_PATIENCE)
    apply(flow, tmp_path, profile("modes-kept", config("modes-kept", "4")))
    flow.stand.do("delete", "clusterprofile", "modes-past")
    eventually(
        "another has gone", lambda: found(flow, "modes-past") == ["", ""], patience=_PATIENCE
    )
    assert found(flow, "modes-kept") == _BOTH
    flow.stand.do("rollback", "modes-kept", "--end")
    eventually(
        "it is as declared", lambda: found(flow, "modes-kept") == ["4", "4"], patience=_PATIENCE
    )
    flow.stand.do("delete", "clusterprofile", "modes-kept")
    eventually("it is gone", lambda: found(flow, "modes-kept") == ["", ""], patience=_PATIENCE)
