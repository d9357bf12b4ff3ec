"""A management cluster of Sveltos that is taken over: annotations, finalizers, and the way back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import yaml

from bellhop.configuration.origin import clear_configuration_cluster, set_configuration_cluster
from bellhop.core.sveltos_annotations import ADOPT_FROM
from bellhop.deploy.features.resources.adoption import take_fields
from bellhop.errors import MissingError
from bellhop.state.profile import Profile
from tests.fakes.fleet import service
from tests.fakes.manifests import INSTANTIATE, config, holder, profile, source, trigger
from tests.unit.configuration.hub import HUB, Hub, find_gvk
from tests.unit.promotions.conftest import manual, promotion, version

SVELTOS = "application/apply-patch"


def annotations(hub: Hub, kind: str, name: str) -> dict[str, str]:
    stored = hub.fleet.records.manifests.get(kind, "", name)
    assert stored
    return dict(stored.value["metadata"].get("annotations") or {})


def take_over(hub: Hub) -> None:
    set_configuration_cluster(hub.fleet.installation(), HUB, taken_over=True)
    hub.fleet.pump()


def test_manifests_get_the_annotation_and_objects_do_not(hub: Hub) -> None:
    """Those that were read before, too; and it stays if the cluster is set again."""
    hub.write(profile(), holder("own", config("made")))
    take_over(hub)
    set_configuration_cluster(hub.fleet.installation(), HUB)
    hub.write(source(), trigger(ref="own"))
    hub.write(profile(more="tier: 50"))

    assert annotations(hub, "ClusterProfile", "own") == {ADOPT_FROM: "sveltos"}
    assert annotations(hub, "EventTrigger", "made") == {ADOPT_FROM: "sveltos"}
    assert annotations(hub, "EventSource", "watched") == {}
    found = hub.kube.get(find_gvk("ClusterProfile"), "", "own")
    assert found
    assert "annotations" not in found["metadata"]
    assert hub.east.names() == ["made"]


@pytest.mark.parametrize("kind", ["ClusterProfile", "EventSource"])
def test_a_deleted_object_leaves_though_sveltos_kept_it(hub: Hub, kind: str) -> None:
    """A finalizer of anybody else stays."""
    take_over(hub)
    [document] = yaml.safe_load_all(
        profile(name="one") if kind == "ClusterProfile" else source(name="one")
    )
    document["metadata"]["finalizers"] = ["one.finalizer.projectsveltos.io", "example.com/mine"]
    hub.write(yaml.safe_dump(document))

    hub.delete(kind, "one")

    left = hub.kube.get(find_gvk(kind), "", "one")
    assert left
    assert left["metadata"]["finalizers"] == ["example.com/mine"]


def test_given_back_it_leaves_all_that_was_deployed(hub: Hub) -> None:
    """Also in a second run, after a death."""
    take_over(hub)
    made = config("made-{{ .Resource.metadata.name }}")
    hub.write(profile(), holder("own", config("made")))
    hub.write(source(), trigger(ref="event"), holder("event", made, annotations=INSTANTIATE))
    hub.fleet.deploy(profile(name="mine"), holder("mine", config("of-files")))
    hub.fleet.write("east", service("web"))
    hub.fleet.pump()
    assert hub.east.names() == ["made", "made-web", "of-files"]
    here = hub.fleet.installation()
    # The run that died had come so far.
    here.declare.configure(HUB, "preview")

    assert clear_configuration_cluster(here, leave=True) == HUB
    hub.fleet.pump()

    assert hub.east.names() == ["made", "made-web", "of-files"]
    assert not hub.is_stored("ClusterProfile", "own")
    assert not hub.is_stored("EventTrigger", "made")
    assert hub.is_stored("ClusterProfile", "mine")
    kept = hub.kube.get(find_gvk("ClusterProfile"), "", "own")
    assert kept
    assert kept["metadata"]["finalizers"] == ["clusterprofilefinalizer.projectsveltos.io"]
    owned = hub.east.get(find_gvk("ConfigMap"), "default", "made")
    assert owned
    assert "projectsveltos.io/owner-name" not in owned["metadata"]["annotations"]
    with pytest.raises(MissingError):
        clear_configuration_cluster(here, leave=True)


def deployed(kind: str, name: str, manager: str = SVELTOS) -> dict[str, Any]:
    """Return the metadata of an object that a profile deployed."""
    marks = {"projectsveltos.io/owner-kind": kind, "projectsveltos.io/owner-name": name}
    fields = [
        {"manager": manager, "operation": "Apply", "fieldsV1": {"f:data": {}}},
        {"manager": "kubectl", "operation": "Update"},
    ]
    return {
        "metadata": {"resourceVersion": "7", "annotations": marks, "managedFields": fields},
    }


@pytest.mark.parametrize(
    ("trigger_name", "title", "there", "taken"),
    [
        ("", "", deployed("ClusterProfile", "web"), True),
        ("", "", deployed("ClusterProfile", "other"), False),
        ("", "", deployed("Profile", "web"), False),
        ("", "", deployed("ClusterProfile", "web", "bellhop"), False),
        ("", "", {"metadata": {}}, False),
        ("quota", "", deployed("ClusterProfile", "sveltos-x7fg"), True),
        ("quota", "quota-shop", deployed("ClusterProfile", "quota-shop"), True),
        ("quota", "", deployed("ClusterProfile", "web"), False),
    ],
)
def test_a_profile_takes_what_its_own_declaration_had_deployed(
    trigger_name: str,
    title: str,
    there: dict[str, Any],
    taken: bool,  # noqa: FBT001
) -> None:
    """With the fields that Sveltos applied; those of others stay theirs."""
    own = Profile(
        name="quota-1" if trigger_name else "web",
        trigger=trigger_name,
        cluster="",
        object="",
        contents=(),
        destinations=(),
        digest="",
        title=title,
        adopts_sveltos=True,
    )

    patch = take_fields(own, there)

    assert (patch is not None) == taken
    if patch:
        managers = [each["manager"] for each in patch["metadata"]["managedFields"]]
        assert (managers, patch["metadata"]["resourceVersion"]) == (["bellhop", "kubectl"], "7")


def test_a_promotion_leaves_what_it_deployed_if_it_is_given_back(hub: Hub) -> None:
    """And nothing of it stays in force, also where its profiles would."""
    take_over(hub)
    text = promotion({"name": "production"}, preserveClusterProfilesOnDelete=True)
    hub.write(version("1"), text)
    hub.fleet.wait(timedelta(seconds=1), times=12)
    assert hub.east.names() == ["agent"]
    assert annotations(hub, "ClusterPromotion", "agent") == {ADOPT_FROM: "sveltos"}

    clear_configuration_cluster(hub.fleet.installation(), leave=True)
    hub.fleet.wait(timedelta(minutes=1), times=3)

    assert hub.east.names() == ["agent"]
    assert hub.fleet.records.promotions.get("agent") is None
    assert not hub.fleet.records.manifests.has("ClusterProfile", "", "agent-production")


def test_profiles_that_sveltos_made_for_stages_have_no_effect(hub: Hub) -> None:
    """They leave if they are deleted; one whose promotion left it to the user is the user's."""
    take_over(hub)
    hub.write(promotion({"name": "production"}))
    for name, of in (("agent-production", "agent"), ("own", "deleted")):
        [document] = yaml.safe_load_all(profile(name=name))
        document["metadata"]["labels"] = {"config.projectsveltos.io/promotionname": of}
        document["metadata"]["finalizers"] = ["clusterprofilefinalizer.projectsveltos.io"]
        hub.write(yaml.safe_dump(document))
    assert hub.fleet.records.manifests.has("ClusterProfile", "", "own")
    assert not hub.fleet.records.manifests.has("ClusterProfile", "", "agent-production")

    hub.delete("ClusterProfile", "agent-production")
    assert hub.kube.get(find_gvk("ClusterProfile"), "", "agent-production") is None


def test_a_promotion_goes_on_where_sveltos_was_once_its_inputs_are_known(hub: Hub) -> None:
    """The status that Bellhop writes meanwhile does not count."""
    [document] = yaml.safe_load_all(promotion(manual("staging"), {"name": "production"}))
    hub.fleet.register("one", env="staging")
    document["status"] = {"currentStageName": "production"}
    take_over(hub)
    hub.write(yaml.safe_dump(document))
    hub.write(version("1"))
    hub.fleet.wait(timedelta(seconds=1), times=12)

    kept = hub.fleet.records.promotions.get("agent")
    assert kept
    assert [each.phase for each in kept.value.stages] == ["Promoted", "Promoted"]
    assert [each.passed for each in kept.value.stages] == [1, 1]
