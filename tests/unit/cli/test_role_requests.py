"""RoleRequests on the command line: what was asked for, where it is, and what failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from msgspec.structs import replace

from bellhop.extras.roles.manifests import with_account
from bellhop.installation.installation import Installation
from bellhop.state.record import Cluster, Inventory
from tests.fakes.clock import START
from tests.fakes.manifests import holder
from tests.unit.cli.fleet import outcome, profile
from tests.unit.stages.test_role_requests import request, role

Bellhop = Callable[..., Result]
NAME = "RoleRequest:anns"
DENIED = "cannot apply Role 'team/writes-1' on cluster 'fleet/west': it is forbidden"


@pytest.fixture
def two(bellhop: Bellhop, here: Installation, tmp_path: Path) -> Installation:
    """A cluster that has the rights, and one that refuses them."""
    for name in ("east", "west"):
        labels = {"env": "production"}
        here.declare.register(Cluster("fleet", name, labels, "v1.34.2", name, START))
    file = tmp_path / "request.yaml"
    file.write_text(f"{request()}---\n{holder('roles', role())}")
    assert bellhop("apply", "-f", str(file)).exit_code == 0
    clusters = ("fleet/east", "fleet/west")
    own = {"name": NAME, "trigger": "", "cluster": "", "object": "", "destinations": clusters}
    here.records.profiles.put(profile(**own, contents=with_account((), "team/ann")))
    mine = {"profile": NAME, "trigger": "", "source": ""}
    here.records.outcomes.put(outcome(**mine, cluster="fleet/east", phase="Provisioned"))
    failed = {"phase": "Failed", "reason": "Denied", "message": DENIED}
    here.records.outcomes.put(outcome(**mine, cluster="fleet/west", **failed))
    return here


def test_get_shows_whose_rights_and_where(bellhop: Bellhop, two: Installation) -> None:
    """As a table, by each of its names, and as the manifest with its status."""
    for name in ("rolerequests", "rolerequest", "rr"):
        assert bellhop("get", name).stdout.splitlines() == [
            "NAME   ACCOUNT    PROVISIONED   STATE",
            "anns   team/ann   1/2           Failed",
        ]

    shown = yaml.safe_load(bellhop("get", "rr", "anns", "-o", "yaml").stdout)
    assert shown["spec"]["serviceAccountName"] == "ann"
    assert [each["name"] for each in shown["status"]["matchingClusters"]] == ["east", "west"]
    assert bellhop("get", "clusterprofiles", "-o", "name").stdout == ""
    assert bellhop("get", "rr", "-o", "name").stdout == ("rolerequest.lib.projectsveltos.io/anns\n")
    assert two.catalogs.current().profiles.keys() == {NAME}


def test_describe_and_failures_tell_what_was_refused(bellhop: Bellhop, two: Installation) -> None:
    """With the cluster, and the kind by which people know it."""
    said = bellhop("describe", "rolerequest", "anns").stdout
    for each in ("Account", "team/ann", "ServiceAccount team/ann", DENIED):
        assert each in said

    assert f"{NAME} to fleet/west" in bellhop("show", "failures", "-o", "json").stdout
    assert two.catalogs.current().profiles


def test_one_that_nobody_brought_yet_is_shown(
    bellhop: Bellhop, here: Installation, tmp_path: Path
) -> None:
    """As being brought, with its account; a warning says that no cluster is selected."""
    file = tmp_path / "request.yaml"
    file.write_text(request())
    said = bellhop("apply", "-f", str(file))
    assert said.stdout == "rolerequest.lib.projectsveltos.io/anns created\n"
    assert "RoleRequest 'anns' selects no cluster" in said.stderr
    assert "ConfigMap 'default/roles', which is not there yet" in said.stderr

    assert bellhop("get", "rr").stdout.splitlines()[1].split() == [
        "anns",
        "team/ann",
        "0/0",
        "Provisioning",
    ]
    assert bellhop("delete", "rolerequest", "anns").exit_code == 0
    assert here.catalogs.current().profiles == {}


def test_one_on_its_way_out_is_shown(bellhop: Bellhop, two: Installation) -> None:
    """As long as a cluster has something of it, though its manifest is gone."""
    two.records.profiles.put(
        replace(
            profile(name=NAME, trigger="", cluster="", object="", destinations=(), contents=()),
            digest="",
            leaves=True,
        )
    )
    two.records.departures.begin(("", "", NAME), ("fleet/west",))
    two.records.inventories.put(Inventory("fleet/west", NAME, {}))
    assert bellhop("delete", "rr", "anns").exit_code == 0

    assert bellhop("get", "rr").stdout.splitlines()[1].startswith("anns ")


@pytest.mark.parametrize("word", ["RoleRequest/anns", "rolerequest/anns", "RoleRequest:anns"])
def test_commands_on_profiles_take_it_by_its_kind(
    bellhop: Bellhop, two: Installation, word: str
) -> None:
    """Without its kind the name is a ClusterProfile's."""
    assert bellhop("pause", word).stdout == "RoleRequest 'anns' paused.\n"
    assert bellhop("get", "rr").stdout.splitlines()[1].split()[-1] == "Paused"
    assert bellhop("resume", word).exit_code == 0
    assert bellhop("redeploy", word).exit_code == 0

    refused = bellhop("redeploy", "anns")
    assert refused.exit_code == 1
    assert "cannot redeploy profile 'anns'" in refused.stderr
    assert two.catalogs.current().profiles


def test_it_is_completed_by_its_kind(bellhop: Bellhop, two: Installation) -> None:
    """Where profiles are, as `RoleRequest/NAME`."""
    words = {"COMP_WORDS": "bellhop pause ", "COMP_CWORD": "2"}
    said = bellhop(_BELLHOP_COMPLETE="bash_complete", **words).stdout
    assert "RoleRequest/anns" in said
    assert two.catalogs.current().profiles
