"""`bellhop diff PROFILE` as it is typed: which profiles, its exit codes, and what it leaves out."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.deploy.features.resources.planning import desired_objects
from bellhop.installation import Installation
from infra.lab.cluster import Cluster
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

CREATE = "default/workload: Create NetworkPolicy 'default/front-my-service'"
TRIGGER = "service-network-policy"


@pytest.fixture
def reached(here: Installation, source_cluster: Cluster) -> Installation:
    """The example's cluster is a real one, which lacks the NetworkPolicy that records have."""
    fleet.populate(here)
    here.records.profiles.put(fleet.profile(number=1, latest=1))
    kubeconfig = sanitise(source_cluster.kubeconfig(), reach=LOCAL)
    here.secrets.put("kubeconfig/default/workload", json.dumps(kubeconfig.to_dict()).encode())
    return here


def hold_as_desired(here: Installation) -> None:
    """Have the inventory hold the NetworkPolicy as the profile renders it."""
    kept = here.records.inventories.get("default/workload", fleet.PROFILE)
    assert kept
    (desired,) = desired_objects(fleet.profile().contents, tier=100)
    held = {key: replace(each, digest=desired.digest) for key, each in kept.value.held.items()}
    here.records.inventories.put(replace(kept.value, held=held))


@pytest.mark.usefixtures("reached")
@pytest.mark.parametrize(
    "words",
    [fleet.PROFILE, TRIGGER, f"eventtrigger {TRIGGER}", f"{TRIGGER} --cluster default/workload"],
)
def test_a_change_has_exit_code_1(bellhop: Bellhop, words: str) -> None:
    """As `diff -f` has it; a trigger's name means all profiles that it generated."""
    result = bellhop("diff", *words.split())

    assert result.stdout == f"{CREATE} of '{fleet.PROFILE}'\n"
    assert result.exit_code == 1


def test_what_was_not_compared_is_said(bellhop: Bellhop, reached: Installation) -> None:
    """An object that is missing in the cluster, and not by the records, is found by --live."""
    hold_as_desired(reached)
    recorded, live = bellhop("diff", fleet.PROFILE), bellhop("diff", fleet.PROFILE, "--live")

    assert (recorded.stdout, recorded.exit_code) == ("", 0)
    assert recorded.stderr == (
        "Nothing would change.\n1 object that is as applied by Bellhop's records was not compared"
        " with the clusters; `bellhop diff --live` compares it, too\n"
    )
    assert (live.stdout, live.exit_code) == (f"{CREATE} of '{fleet.PROFILE}'\n", 1)
    assert "not compared" not in live.stderr


def test_what_an_api_server_refuses_has_exit_code_2(
    bellhop: Bellhop, reached: Installation
) -> None:
    """1 would mean that something differs."""
    (content,) = fleet.profile().contents
    (manifest,) = content.manifests
    wrong = {**manifest, "metadata": {"name": "No_Name", "namespace": "default"}}
    reached.records.profiles.put(fleet.profile(contents=(replace(content, manifests=(wrong,)),)))
    result = bellhop("diff", fleet.PROFILE)

    assert "Error NetworkPolicy 'default/No_Name'" in result.stdout
    assert result.exit_code == 2


@pytest.mark.usefixtures("reached")
@pytest.mark.parametrize("words", ["other", "eventtrigger other"])
def test_a_name_that_is_not_there_has_exit_code_2(bellhop: Bellhop, words: str) -> None:
    """It is an error, and no difference."""
    assert bellhop("diff", *words.split()).exit_code == 2


def test_live_belongs_to_profiles(bellhop: Bellhop) -> None:
    """Files are compared with what is stored."""
    assert "in no cluster" in bellhop("diff", "-f", "-", "--live", stdin="").stderr
