"""Promotions as they are listed, described and decided about on the command line."""

from __future__ import annotations

import json
import os
import pwd
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.core.digest import digest
from bellhop.installation import Installation
from bellhop.state.promotion import PromotionState, Release, StagePhase, StageState, Visit
from tests.fakes.kept import require_value
from tests.unit.cli.conftest import Bellhop
from tests.unit.promotions.conftest import auto, manual, promotion, version

MINUTE = timedelta(minutes=1)
LAST = {"name": "production"}


@pytest.fixture
def agent(bellhop: Bellhop, here: Installation, tmp_path: Path) -> PromotionState:
    """A promotion whose second release waits at the second of three stages."""
    path = tmp_path / "agent.yaml"
    stages = auto("staging", delay="1h"), manual("canary"), {"name": "production"}
    path.write_text(f"{version('1')}---\n{promotion(*stages)}")
    assert bellhop("apply", "-f", str(path)).exit_code == 0
    now = here.records.clock.now()
    first = Visit(1, now - 9 * MINUTE, now - 8 * MINUTE)
    second = Visit(2, now - 7 * MINUTE, now - 6 * MINUTE)
    both, here_still = (first, second), (first, replace(second, passed_at=None))
    stages_now = (
        StageState("staging", 2, "Promoted", now - 6 * MINUTE, passed=2, visits=both),
        StageState("canary", 2, "AwaitingApproval", now - 5 * MINUTE, passed=1, visits=here_still),
        StageState("production", 1, "Promoted", now - 8 * MINUTE, passed=1, visits=(first,)),
    )
    state = PromotionState("agent", 2, stages_now)
    here.records.promotions.put(state)
    for number, mark in ((1, "a"), (2, "b")):
        recipe = {"ConfigMap default/agent": mark}
        here.records.releases.put(Release("agent", number, mark, now, recipe))
    return state


@pytest.mark.usefixtures("agent")
def test_lists_where_the_newest_release_is(bellhop: Bellhop) -> None:
    result = bellhop("get", "promotions")
    header, *_ = result.stdout.splitlines()
    assert header.split() == ["NAME", "RELEASE", "STAGE", "STATE", "SINCE", "NEXT"]
    row = result.stdout.splitlines()[1].split(maxsplit=5)
    assert row[:4] == ["agent", "2", "canary", "AwaitingApproval"]
    assert row[5] == "promotes to production once it is approved"
    item = json.loads(bellhop("get", "promotion", "agent", "-o", "json").stdout)
    assert item["status"]["currentStageName"] == "canary"
    assert [each["release"] for each in item["status"]["stages"]] == [2, 2, 1]


@pytest.mark.usefixtures("agent")
def test_describes_each_stage(bellhop: Bellhop) -> None:
    shown = bellhop("describe", "promotion", "agent").stdout
    assert "Newest release" in shown
    assert "canary" in shown
    assert "release 1" in shown


@pytest.mark.usefixtures("agent")
def test_approves_once(bellhop: Bellhop, here: Installation) -> None:
    first = bellhop("approve", "promotion", "agent", "--reason", "CHG-4711")
    again = bellhop("approve", "promotion/agent")

    assert first.stdout == "Approved release 2 of promotion 'agent' at stage 'canary'.\n"
    assert again.stdout == "Release 2 of promotion 'agent' is approved already at stage 'canary'.\n"
    kept = here.records.promotions.get("agent")
    assert kept
    approval = kept.value.stage("canary").approval
    assert approval
    assert (approval.release, approval.reason) == (2, "CHG-4711")
    assert "CHG-4711" in bellhop("describe", "promotion", "agent").stdout


@pytest.mark.usefixtures("agent")
def test_rejects(bellhop: Bellhop, here: Installation) -> None:
    result = bellhop("reject", "promotion", "agent", "--stage", "canary")
    assert result.stdout == "Rejected release 2 of promotion 'agent' at stage 'canary'.\n"
    kept = here.records.promotions.get("agent")
    assert kept
    assert kept.value.stage("canary").rejected == 2
    again = bellhop("reject", "promotion", "agent", "--reason", "no")
    assert again.stdout == "Release 2 of promotion 'agent' is rejected already at stage 'canary'.\n"


@pytest.mark.usefixtures("agent")
def test_a_rejection_is_shown_with_its_author_and_reason(
    bellhop: Bellhop, here: Installation
) -> None:
    bellhop("reject", "promotion", "agent", "--stage", "canary", "--reason", "CHG-1")
    user = pwd.getpwuid(os.getuid()).pw_name
    rows = json.loads(bellhop("history", "promotion", "agent", "-o", "json").stdout)
    assert rows[-1]["state"] == f"rejected by {user}: CHG-1"
    kept = require_value(here.records.promotions.get("agent"))
    stop(here, "Rejected", kept.stage("canary").rejection)
    row = bellhop("get", "promotions").stdout.splitlines()[1]
    assert row.endswith(f"goes no further: rejected by {user}: CHG-1")


@pytest.mark.usefixtures("agent")
def test_the_environment_does_not_say_who_approves(
    bellhop: Bellhop, here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("LOGNAME", "USER"):
        monkeypatch.setenv(each, "mallory")
    bellhop("approve", "promotion", "agent")
    approval = require_value(here.records.promotions.get("agent")).stage("canary").approval
    assert approval
    assert approval.by == pwd.getpwuid(os.getuid()).pw_name


@pytest.mark.usefixtures("agent")
def test_forces_a_release_only_if_it_is_said(bellhop: Bellhop) -> None:
    refused = bellhop("promote", "promotion", "agent", "--stage", "production")
    assert refused.exit_code == 2
    assert "--force skips the conditions" in refused.stderr
    forced = bellhop("promote", "promotion", "agent", "--stage", "production", "--force")
    assert forced.stdout == "Stage 'production' of promotion 'agent' gets release 2.\n"
    again = bellhop("promote", "promotion", "agent", "--stage", "production", "--force")
    assert again.stdout == "Stage 'production' of promotion 'agent' has release 2 already.\n"
    rows = json.loads(bellhop("history", "promotion", "agent", "-o", "json").stdout)
    assert f"here, forced by {pwd.getpwuid(os.getuid()).pw_name}" in [x["state"] for x in rows]


@pytest.mark.usefixtures("agent")
def test_a_decision_about_a_paused_promotion_warns(bellhop: Bellhop) -> None:
    bellhop("pause", "promotion", "agent")
    for command in (
        ("approve", "promotion", "agent"),
        ("rollback", "promotion", "agent", "--stage", "staging"),
    ):
        assert "warning: it is paused; `bellhop resume promotion agent`" in bellhop(*command).stderr


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("rollback agent-canary", "`bellhop rollback promotion agent --stage canary`"),
        ("rollback agent-canary --end", "`bellhop rollback promotion agent --stage canary --end`"),
        ("pause clusterprofile agent-canary", "`bellhop pause promotion agent`"),
        ("resume agent-canary", "`bellhop resume promotion agent`"),
        ("delete clusterprofile agent-canary", "`bellhop delete clusterpromotion agent`"),
        ("delete clusterprofiles agent-canary --ignore-not-found", "remove the stage from it"),
    ],
)
def test_the_profile_of_a_stage_is_changed_by_its_promotion(
    bellhop: Bellhop, command: str, instead: str
) -> None:
    result = bellhop(*command.split())
    assert result.exit_code != 0
    assert "'agent-canary': stage 'canary' of promotion 'agent' makes it" in result.stderr
    assert instead in result.stderr


@pytest.mark.usefixtures("agent")
def test_rolls_a_stage_back_and_ends_that(bellhop: Bellhop) -> None:
    back = bellhop("rollback", "promotion", "agent", "--stage", "staging")
    assert "Stage 'staging' of promotion 'agent' returns to release 1; it stays" in back.stdout
    again = bellhop("rollback", "promotion", "agent", "--stage", "staging")
    assert "Stage 'staging' of promotion 'agent' has release 1 already; it stays" in again.stdout
    rows = json.loads(bellhop("history", "promotion", "agent", "-o", "json").stdout)
    states = [each["state"] for each in rows if each["stage"] == "staging"]
    assert states[-1] == f"rolled back to, by {pwd.getpwuid(os.getuid()).pw_name}"
    other = bellhop("rollback", "promotion", "agent", "--stage", "canary", "--end")
    assert "is not rolled back: it has release 2." in other.stdout
    end = bellhop("rollback", "promotion", "agent", "--stage", "staging", "--end")
    assert end.stdout == "Stage 'staging' of promotion 'agent' gets release 2 again.\n"
    wrong = bellhop("rollback", "promotion", "agent")
    assert "name the stage of the promotion, by --stage" in wrong.stderr


@pytest.mark.usefixtures("agent")
def test_lists_the_releases_of_each_stage(bellhop: Bellhop) -> None:
    rows = json.loads(bellhop("history", "promotion", "agent", "-o", "json").stdout)
    assert [(each["release"], each["stage"]) for each in rows] == [
        (1, "staging"),
        (1, "canary"),
        (1, "production"),
        (2, "staging"),
        (2, "canary"),
    ]
    assert rows[-1]["changed"] == "ConfigMap default/agent changed"


@pytest.mark.usefixtures("agent")
def test_a_diff_names_the_release_that_comes_next(bellhop: Bellhop) -> None:
    found = bellhop("diff", "promotion", "agent", "--stage", "production")
    assert found.stdout == (
        "Release 2, which is AwaitingApproval at stage 'canary', comes next to stage 'production'"
        " of promotion 'agent', which has no clusters.\n"
    )
    assert (found.stderr, found.exit_code) == ("Nothing would change.\n", 0)
    rows = bellhop("diff", "promotion/agent", "--stage", "production", "-o", "json")
    assert json.loads(rows.stdout) == []
    assert rows.stderr.startswith("Release 2, which is")
    files = bellhop("diff", "-f", "absent.yaml", "--stage", "production")
    assert "-f compares manifests with what is stored" in files.stderr
    two = bellhop("diff", "promotion", "agent", "other", "--stage", "production")
    assert "name one promotion: each has stages of its own" in two.stderr


def test_a_release_that_failed_and_was_rolled_back_is_not_superseded(
    bellhop: Bellhop, here: Installation, agent: PromotionState
) -> None:
    now = here.records.clock.now()
    canary = agent.stage("canary")
    visits = (*canary.visits, Visit(1, now, rolled_back=True), Visit(2, now + MINUTE))
    stages = tuple(replace(x, visits=visits) if x is canary else x for x in agent.stages)
    here.records.promotions.put(replace(agent, stages=stages))
    rows = json.loads(bellhop("history", "promotion", "agent", "-o", "json").stdout)
    states = [each["state"] for each in rows if each["stage"] == "canary"]
    assert states == ["promoted", "rolled back", "rolled back to", "here"]


@pytest.mark.usefixtures("agent")
def test_a_promotion_that_is_not_there_is_named(bellhop: Bellhop) -> None:
    result = bellhop("approve", "promotion", "agnt")
    assert result.exit_code == 1
    assert "there is no promotion 'agnt'; did you mean 'agent'?" in result.stderr
    assert bellhop("approve", "agent").exit_code == 2


def test_a_stage_that_soaks_says_when_it_is_over_and_when_its_window_opens(
    bellhop: Bellhop, here: Installation, tmp_path: Path
) -> None:
    window = {"from": "0 20 * * *", "to": "0 23 * * *"}
    path = tmp_path / "agent.yaml"
    path.write_text(promotion(auto("staging", delay="1h", promotionWindow=window), LAST))
    bellhop("apply", "-f", str(path))
    now = here.records.clock.now()
    staging = StageState("staging", 1, "Soaking", now, whole_at=now - 30 * MINUTE)
    here.records.promotions.put(PromotionState("agent", 1, (staging,)))
    row = bellhop("get", "promotions").stdout.splitlines()[1]
    assert "promotes to production in 2" in row or "promotes to production in 30 min" in row
    assert row.endswith(" min, if the window (from 20:00 UTC) is open")


def stop(here: Installation, phase: StagePhase, message: str) -> None:
    """Have the second stage stop with its release."""
    kept = here.records.promotions.get("agent")
    assert kept
    stages = tuple(
        replace(each, phase=phase, message=message) if each.name == "canary" else each
        for each in kept.value.stages
    )
    here.records.promotions.put(replace(kept.value, stages=stages))


WAIT = ("wait", "promotion", "agent", "--for=promoted", "--timeout", "0s")


@pytest.mark.usefixtures("agent")
def test_waits_for_the_newest_release_at_a_stage(bellhop: Bellhop, here: Installation) -> None:
    """A pipeline goes on only once what it has applied is there."""
    assert "its newest release is not made yet" in bellhop(*WAIT, "--stage", "staging").stderr
    spec = here.catalogs.current().promotions["agent"].profile_spec
    release = require_value(here.records.releases.head("agent", 2))
    recipe = {"profileSpec": digest(spec)[:16]}
    here.records.releases.put(replace(release, recipe=recipe))

    done = bellhop(*WAIT, "--stage", "staging")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "clusterpromotion.config.projectsveltos.io/agent promoted\n"
    waits = bellhop(*WAIT)
    assert waits.exit_code == 75
    assert "release 2 is AwaitingApproval at stage 'canary'" in waits.stderr
    bellhop("rollback", "promotion", "agent", "--stage", "staging")
    assert bellhop(*WAIT, "--stage", "staging").exit_code == 75
    wrong = bellhop(*WAIT, "--stage", "canry")
    assert "its stages are staging, canary, production" in wrong.stderr
    other = bellhop("wait", "cluster", "--all", "--for=ready", "--stage", "canary")
    assert "--stage goes with" in other.stderr


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize("phase", ["Stalled", "Empty", "RolledBack"])
def test_a_stage_that_stops_is_a_failure(
    bellhop: Bellhop, here: Installation, phase: StagePhase
) -> None:
    assert "promotion" not in bellhop("show", "failures").stdout
    stop(here, phase, "fleet/a: refused")
    shown = " ".join(bellhop("show", "failures").stdout.split())
    assert f"release 2 is {phase}: fleet/a: refused" in shown
    assert "promotion stage 'canary' of 'agent'" in shown
    assert f"release 2 is {phase}" in bellhop("status").stdout


@pytest.mark.usefixtures("agent")
def test_a_stage_that_a_user_has_rolled_back_is_no_failure(
    bellhop: Bellhop, here: Installation
) -> None:
    bellhop("rollback", "promotion", "agent", "--stage", "staging")
    kept = here.records.promotions.get("agent")
    assert kept
    assert kept.value.stage("staging").phase == "RolledBack"
    assert "promotion" not in bellhop("show", "failures").stdout


@pytest.mark.usefixtures("agent")
def test_status_lists_a_paused_promotion_once(bellhop: Bellhop) -> None:
    bellhop("pause", "promotion", "agent")
    assert "promotion agent; `bellhop resume` ends that" in bellhop("status").stdout


@pytest.mark.usefixtures("agent")
def test_decisions_are_in_the_event_log(bellhop: Bellhop) -> None:
    bellhop("approve", "promotion", "agent", "--reason", "CHG-4711")
    shown = bellhop("show", "events").stdout
    assert "approved" in shown
    assert "CHG-4711" in shown
