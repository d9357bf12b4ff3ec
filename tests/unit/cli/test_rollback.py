"""`bellhop rollback` and `bellhop history` as they are typed."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.installation import Installation
from bellhop.profiles.records import place
from tests.fakes.kept import require_value
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

NAME = fleet.PROFILE


@pytest.fixture
def revised(here: Installation) -> Installation:
    """An installation with a profile that holds its second revision."""
    fleet.populate(here)
    fleet.revise(here)
    return here


@pytest.mark.usefixtures("revised")
def test_goes_back_and_says_until_when(bellhop: Bellhop, state: Path) -> None:
    result = bellhop("rollback", NAME)
    again = bellhop("rollback", NAME)

    until = f"revision 1; it stays there until `bellhop rollback {NAME} --end`.\n"
    assert result.stdout == f"Rolled '{NAME}' back to {until}"
    assert again.stdout == f"'{NAME}' is rolled back already, to {until}"
    assert "`bellhop serve` does not answer; it is done once it runs" in result.stderr
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Who holds the folder works, whether clusters reach it or not.
        assert bellhop("rollback", NAME).stderr == ""
    assert "Rolled back" in bellhop("describe", "clusterprofile", NAME).stdout
    assert "rolled back to revision 1" in bellhop("get", "clusterprofiles", "-o", "wide").stdout
    [output] = json.loads(bellhop("get", "clusterprofiles", "-o", "json").stdout)["items"]
    assert output["status"]["rolledBackTo"] == 1


@pytest.mark.usefixtures("revised")
def test_is_undone_once(bellhop: Bellhop) -> None:
    """And says so where there is nothing to undo."""
    bellhop("rollback", NAME, "--to", "2")

    assert bellhop("rollback", NAME, "--end").stdout == f"'{NAME}' follows its manifest again.\n"
    assert bellhop("rollback", NAME, "--end").stdout == f"'{NAME}' follows its manifest already.\n"


@pytest.mark.usefixtures("revised")
def test_what_is_in_force_comes_last(bellhop: Bellhop) -> None:
    """The first revision, to which the profile went back, follows the second one in time."""
    bellhop("rollback", NAME)
    found = json.loads(bellhop("history", NAME, "-o", "json").stdout)

    assert [(each["revision"], each["state"]) for each in found] == [(2, ""), (1, "rolled back")]


TRIGGER = "service-network-policy"


def test_a_trigger_means_all_profiles_that_it_made(bellhop: Bellhop, revised: Installation) -> None:
    revised.records.profiles.put(fleet.profile(name="young", number=1, latest=1))
    result = bellhop("rollback", TRIGGER)
    listed = bellhop("history", TRIGGER)

    assert result.exit_code == 0, result.stderr
    assert "'service-network-policy' is a trigger: this applies to all profiles" in result.stderr
    assert f"Rolled '{NAME}' back to revision 1" in result.stdout
    assert "warning: cannot roll back 'young' to what it held before" in result.stderr
    assert listed.stdout.splitlines()[0].split()[:2] == ["PROFILE", "REVISION"]
    rows = json.loads(bellhop("history", TRIGGER, "-o", "json").stdout)
    assert [(row["profile"], row["revision"]) for row in rows] == [
        (NAME, 2),
        (NAME, 1),
        ("young", 1),
    ]
    assert "--to goes with one profile" in bellhop("rollback", TRIGGER, "--to", "1").stderr
    undone = bellhop("rollback", TRIGGER, "--end").stdout
    assert f"'{NAME}' follows its manifest again.\n" in undone


def test_a_profile_comes_before_a_trigger_of_its_name(
    bellhop: Bellhop, revised: Installation
) -> None:
    """As nobody could name it otherwise; and a trigger that made nothing says so."""
    revised.records.profiles.put(
        fleet.profile(name=TRIGGER, trigger="", cluster="", object="", number=1, latest=1)
    )
    [row] = json.loads(bellhop("history", TRIGGER, "-o", "json").stdout)
    fleet.declare(revised, fleet.MANIFESTS.replace(f"name: {TRIGGER}", "name: idle"))
    idle = bellhop("history", "idle")

    assert "profile" not in row
    assert "trigger 'idle' has made no profile that holds anything" in idle.stderr
    assert idle.exit_code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((NAME, "--to", "7"), f"cannot roll back '{NAME}' to revision 7: kept are 1; `bellhop"),
        (("other",), "cannot roll back profile 'other': there is none of that name"),
        ((NAME, "--to", "0"), "invalid value for '--to'"),
        ((NAME, "--to", "1", "--end"), "say --to or --end, not both"),
    ],
)
def test_what_cannot_be_done_is_said(
    bellhop: Bellhop, revised: Installation, words: tuple[str, ...], said: str
) -> None:
    """In a sentence, and nothing is changed."""
    result = bellhop("rollback", *words)

    assert result.exit_code
    assert said in result.stderr
    kept = require_value(revised.records.profiles.get(*place(fleet.profile())))
    assert not kept.pinned


@pytest.mark.parametrize(
    ("how", "warned"),
    [({"paused": True}, "it is paused"), ({"sync": "OneTime"}, "its syncMode is OneTime")],
)
def test_what_keeps_clusters_from_following_is_reported(
    bellhop: Bellhop, revised: Installation, how: dict[str, object], warned: str
) -> None:
    """With the command that ends it."""
    kept = require_value(revised.records.profiles.get(*place(fleet.profile())))
    revised.records.profiles.put(replace(kept, **how))

    assert warned in bellhop("rollback", NAME).stderr


@pytest.mark.usefixtures("revised")
def test_who_applies_something_to_it_is_warned(bellhop: Bellhop) -> None:
    """Be it the trigger, or the ConfigMap that it names; nobody is for another, nor after undo."""
    holder = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: default}\n"
    mended = holder.replace("NAME", "network-policy") + "data: {policy.yaml: ''}\n"
    assert "rolled back" not in bellhop("apply", "-f", "-", stdin=mended).stderr
    bellhop("rollback", NAME)
    said = f"warning: '{NAME}' was rolled back to revision 1, and stays at it"

    assert said in bellhop("apply", "-f", "-", stdin=mended).stderr
    assert said in bellhop("apply", "-f", "-", stdin=fleet.MANIFESTS).stderr
    assert "rolled back" not in bellhop("apply", "-f", "-", stdin=holder).stderr
    bellhop("rollback", NAME, "--end")
    assert "rolled back" not in bellhop("apply", "-f", "-", stdin=mended).stderr


def test_who_applies_a_profile_that_is_rolled_back_is_warned(
    bellhop: Bellhop, here: Installation
) -> None:
    """A user's own, too."""
    own = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: web}
spec: {policyRefs: [{kind: ConfigMap, namespace: default, name: web}]}
"""
    bellhop("apply", "-f", "-", stdin=own)
    made = fleet.profile(name="web", trigger="", cluster="", object="", pinned=True, number=3)
    here.records.profiles.put(made)

    assert "'web' was rolled back to revision 3" in bellhop("apply", "-f", "-", stdin=own).stderr
