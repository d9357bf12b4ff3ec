"""Commands on objects of the configuration cluster: records that outlast a change of the object."""

from __future__ import annotations

import pytest

from bellhop.api.kinds import DeclarationKey, parse_all
from bellhop.configuration.status import make_status
from bellhop.core.sveltos_annotations import PROFILE_PAUSED
from bellhop.documents.document import read_documents
from bellhop.errors import ConflictError
from bellhop.operations.pause import find_pausable, pause_manifest
from bellhop.operations.rollback import list_revisions, rollback, undo
from tests.fakes.fleet import service
from tests.fakes.manifests import INSTANTIATE, config, holder, profile, source, trigger
from tests.unit.configuration.hub import Hub, find_gvk

OWN = DeclarationKey("ClusterProfile", "", "own")
PAUSED = f"{{name: own, annotations: {{{PROFILE_PAUSED}: 'yes'}}}}"


def ready(hub: Hub) -> tuple[str, str, str]:
    """Return status, reason and message of the profile's condition Ready."""
    status = make_status(hub.fleet.installation(), "ClusterProfile", "", "own")
    assert status
    [found] = [each for each in status["conditions"] if each["type"] == "Ready"]
    return found["status"], found["reason"], found["message"]


def test_a_rollback_outlasts_changes_and_the_status_says_so(hub: Hub) -> None:
    """No spec is written: the object says what is in force once the rollback ends."""
    here = hub.fleet.installation()
    for name in ("first", "second"):
        hub.write(profile(), holder("own", config(name)))
    assert hub.east.names() == ["second"]
    before = hub.kube.get(find_gvk("ClusterProfile"), "", "own")

    assert rollback(here, "own").is_new
    hub.fleet.wait(times=2)
    assert hub.east.names() == ["first"]
    hub.write(profile(more="tier: 50"), holder("own", config("third")))
    hub.fleet.wait(times=2)

    assert hub.east.names() == ["first"]
    assert ready(hub)[:2] == ("False", "RolledBack")
    assert "`bellhop rollback own --end`" in ready(hub)[2]
    after = hub.kube.get(find_gvk("ClusterProfile"), "", "own")
    assert before
    assert after
    assert after["spec"] == {**before["spec"], "tier": 50}
    assert [each.pinned for each in list_revisions(here, "own")][-1]

    undo(here, "own")
    hub.fleet.wait(times=2)
    assert hub.east.names() == ["third"]
    assert ready(hub)[:2] == ("True", "Provisioned")


def test_a_rollback_ends_with_the_object(hub: Hub) -> None:
    """One that is created again gets what it says."""
    for name in ("first", "second"):
        hub.write(profile(), holder("own", config(name)))
    rollback(hub.fleet.installation(), "own")
    hub.fleet.wait(times=2)
    hub.delete("ClusterProfile", "own")
    hub.fleet.wait(times=2)
    assert hub.east.names() == []

    hub.write(profile())
    assert hub.east.names() == ["second"]


def test_a_generated_profile_is_rolled_back(hub: Hub) -> None:
    hub.write(source(), trigger(ref="event"))
    for name in ("first", "second"):
        hub.write(holder("event", config(name), annotations=INSTANTIATE))
        hub.fleet.write("east", service("web"))
        hub.fleet.pump()
    [found] = hub.fleet.records.profiles.heads("made")

    rollback(hub.fleet.installation(), found.name)
    hub.fleet.pump()

    assert hub.east.names() == ["first"]


def test_a_pause_that_the_object_has_is_ended_there(hub: Hub) -> None:
    """Also if a command had paused it before; otherwise it would be paused again by itself."""
    here = hub.fleet.installation()
    hub.write(profile(), holder("own", config("made")))
    assert pause_manifest(here, find_pausable(here, "", "own"), "true") == "configured"
    hub.write(profile().replace("{name: own}", PAUSED))

    with pytest.raises(ConflictError, match="its object in cluster 'fleet/hub' has it"):
        pause_manifest(here, OWN, None)

    hub.write(profile(), holder("own", config("next")))
    assert hub.east.names() == ["next"]
    assert pause_manifest(here, OWN, None) == "unchanged"


def test_what_is_to_be_written_to_the_cluster_can_be_compared(hub: Hub) -> None:
    """`bellhop diff -f` asks that, and apply stays refused."""
    hub.write(profile(), holder("own", config("made")))
    new = parse_all(read_documents(profile(more="tier: 50"), source="file"))

    assert [each.change for each in hub.fleet.declare.preview(new, anywhere=True)] == ["configured"]
    with pytest.raises(ConflictError, match="cluster 'fleet/hub' holds it"):
        hub.fleet.declare.preview(new)
