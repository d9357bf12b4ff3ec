"""Writer of statuses and mirrors: what is written, once, and what is deleted."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bellhop.configuration.conditions import stall
from bellhop.configuration.definitions import DEFINITIONS
from bellhop.configuration.writer import ALL, OwnObject, StatusMirrorWriter
from bellhop.core.gvk import GVK, Resource
from bellhop.errors import DeniedError, InvalidError, TemporaryError, UnreachableError
from bellhop.installation import InstallationView
from bellhop.logs import Log
from bellhop.state import messages
from bellhop.state.messages import WriteStatus
from bellhop.state.profile import Profile
from tests.fakes.fleet import Fleet, service
from tests.fakes.hooks import failing
from tests.fakes.kube import Call, FakeKube
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)

HUB = "fleet/hub"
PAUSE = timedelta(seconds=1)
PROFILE = GVK("config.projectsveltos.io", "v1beta1", "ClusterProfile")
SUMMARY = GVK("config.projectsveltos.io", "v1beta1", "ClusterSummary")
REPORT = GVK("lib.projectsveltos.io", "v1beta1", "EventReport")
OWN = join(profile(), holder("own", config("a", 'v: "1"')))
EVENTS = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
MESSAGE = WriteStatus("ClusterProfile", "", "own")
IN_EAST = WriteStatus("ClusterProfile", "", "own", cluster="fleet/east")
WRITES = ("apply", "apply status", "merge", "remove")


class Hub:
    """The configuration cluster, and a writer for it."""

    def __init__(self, fleet: Fleet, sorts: Collection[str] = ALL) -> None:
        self.fleet = fleet
        self.kube = fleet.register("hub")
        for each in DEFINITIONS:
            gvk = GVK(each.group, "v1beta1", each.kind)
            subresources = ("status",) if each.status else ()
            namespaced = each.scope == "Namespaced"
            self.kube.serve(Resource(gvk, each.plural, namespaced, subresources=subresources))
        self.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fleet"}})
        self.there = True
        self.own: dict[str, OwnObject] = {}
        self.writer = StatusMirrorWriter(
            InstallationView(records=fleet.records, catalogs=fleet.catalogs),
            fleet.access,
            lambda: fleet.catalogs.current().clusters[HUB] if self.there else None,
            lambda _kind, _namespace, name: self.own.get(name),
            Log(fleet.output),
            pause=PAUSE,
            sorts=sorts,
        )

    def store(self, text: str, generation: int = 1) -> OwnObject:
        """Store a user's object, as kubectl does."""
        manifest = yaml.safe_load(text)
        uid = self.kube.put(manifest)["metadata"]["uid"]
        found = self.own[manifest["metadata"]["name"]] = OwnObject(uid, generation)
        return found

    def write(self, message: WriteStatus, *, wait: bool = True) -> list[str]:
        """Handle a message a second later; return the verbs of what it wrote."""
        if wait:
            self.fleet.clock.advance(PAUSE)
        before = len(self.kube.calls)
        self.writer.handle(message)
        return [each.verb for each in self.kube.calls[before:] if each.verb in WRITES]

    def status(self, name: str = "own") -> dict[str, Any]:
        found = self.kube.get(PROFILE, "", name)
        assert found
        status: dict[str, Any] = found.get("status") or {}
        return status


@pytest.fixture
def hub(fleet: Fleet, east: FakeKube) -> Hub:
    assert east.version()
    return Hub(fleet)


def generated(fleet: Fleet) -> WriteStatus:
    """Return the message of the only generated profile."""
    [head] = fleet.records.profiles.heads("made")
    assert isinstance(head, Profile)
    place = {"trigger": head.trigger, "source": head.cluster}
    return WriteStatus("ClusterProfile", "", head.name, **place)


def test_a_status_is_written_once(hub: Hub) -> None:
    """It is compared with what was written, and not with the cluster."""
    hub.fleet.deploy(OWN)
    hub.store(profile())

    first, second = hub.write(MESSAGE), hub.write(MESSAGE)

    assert (first, second) == (["apply status"], [])
    assert hub.status()["updatedClusters"]["clusters"][0]["name"] == "east"
    assert hub.status()["observedGeneration"] == 1


def test_a_change_within_the_pause_waits(hub: Hub) -> None:
    """The queue keeps the message until then."""
    hub.fleet.deploy(OWN)
    hub.store(profile())
    hub.write(MESSAGE)

    with pytest.raises(TemporaryError) as refused:
        hub.write(MESSAGE, wait=False)

    assert refused.value.delay == PAUSE


def test_a_clock_that_was_ahead_holds_nothing(hub: Hub) -> None:
    """What it wrote last is of the future."""
    hub.fleet.deploy(OWN)
    hub.store(profile())
    hub.write(MESSAGE)
    written = hub.fleet.records.written
    kept = written.get("ClusterProfile//own", "status")
    assert kept
    ahead = replace(kept.value, at=kept.value.at + timedelta(hours=1))
    written.put("ClusterProfile//own", "status", ahead)

    assert hub.write(MESSAGE) == []


def test_a_new_generation_is_observed(hub: Hub) -> None:
    """The times of its conditions stay."""
    hub.fleet.deploy(OWN)
    own = hub.store(profile())
    hub.write(MESSAGE)
    before = hub.status()["conditions"]
    hub.own["own"] = own._replace(generation=2)

    assert hub.write(MESSAGE) == ["apply status"]

    after = hub.status()["conditions"]
    assert hub.status()["observedGeneration"] == 2
    assert [each["lastTransitionTime"] for each in after] == [
        each["lastTransitionTime"] for each in before
    ]


def test_a_definition_without_conditions_gets_the_rest(hub: Hub) -> None:
    """As Sveltos' definitions; one refusal is enough for ten minutes."""
    hub.fleet.deploy(OWN)
    own = hub.store(profile())
    apply = hub.kube.apply_status

    def refusing(manifest: Any, *, uid: str) -> None:
        if "conditions" in manifest["status"]:
            hub.kube.calls.append(Call("apply status", PROFILE, "", "refused"))
            raise InvalidError("refused: .status.conditions: field not declared in schema")
        apply(manifest, uid=uid)

    hub.kube.apply_status = refusing  # type: ignore[method-assign]
    first = hub.write(MESSAGE)
    hub.own["own"] = own._replace(generation=2)
    second = hub.write(MESSAGE)

    assert (len(first), len(second)) == (2, 1)
    assert hub.status()["updatedClusters"]["clusters"][0]["name"] == "east"
    assert "observedGeneration" not in hub.status()


def test_a_refused_object_says_why(hub: Hub) -> None:
    """Though nothing of it is known."""
    own = hub.store(profile(name="new"))
    hub.own["new"] = own._replace(refusal=stall("Invalid", "spec.tier: must be at least 1"))

    hub.write(WriteStatus("ClusterProfile", "", "new"))

    assert hub.status("new")["conditions"][0]["message"] == "spec.tier: must be at least 1"


def test_an_object_that_was_created_again_is_left_to_its_event(hub: Hub) -> None:
    """The UID that is known is not the one that is there."""
    hub.fleet.deploy(OWN)
    hub.store(profile())
    hub.own["own"] = OwnObject("another", 1)

    assert hub.write(MESSAGE) == ["apply status"]
    assert hub.status() == {}


def test_a_summary_is_written_owned_and_deleted(hub: Hub) -> None:
    """Each cluster has a message of its own; the profile's own one deletes what it has left."""
    hub.fleet.deploy(OWN)
    own = hub.store(profile())
    first = hub.write(IN_EAST)
    [summary] = hub.kube.objects(SUMMARY)

    assert first == ["apply", "apply status"]
    assert hub.write(IN_EAST) == []
    assert summary["metadata"]["ownerReferences"][0]["uid"] == own.uid
    assert summary["status"]["featureSummaries"][0]["status"] == "Provisioned"

    hub.fleet.deploy(profile("clusterRefs: []"))
    assert hub.write(MESSAGE) == ["apply status", "remove"]
    assert hub.kube.objects(SUMMARY) == []


def test_a_profile_does_not_delete_the_summaries_of_its_clusters(hub: Hub) -> None:
    """Its message computes none of them."""
    hub.fleet.deploy(OWN)
    hub.store(profile())
    hub.write(IN_EAST)

    hub.write(MESSAGE)

    assert len(hub.kube.objects(SUMMARY)) == 1


def test_a_generated_profile_owns_its_summaries(hub: Hub) -> None:
    """It is written first, by whichever message comes first; its end deletes both."""
    hub.fleet.deploy(EVENTS)
    stored = hub.fleet.write("east", service("a"))
    hub.fleet.pump()
    message = generated(hub.fleet)

    hub.write(replace(message, cluster="fleet/east"))

    [made], [summary] = hub.kube.objects(PROFILE), hub.kube.objects(SUMMARY)
    assert summary["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert hub.write(message) == []

    hub.fleet.drop("east", stored)
    hub.fleet.wait(timedelta(minutes=5))
    hub.write(message)
    assert hub.kube.objects(PROFILE) == hub.kube.objects(SUMMARY) == []


def test_a_mirror_whose_writer_died_is_deleted_with_its_profile(hub: Hub) -> None:
    """Before it recorded the write; the profile leaves the cluster before another one writes."""
    hub.fleet.deploy(OWN)
    hub.store(profile())
    with (
        failing(hub.kube, "apply_status", KeyboardInterrupt()),
        pytest.raises(KeyboardInterrupt),
    ):
        hub.write(IN_EAST)
    assert len(hub.kube.objects(SUMMARY)) == 1

    hub.fleet.deploy(profile("clusterRefs: []"))
    hub.write(MESSAGE)

    assert hub.kube.objects(SUMMARY) == []


def test_a_generated_profile_whose_writer_died_still_owns_its_summaries(hub: Hub) -> None:
    """Another one writes it first, and knows its UID."""
    hub.fleet.deploy(EVENTS)
    hub.fleet.write("east", service("a"))
    hub.fleet.pump()
    in_east = replace(generated(hub.fleet), cluster="fleet/east")
    with (
        failing(hub.kube, "apply", KeyboardInterrupt()),
        pytest.raises(KeyboardInterrupt),
    ):
        hub.write(in_east)

    hub.write(in_east)

    [made], [summary] = hub.kube.objects(PROFILE), hub.kube.objects(SUMMARY)
    assert summary["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


def test_a_users_profile_in_the_place_of_a_lost_mirror_stays(hub: Hub) -> None:
    """It has the name of a generated one whose writer died before it wrote."""
    hub.fleet.deploy(EVENTS)
    stored = hub.fleet.write("east", service("a"))
    hub.fleet.pump()
    message = generated(hub.fleet)
    with (
        failing(hub.kube, "apply", KeyboardInterrupt()),
        pytest.raises(KeyboardInterrupt),
    ):
        hub.write(message)
    [kept] = [
        place for place, _ in hub.fleet.records.written.rows(f"made/fleet/east/{message.name}")
    ]
    name = kept.rpartition("/")[2]
    hub.kube.put(yaml.safe_load(profile(name=name)))

    hub.fleet.drop("east", stored)
    hub.fleet.wait(timedelta(minutes=5))
    hub.write(message)

    assert hub.kube.names(PROFILE) == [name]
    assert not list(hub.fleet.records.written.rows(f"made/fleet/east/{message.name}"))


def test_nothing_is_kept_of_the_status_of_a_deleted_object(hub: Hub) -> None:
    hub.fleet.deploy(OWN)
    hub.store(profile())
    hub.write(MESSAGE)
    hub.own.clear()

    hub.write(MESSAGE)

    assert hub.fleet.records.written.get("ClusterProfile//own", "status") is None


def test_a_report_is_written_for_each_cluster(hub: Hub) -> None:
    """And deleted where its source is not in force any more."""
    hub.fleet.register("west", env="production")
    hub.fleet.deploy(EVENTS)
    message = WriteStatus("EventSource", "", "watched")

    hub.write(message)
    names = sorted(each["metadata"]["name"] for each in hub.kube.objects(REPORT))
    hub.fleet.delete("EventTrigger", "made")
    hub.write(message)

    assert names == ["sveltos--watched--east", "sveltos--watched--west"]
    assert hub.kube.objects(REPORT) == []


def test_only_the_chosen_sorts_are_written(fleet: Fleet, east: FakeKube) -> None:
    """With `status` a profile costs one object, however many clusters it has."""
    assert east.version()
    hub = Hub(fleet, {"status"})
    fleet.deploy(OWN)
    hub.store(profile())

    assert hub.write(MESSAGE) == ["apply status"]
    assert hub.write(IN_EAST) == []


def test_a_missing_namespace_is_created(hub: Hub) -> None:
    """A cluster that files registered has none there."""
    hub.kube.drop(GVK("", "v1", "Namespace"), "", "fleet")
    hub.fleet.deploy(OWN)

    hub.write(IN_EAST)

    assert len(hub.kube.objects(SUMMARY)) == 1


def test_what_the_api_server_refuses_is_logged_and_written_later(hub: Hub) -> None:
    """It is no dead letter."""
    hub.fleet.deploy(OWN)
    hub.kube.fail_with(InvalidError("refused: spec.x"), "apply")
    hub.write(IN_EAST)
    hub.kube.fail_with(DeniedError("denied"), "apply")
    hub.write(IN_EAST)

    hub.kube.fail_with(None)
    hub.write(IN_EAST)

    assert len(hub.kube.objects(SUMMARY)) == 1
    assert "refused: spec.x" in hub.fleet.output.getvalue()


def test_a_cluster_that_does_not_answer_is_tried_again(hub: Hub) -> None:
    """By the queue, which keeps the message."""
    hub.fleet.deploy(OWN)
    hub.kube.fail_with(UnreachableError("no route"), "apply")

    with pytest.raises(UnreachableError):
        hub.write(IN_EAST)


def test_without_a_configuration_cluster_nothing_is_written(hub: Hub) -> None:
    """Messages may be in the queue when it is cleared."""
    hub.fleet.deploy(OWN)
    hub.there = False

    assert hub.write(MESSAGE) == []


def test_the_message_reads_back() -> None:
    """A version that does not know it leaves it to this one."""
    body = IN_EAST.message().body

    assert messages.read(body) == IN_EAST
    assert body["schema"] == 2
