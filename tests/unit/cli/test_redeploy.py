"""`bellhop redeploy`, `show orphans` and `delete orphans` as they are typed."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.installation import Installation
from bellhop.state.deployment import Orphan
from infra.lab.cluster import Cluster
from tests.fakes.kept import require_value
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop


def test_asks_for_what_is_held(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)
    result = bellhop("redeploy", fleet.PROFILE, "--cluster", "default/workload")

    assert result.stdout == "Asked for 1 deployment.\n"
    assert "`bellhop serve` does not answer" in result.stderr
    kept = require_value(here.records.inventories.get("default/workload", fleet.PROFILE))
    assert {each.digest for each in kept.held.values()} == {""}


def test_a_trigger_means_all_that_it_made(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)
    here.records.profiles.put(fleet.profile(name="other"))
    here.records.outcomes.put(fleet.outcome(profile="other"))
    here.records.outcomes.put(fleet.outcome(profile="own", trigger=""))
    result = bellhop("redeploy", "service-network-policy")
    unchecked = bellhop("redeploy", "service-network-policy", "--unchecked")

    assert result.stdout == "Asked for 2 deployments.\n"
    assert "is a trigger: this applies to all profiles that it generated" in result.stderr
    assert "--unchecked goes with one profile" in unchecked.stderr
    here.records.outcomes.delete("default/workload", "other")
    here.records.outcomes.delete("default/workload", fleet.PROFILE)
    none = bellhop("redeploy", "service-network-policy").stderr
    assert "profiles of trigger 'service-network-policy': none of them is in any cluster" in none


def test_only_what_is_to_go_goes_unchecked(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)

    assert "--unchecked goes with one profile" in bellhop("redeploy", "--unchecked").stderr
    refused = bellhop("redeploy", fleet.PROFILE, "--unchecked")
    assert f"leave the checks of '{fleet.PROFILE}' out: it is still wanted" in refused.stderr
    assert refused.exit_code == 1


def test_shows_orphans(bellhop: Bellhop, here: Installation) -> None:
    """Each with the profile that its marks name; what is foreign is none."""
    fleet.populate(here)
    assert bellhop("show", "orphans").stderr == "No orphans found.\n"
    for what in ("stray", "foreign"):
        key = fleet.POLICY._replace(name=what)
        orphan = Orphan("stray" if what == "stray" else "foreign", "p", "u", "v1", fleet.now())
        here.records.findings.put("default/workload", key, orphan)

    [row] = json.loads(bellhop("show", "orphans", "-o", "json").stdout)
    assert (row["object"], row["profile"]) == ("NetworkPolicy default/stray", "p")
    assert bellhop("show", "orphans", "--cluster", "default/other").stdout == ""


def test_what_is_just_being_applied_is_said(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)
    kept = require_value(here.records.inventories.get("default/workload", fleet.PROFILE))
    until = here.records.clock.now() + timedelta(minutes=1)
    here.records.inventories.put(replace(kept, worker="another", until=until))

    result = bellhop("redeploy", fleet.PROFILE)

    assert f"'{fleet.PROFILE}' is just being applied to 'default/workload'" in result.stderr


@pytest.mark.parametrize(
    "words",
    ["orphans --cluster a/b", "--cluster a/b orphans", "--namespace a orphans --cluster=b"],
)
@pytest.mark.usefixtures("here")
def test_orphans_may_follow_options(bellhop: Bellhop, words: str) -> None:
    """Options stand before or after the word; as a name or a value it is no command."""
    assert "there is no cluster 'a/b'" in bellhop("delete", *words.split()).stderr
    for other in ("configmap orphans", "configmap x -n orphans"):
        assert "there is none" in bellhop("delete", *other.split()).stderr


def test_deletes_orphans(
    bellhop: Bellhop, here: Installation, source_cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "kubeconfig").write_text(json.dumps(source_cluster.kubeconfig()))
    registered = bellhop(
        *("register", "cluster", "--cluster", "stray", "--namespace", "default", "--no-forwarder"),
        *("--kubeconfig", str(tmp_path / "kubeconfig")),
    )
    assert registered.exit_code == 0, registered.output
    key = fleet.POLICY._replace(name="gone")
    here.records.findings.put("default/stray", key, Orphan("stray", "p", "u", "v1", fleet.now()))

    removed = bellhop("delete", "orphans", "--cluster", "default/stray")
    again = bellhop("delete", "orphans", "--cluster", "default/stray")

    assert removed.stdout == "Kept NetworkPolicy default/gone of 'p'.\n"
    assert again.stderr == "No orphans found.\n"
