"""`bellhop pause`, `resume` and `set maintenance-window`: profiles, triggers and clusters."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bellhop.api.kinds import DeclarationKey
from bellhop.core import sveltos_annotations
from bellhop.diagnosis.orphans import remove_orphans
from bellhop.errors import ConflictError
from bellhop.installation import Installation
from bellhop.state.cluster import Health
from bellhop.state.deployment import DeploymentStatus
from tests.fakes.kept import require_value
from tests.fakes.manifests import config, holder, join, profile, trigger
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop
from tests.unit.promotions.conftest import promotion

OWN = DeclarationKey("ClusterProfile", "", "own")
TEAM = DeclarationKey("Profile", "team", "own")


def read_annotations(here: Installation, key: DeclarationKey) -> dict[str, Any]:
    kept = require_value(here.records.manifests.get(*key))
    found: dict[str, Any] = kept["metadata"].get("annotations", {})
    return found


@pytest.mark.parametrize(
    ("words", "key", "name"),
    [
        (["own"], OWN, sveltos_annotations.PROFILE_PAUSED),
        (["ClusterProfile/own"], OWN, sveltos_annotations.PROFILE_PAUSED),
        (["team/own"], TEAM, sveltos_annotations.PROFILE_PAUSED),
        (
            ["trigger", "made"],
            DeclarationKey("EventTrigger", "", "made"),
            sveltos_annotations.TRIGGER_PAUSED,
        ),
        (
            ["promotion", "agent"],
            DeclarationKey("ClusterPromotion", "", "agent"),
            sveltos_annotations.PROFILE_PAUSED,
        ),
        (
            ["clusterpromotion/agent"],
            DeclarationKey("ClusterPromotion", "", "agent"),
            sveltos_annotations.PROFILE_PAUSED,
        ),
    ],
)
def test_pauses_and_resumes(
    bellhop: Bellhop, here: Installation, words: list[str], key: DeclarationKey, name: str
) -> None:
    """Each by its own annotation; again changes nothing, and resuming leaves nothing behind."""
    text = join(
        profile(),
        profile(namespace="team"),
        trigger(),
        promotion({"name": "production"}).replace("  annotations: {}\n", ""),
        holder("own", config("x")),
    )
    fleet.declare(here, text)
    before = require_value(here.records.manifests.get(*key))

    assert bellhop("pause", *words).stdout == f"{key.kind} '{key.place}' paused.\n"
    assert read_annotations(here, key) == {name: "true"}
    assert bellhop("pause", *words).stdout == f"{key.kind} '{key.place}' is paused already.\n"

    assert bellhop("resume", *words).stdout == f"{key.kind} '{key.place}' resumed.\n"
    assert bellhop("resume", *words).stdout == f"{key.kind} '{key.place}' is not paused.\n"
    after = require_value(here.records.manifests.get(*key))
    assert after == before


def test_a_triggers_name_pauses_it(bellhop: Bellhop, here: Installation) -> None:
    fleet.declare(here, join(trigger(), holder("own", config("x"))))
    result = bellhop("pause", "made")
    key = DeclarationKey("EventTrigger", "", "made")

    assert result.stdout == "EventTrigger 'made' paused.\n"
    assert "'made' is a trigger" in result.stderr
    assert read_annotations(here, key) == {sveltos_annotations.TRIGGER_PAUSED: "true"}
    assert bellhop("resume", "made").stdout == "EventTrigger 'made' resumed.\n"
    assert read_annotations(here, key) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent"], "cannot pause ClusterProfile 'absent': there is none"),
        (["a/absent"], "cannot pause Profile 'a/absent': there is none"),
        (["trigger", "absent"], "cannot pause trigger 'absent': there is none"),
        ([fleet.PROFILE], "`bellhop pause trigger service-network-policy`"),
        (["trigger"], "name one profile, or `trigger`, `promotion` or `cluster` and its name"),
        (["cluster"], "name one profile, or `trigger`, `promotion` or `cluster` and its name"),
        (["a", "b"], "name one profile, or `trigger`, `promotion` or `cluster` and its name"),
        (["cluster", "fleet/absent"], "no cluster 'fleet/absent'"),
        (["a/b/c"], "'a/b/c' is not a profile"),
        ([], "name one profile, or `trigger`, `promotion` or `cluster` and its name"),
    ],
)
def test_says_what_cannot_be_paused(
    bellhop: Bellhop, here: Installation, words: list[str], said: str
) -> None:
    """A profile that a trigger makes is none that can be: its trigger is named."""
    fleet.populate(here)
    result = bellhop("pause", *words)

    assert result.exit_code != 0
    assert said in " ".join(result.stderr.split())


# Clusters -----------------------------------------------------------------------------------------


WEEKEND = ("--from", "0 20 * * 5", "--to", "0 5 * * 1")


@pytest.fixture
def east(here: Installation) -> str:
    fleet.populate(here)
    [cluster, *_] = here.records.clusters.all()
    here.records.health.put(cluster.key, Health(state="Healthy", swept_at=fleet.BEFORE))
    return cluster.key


def spec(here: Installation, cluster: str) -> dict[str, object]:
    kept = here.records.clusters.get(cluster)
    assert kept
    return dict(kept.value.spec)


def test_a_cluster_is_paused_and_resumed(bellhop: Bellhop, here: Installation, east: str) -> None:
    """By a field of its spec; again changes nothing, and resuming leaves nothing behind."""
    before = spec(here, east)
    assert bellhop("pause", "cluster", east).stdout == f"Cluster '{east}' paused.\n"
    assert spec(here, east) == {**before, "paused": True}
    assert bellhop("pause", "cluster", east).stdout == f"Cluster '{east}' is paused already.\n"

    assert bellhop("resume", "cluster", east).stdout == f"Cluster '{east}' resumed.\n"
    assert bellhop("resume", "cluster", east).stdout == f"Cluster '{east}' is not paused.\n"
    assert spec(here, east) == before


def test_a_window_is_set_reported_and_removed(
    bellhop: Bellhop, here: Installation, east: str
) -> None:
    """It says at once what the cluster is by it, and until when."""
    said = bellhop("set", "maintenance-window", east, *WEEKEND).stdout
    assert f"Cluster '{east}' is " in said
    assert "UTC, when its" in said
    assert spec(here, east)["activeWindow"] == {"from": "0 20 * * 5", "to": "0 5 * * 1"}
    output = bellhop("describe", "cluster", east).stdout
    assert "active from '0 20 * * 5' to '0 5 * * 1', in UTC" in output
    [manifest] = json.loads(bellhop("get", "clusters", "-o", "json").stdout)["items"]
    assert manifest["spec"]["activeWindow"] == {"from": "0 20 * * 5", "to": "0 5 * * 1"}
    now = datetime.now(UTC)
    for name in ("nextPause", "nextUnpause"):
        assert now < datetime.fromisoformat(manifest["status"][name]) < now + timedelta(days=8)

    said = bellhop("set", "maintenance-window", east, "--clear").stdout
    assert said == f"Cluster '{east}' is active at any time.\n"
    assert "activeWindow" not in spec(here, east)


def test_who_resumes_a_cluster_is_notified_that_its_window_is_closed(
    bellhop: Bellhop, east: str
) -> None:
    """Else he would wait for what does not come."""
    closed = ("--from", "0 0 29 2 *", "--to", "0 1 29 2 *")
    bellhop("set", "maintenance-window", east, *closed)
    bellhop("pause", "cluster", east)

    assert "It is paused until 20" in bellhop("resume", "cluster", east).stdout
    by, until = bellhop("resume", "cluster", east).stdout.splitlines()
    assert by == f"Cluster '{east}' is not paused by `bellhop pause`."
    assert until.startswith("It is paused until 20")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give --from and --to, or --clear"),
        (["--from", "* * * * *"], "give --from and --to, or --clear"),
        (["--clear", "--to", "* * * * *"], "give --from and --to, or --clear"),
        (
            ["--from", "0 25 * * *", "--to", "0 5 * * 1"],
            "cannot read the cron expression '0 25 * * *': its hour is invalid for cron; write",
        ),
        (["--from", "0 8 * * *", "--to", "0 8 * * *"], "it closes whenever it opens"),
    ],
)
def test_says_what_is_no_window(
    bellhop: Bellhop, here: Installation, east: str, words: list[str], said: str
) -> None:
    """In one sentence, and the cluster is as it was."""
    before = spec(here, east)
    result = bellhop("set", "maintenance-window", east, *words)

    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert spec(here, east) == before


def test_a_pause_is_shown(bellhop: Bellhop, here: Installation, east: str) -> None:
    bellhop("pause", "cluster", east)
    assert "Paused" in bellhop("get", "clusters").stdout
    assert "it is paused until `bellhop resume`" in bellhop("get", "clusters", "-o", "wide").stdout
    assert "until `bellhop resume`" in bellhop("describe", "cluster", east).stdout
    assert "Paused" in bellhop("status").stdout

    here.records.health.put(east, Health(state="Down", message="no answer"))
    said = bellhop("get", "clusters", "-o", "wide").stdout
    assert "Paused" not in said
    assert "no answer; it is paused until `bellhop resume`" in said


def test_what_waits_for_a_paused_cluster_is_no_failure(
    bellhop: Bellhop, here: Installation, east: str
) -> None:
    """It is counted as waiting, and `show failures` has nothing to say."""
    [old, *_] = here.records.outcomes.of(east)
    waits = DeploymentStatus(
        east, old.profile, old.trigger, old.source, "Provisioning", fleet.BEFORE, "Paused", "waits"
    )
    here.records.outcomes.put(waits)
    status = json.loads(bellhop("status", "-o", "json").stdout)

    [cluster] = [each for each in status["clusters"] if each["cluster"] == east]
    assert (cluster["waiting"], cluster["failing"]) == (1, 0)
    assert old.profile not in bellhop("show", "failures").stdout


def test_orphans_of_a_paused_cluster_stay(bellhop: Bellhop, here: Installation, east: str) -> None:
    """Nothing is removed from it, by hand neither."""
    bellhop("pause", "cluster", east)

    with pytest.raises(ConflictError, match="cannot delete orphans from cluster"):
        list(remove_orphans(here, east))


def test_explains_that_a_cluster_is_paused(bellhop: Bellhop, east: str) -> None:
    bellhop("pause", "cluster", east)
    said = " ".join(bellhop("explain", "trigger", "service-network-policy").stdout.split())

    assert "it is paused until `bellhop resume`" in said
    assert f"`bellhop resume cluster {east}`" in said
