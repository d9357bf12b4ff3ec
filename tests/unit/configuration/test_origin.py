"""The configuration cluster: set, previewed, ended; and the list of where manifests are kept."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml

from bellhop.configuration.origin import (
    clear_configuration_cluster,
    list_configuration,
    set_configuration_cluster,
)
from bellhop.errors import ConflictError, InvalidError, MissingError
from bellhop.settings import Settings, read
from tests.fakes.manifests import config, holder, profile
from tests.unit.configuration.hub import HUB, SETTLE, Hub, find_gvk


def rows(hub: Hub) -> list[tuple[str, str, str, bool]]:
    found = list_configuration(hub.fleet.installation())
    return [(each.key.kind, each.key.place, each.origin, each.in_force) for each in found]


def test_lists_where_each_manifest_is_kept(hub: Hub) -> None:
    """An object of the cluster that files are in the way of is there beside theirs."""
    hub.fleet.deploy(profile(name="mine"))
    hub.write(profile(), holder("own", config("made")), profile(name="mine", more="tier: 3"))

    assert rows(hub) == [
        ("ClusterProfile", "mine", HUB, False),
        ("ClusterProfile", "mine", "files", True),
        ("ClusterProfile", "own", HUB, True),
        ("ConfigMap", "default/own", HUB, True),
    ]


def test_one_cluster_holds_it(hub: Hub) -> None:
    here = hub.fleet.installation()
    with pytest.raises(ConflictError, match=f"'{HUB}' holds it; end that first"):
        set_configuration_cluster(here, "fleet/east", preview=False)
    assert set_configuration_cluster(here, HUB, preview=True).configuration == "preview"


def test_a_cluster_without_a_definition_is_refused(hub: Hub) -> None:
    here = hub.fleet.installation()
    hub.kube.unserve(find_gvk("ClusterSet"))
    with pytest.raises(MissingError, match=r"does not serve clustersets\.lib\."):
        set_configuration_cluster(here, HUB, preview=False)


def test_ended_it_leaves_everything_to_files(hub: Hub) -> None:
    hub.write(profile(), holder("own", config("made")))
    here = hub.fleet.installation()

    assert clear_configuration_cluster(here) == HUB
    hub.fleet.pump()

    assert hub.east.names() == ["made"]
    assert rows(hub) == [
        ("ClusterProfile", "own", "files", True),
        ("ConfigMap", "default/own", "files", True),
    ]
    hub.fleet.delete("ClusterProfile", "own")
    assert hub.east.names() == []
    with pytest.raises(MissingError, match="no cluster holds the configuration"):
        clear_configuration_cluster(here)


def _deploy_controller(hub: Hub, ready: int) -> None:
    metadata = {"name": "projectsveltos"}
    hub.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    hub.kube.put(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"namespace": "projectsveltos", "name": "event-manager"},
            "status": {"readyReplicas": ready},
        }
    )


def _write_status(hub: Hub, manager: str, at: datetime) -> None:
    """Have a status written by the controllers of Sveltos, or by others."""
    fields = {"manager": manager, "time": f"{at:%Y-%m-%dT%H:%M:%SZ}", "fieldsV1": {"f:status": {}}}
    [written] = yaml.safe_load_all(profile(name="shared"))
    written["metadata"]["managedFields"] = [fields]
    hub.kube.put(written)


def test_a_cluster_with_controllers_of_sveltos_is_only_previewed(hub: Hub) -> None:
    here = hub.fleet.installation()
    _deploy_controller(hub, ready=1)

    with pytest.raises(ConflictError, match=r"'projectsveltos/event-manager' has pods that are"):
        set_configuration_cluster(here, HUB, preview=False)
    assert set_configuration_cluster(here, HUB, preview=True).configuration == "preview"

    _deploy_controller(hub, ready=0)
    assert set_configuration_cluster(here, HUB, preview=False).configuration == "on"


@pytest.mark.parametrize(
    ("manager", "minutes", "refused"),
    [("manager", 9, True), ("manager", 11, False), ("bellhop", 1, False)],
)
def test_a_status_of_late_shows_a_controller(
    hub: Hub, manager: str, minutes: int, *, refused: bool
) -> None:
    """One of a shard or of another namespace is found by what it writes."""
    here = hub.fleet.installation()
    _write_status(hub, manager, hub.fleet.clock.now() - timedelta(minutes=minutes))

    with (
        pytest.raises(ConflictError, match="ClusterProfile 'shared'") if refused else nullcontext()
    ):
        set_configuration_cluster(here, HUB, preview=False)


def test_a_setting_chooses_what_is_written(tmp_path: Path) -> None:
    """With `status` a fleet of any size costs one object each."""
    hub = Hub(tmp_path, Settings(mirrors="status"))
    hub.write(profile(), holder("own", config("made")))
    hub.fleet.wait(SETTLE)

    found = hub.kube.get(find_gvk("ClusterProfile"), "", "own")
    assert found
    assert [each["name"] for each in found["status"]["matchingClusters"]] == ["east"]
    assert hub.kube.names(find_gvk("ClusterProfile")._replace(kind="ClusterSummary")) == []
    hub.fleet.close()


def test_a_setting_that_chooses_nothing_known_is_refused() -> None:
    assert read({"BELLHOP_MIRRORS": ""}).mirrors == ""
    with pytest.raises(InvalidError, match="'everything' is not one of status, summaries"):
        read({"BELLHOP_MIRRORS": "status,everything"})
