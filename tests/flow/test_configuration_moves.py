"""The configuration moves into a cluster, and commands work there as with files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bellhop.core.gvk import ObjectKey
from tests.fakes.manifests import config, holder, profile, source, trigger
from tests.flow.conftest import Flow, await_calls
from tests.flow.test_configuration_cluster import CONFIG_MAP, HUB, PROFILE, Hub
from tests.scenarios import service
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(300)

EAST = "clusterSelector: {matchLabels: {dep: eng}}"
OWN = profile(EAST), holder("own", config("own"))
LABELLED = ", labelFilters: [{key: sveltos, operation: Has}]"
TO_EAST = "destinationClusterSelector: {matchLabels: {dep: eng}}"


def hold(flow: Flow) -> Hub:
    """Have the source cluster hold the configuration, and wait until it sends events of it."""
    one = Hub(flow)
    one.stand.do("install", "crds", HUB)
    one.stand.do("set", "configuration-cluster", HUB)
    one.settle()
    one.await_events()
    one.settle()
    return one


def ready(flow: Flow) -> str:
    """Return the reason of the ClusterProfile's condition Ready; empty before the first."""
    stored = flow.source.get(ObjectKey(PROFILE, "", "own")) or {}
    conditions = stored.get("status", {}).get("conditions", [])
    return next((str(each["reason"]) for each in conditions if each["type"] == "Ready"), "")


def deployed(flow: Flow) -> dict[str, tuple[str, str]]:
    """Return uid and version of each ConfigMap that profiles deployed."""
    found = [each["metadata"] for each in flow.destination.list(CONFIG_MAP)]
    ours = [each for each in found if "projectsveltos.io/reason" in each.get("labels", {})]
    return {each["name"]: (each["uid"], each["resourceVersion"]) for each in ours}


def test_files_become_objects_and_nothing_is_deployed_again(flow: Flow, tmp_path: Path) -> None:
    """A first trigger, too, which files have in a form that no definition serves."""
    former = trigger(more=TO_EAST).replace("EventTrigger", "EventBasedAddOn")
    made = holder("made", config("made-{{ .Resource.metadata.name }}"))
    text = "---\n".join([*OWN, source(more=LABELLED), former, made])
    flow.stand.do("apply", "-f", "-", stdin=text)
    flow.stand.settle(HUB)
    await_calls(flow.source_cluster)
    flow.source.create(service("web", sveltos="fv"))
    eventually("all is deployed", lambda: deployed(flow).keys() == {"made-web", "own"})
    before = deployed(flow)

    folder = tmp_path / "fleet"
    flow.stand.do("export", "--for-cluster", str(folder))
    hub = hold(flow)
    for file in sorted(folder.iterdir()):
        hub.write(file.read_text())

    def is_moved() -> bool:
        printed = flow.stand.do("get", "configuration", "-o", "json")
        found = [each["status"] for each in yaml.safe_load(printed)["items"]]
        return all(each["origin"] == HUB and each["inForce"] for each in found)

    eventually("the cluster holds all of it", is_moved)
    hub.settle()
    assert deployed(flow) == before

    flow.source.create(service("shop", sveltos="fv"))
    eventually("the trigger is at work", lambda: "made-shop" in deployed(flow))
    flow.source.delete(ObjectKey(PROFILE, "", "own"))
    eventually("it is withdrawn", lambda: "own" not in deployed(flow))


def test_commands_do_the_same_as_with_files(flow: Flow) -> None:
    """No command writes a spec: a rollback and a pause outlast the next changes of objects."""
    hub = hold(flow)
    first, second = (holder("own", config(name)) for name in ("one", "two"))
    hub.write(profile(EAST), first)
    eventually("it is deployed", hub.is_deployed("one"))
    hub.post(second)
    eventually("it is changed", hub.is_deployed("two"))

    assert "own" in hub.stand.do("get", "clusterprofiles")
    assert "fleet/destination" in hub.stand.do("describe", "clusterprofile", "own")
    assert "ConfigMap default/own" in hub.stand.do("history", "own")
    explained = hub.stand.do("explain", "fleet/destination", "ConfigMap", "default/two")
    assert "own" in explained
    assert hub.stand.bellhop("diff", "own").returncode == 0
    compared = hub.stand.bellhop("diff", "-f", "-", stdin=profile(EAST, more="tier: 50"))
    assert (compared.returncode, "tier: 50" in compared.stdout) == (1, True), compared.stderr
    for line in (("apply", "-f", "-"), ("delete", "-f", "-")):
        refused = hub.stand.bellhop(*line, stdin=profile(EAST, more="tier: 50"))
        assert refused.returncode == 1
        assert f"cluster '{HUB}' holds it" in " ".join(refused.stderr.split())

    hub.stand.do("rollback", "own")
    eventually("it is rolled back", hub.is_deployed("one"))
    eventually("the status says so", lambda: ready(hub) == "RolledBack")
    hub.write(profile(EAST, more="tier: 50"), holder("own", config("three")))
    assert hub.deployed() == ["one"]
    hub.stand.do("rollback", "own", "--end")
    eventually("the object is in force", hub.is_deployed("three"))

    hub.stand.do("pause", "clusterprofile", "own")
    hub.write(profile(EAST, more="tier: 60"), holder("own", config("four")))
    assert hub.deployed() == ["three"]
    hub.stand.do("resume", "clusterprofile", "own")
    eventually("it goes on", hub.is_deployed("four"))
    stored = hub.source.get(ObjectKey(PROFILE, "", "own"))
    assert stored
    assert stored["spec"]["tier"] == 60
    assert "annotations" not in stored["metadata"]
