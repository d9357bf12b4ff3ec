"""`bellhop show dryrun` and `bellhop diff` as they are typed."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.installation.installation import Installation
from bellhop.state.record import Change, Phase, Preview
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

CLUSTER = "default/workload"
DIFF = "--- is\n+++ would be\n@@ -1 +1 @@\n-a\n+b\n"
CHANGES = (
    Change(Identity("apps", "Deployment", "shop", "web"), "Update", "2 lines", DIFF),
    Change(Identity("", "ConfigMap", "shop", "same"), "No Action", "it is as it was applied"),
)


@pytest.fixture
def dry(here: Installation) -> Installation:
    """A profile that is tried dry."""
    fleet.populate(here)
    here.records.profiles.put(fleet.profile(sync="DryRun"))
    here.records.previews.put(Preview(CLUSTER, fleet.PROFILE, fleet.now(), CHANGES))
    here.records.outcomes.put(replace(fleet.outcome(), phase="DryRun", message="1 to update"))
    return here


@pytest.mark.usefixtures("dry")
def test_has_the_columns_of_sveltosctl(bellhop: Bellhop) -> None:
    """A row for each object, and all of it as JSON."""
    titles, *rows = bellhop("show", "dryrun", "--namespace", "default").stdout.splitlines()

    assert [each.strip() for each in titles.split("  ") if each.strip()] == [
        *("CLUSTER", "RESOURCE TYPE", "NAMESPACE", "NAME", "ACTION", "MESSAGE", "PROFILE")
    ]
    assert len(rows) == 2
    assert rows[0].split()[:5] == [CLUSTER, "apps:Deployment", "shop", "web", "Update"]
    first = json.loads(bellhop("show", "dryrun", "-o", "json").stdout)[0]
    assert (first["profile"], first["diff"]) == (f"ClusterProfile/{fleet.PROFILE}", DIFF)


@pytest.mark.usefixtures("dry")
def test_a_raw_diff_is_of_what_would_change(bellhop: Bellhop) -> None:
    """Nothing is said of what stays as it is."""
    line, *diff = bellhop("show", "dryrun", "--raw-diff").stdout.splitlines()

    assert line == f"{CLUSTER}: Update Deployment 'shop/web' of '{fleet.PROFILE}': 2 lines"
    assert diff == DIFF.splitlines()


@pytest.mark.parametrize("form", ["", "--raw-diff"])
@pytest.mark.usefixtures("dry")
def test_shows_what_is_asked_for(bellhop: Bellhop, form: str) -> None:
    """And says where that is nothing."""
    result = bellhop("show", "dryrun", "--profile", "ClusterProfile/other", *form.split())

    assert (result.stdout, result.stderr) == ("", "No profile is in DryRun.\n")


@pytest.mark.parametrize("form", ["", "--raw-diff"])
@pytest.mark.parametrize(
    "phase", ["FailedNonRetriable", "Provisioning", "DryRun"], ids=["failed", "waits", "the same"]
)
def test_says_why_a_profile_in_dry_run_shows_nothing(
    bellhop: Bellhop, dry: Installation, phase: Phase, form: str
) -> None:
    """Its dry run failed, or has not run, or found nothing to change."""
    dry.records.outcomes.put(replace(fleet.outcome(), phase=phase))
    dry.records.previews.put(Preview(CLUSTER, fleet.PROFILE, fleet.now(), ()))
    result = bellhop("show", "dryrun", *form.split())

    assert result.stdout == ""
    assert f"No change is known of '{fleet.PROFILE}' in DryRun" in result.stderr


def test_what_is_tried_dry_no_more_is_not_shown(bellhop: Bellhop, dry: Installation) -> None:
    """Whatever somebody who died has left behind."""
    dry.records.outcomes.put(fleet.outcome())

    assert bellhop("show", "dryrun").stdout == ""


@pytest.mark.usefixtures("dry")
def test_the_state_says_that_it_is_tried_dry(bellhop: Bellhop) -> None:
    """In the list, and for its clusters in its description."""
    assert " DryRun" in bellhop("get", "clusterprofiles").stdout
    described = bellhop("describe", "clusterprofile").stdout
    assert "DryRun" in described
    assert "1 to update" in described


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param("other", "profile 'other' would change: no profile has", id="no profile"),
        pytest.param("ConfigMap/a", "'ConfigMap/a' is not a profile", id="no kind of profile"),
        pytest.param(
            f"{fleet.PROFILE} --cluster a/b", "there is no cluster 'a/b'", id="no cluster"
        ),
    ],
)
def test_says_what_it_cannot_compare(
    bellhop: Bellhop, here: Installation, words: str, said: str
) -> None:
    """A wrong name is an error."""
    fleet.populate(here)
    result = bellhop("diff", *words.split())

    assert said in result.stderr
    assert result.exit_code != 0


def test_a_cluster_that_cannot_be_asked_is_named(bellhop: Bellhop, here: Installation) -> None:
    """There are no credentials: nothing is said of what would change there."""
    fleet.populate(here)
    result = bellhop("diff", fleet.PROFILE)

    assert f"'{fleet.PROFILE}' in '{CLUSTER}'" in result.stderr
    assert (result.stdout, result.exit_code != 0) == ("", True)
