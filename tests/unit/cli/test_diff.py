"""`bellhop diff -f` and `show dryrun`: the effect of a change, with kubectl's exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.installation import Installation
from bellhop.state.deployment import Change, Phase, Preview
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

# Files --------------------------------------------------------------------------------------------


MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {v: '1'}\n"
SECRET = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: two}\n"
    "stringData: {same: hunter1, other: hunter2}\n"
)
PRUNE = ("--applyset", "fleet", "--prune")


def test_shows_nothing_where_nothing_differs(bellhop: Bellhop) -> None:
    """The order of keys is no difference, and the command says that there is none."""
    bellhop("apply", "-f", "-", stdin=MAP + "---\n" + SECRET)
    turned = "kind: ConfigMap\nmetadata: {name: one}\ndata: {v: '1'}\napiVersion: v1\n"
    result = bellhop("diff", "-f", "-", stdin=turned + "---\n" + SECRET)

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Nothing would change.\n"


def test_shows_what_differs(bellhop: Bellhop, here: Installation) -> None:
    """Line by line, as diff -u does; nothing is changed."""
    bellhop("apply", "-f", "-", stdin=MAP)
    new = MAP.replace("'1'", "'2'") + "---\n" + MAP.replace("one", "three")
    result = bellhop("diff", "-f", "-", stdin=new)

    assert result.exit_code == 1
    assert result.stdout == (
        "--- stored ConfigMap default/one\n"
        "+++ files ConfigMap default/one\n"
        "@@ -1,6 +1,6 @@\n"
        " apiVersion: v1\n"
        " data:\n"
        '-  v: "1"\n'
        '+  v: "2"\n'
        " kind: ConfigMap\n"
        " metadata:\n"
        "   name: one\n"
        "--- stored ConfigMap default/three\n"
        "+++ files ConfigMap default/three\n"
        "@@ -0,0 +1,6 @@\n"
        "+apiVersion: v1\n"
        "+data:\n"
        '+  v: "1"\n'
        "+kind: ConfigMap\n"
        "+metadata:\n"
        "+  name: three\n"
    )
    assert [each["data"] for each in here.records.manifests.of("ConfigMap")] == [{"v": "1"}]


def test_shows_what_would_be_pruned(bellhop: Bellhop) -> None:
    """For people and for programs."""
    bellhop("apply", "-f", "-", *PRUNE, stdin=MAP + "---\n" + SECRET)
    shown = bellhop("diff", "-f", "-", *PRUNE, stdin=SECRET)
    rows = bellhop("diff", "-f", "-", *PRUNE, "-o", "json", stdin=SECRET)

    assert shown.exit_code == rows.exit_code == 1
    assert shown.stdout.startswith("--- stored ConfigMap default/one\n")
    assert "\n-  name: one\n" in shown.stdout
    [row] = json.loads(rows.stdout)
    assert (row["kind"], row["namespace"], row["name"]) == ("ConfigMap", "default", "one")
    assert (row["change"], row["diff"]) == ("pruned", shown.stdout.rstrip("\n"))


def test_hides_what_secrets_hold(bellhop: Bellhop) -> None:
    """It says which values differ, and shows none of them."""
    bellhop("apply", "-f", "-", stdin=SECRET)
    result = bellhop("diff", "-f", "-", stdin=SECRET.replace("hunter2", "hunter3"))

    assert result.exit_code == 1
    assert "-  other: <hidden> (before)\n+  other: <hidden> (after)\n" in result.stdout
    assert "  same: <hidden>\n" in result.stdout
    assert "hunter" not in result.output


def test_names_what_is_only_written_differently(bellhop: Bellhop) -> None:
    """The exit code says that it differs, and so there is something to be seen."""
    bellhop("apply", "-f", "-", stdin=SECRET.replace("{same: hunter1, other: hunter2}", "{a: b}"))
    encoded = "apiVersion: v1\nkind: Secret\nmetadata: {name: two}\ndata: {a: Yg==}\n"
    result = bellhop("diff", "-f", "-", stdin=encoded)

    assert result.exit_code == 1
    assert result.stdout == "--- stored Secret default/two\n+++ files Secret default/two\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("-f", "nowhere.yaml"), "there is no such file", id="no file"),
        pytest.param((), "either profiles, or manifests by -f", id="nothing"),
        pytest.param(("web", "-f", "x"), "either profiles, or manifests by -f", id="both"),
        pytest.param(("web", "-R"), "belong to -f", id="recursive"),
        pytest.param(("-f", "-", "--cluster", "a/b"), "in no cluster", id="cluster"),
        pytest.param(("-f", "-", "--applyset", "b"), "it is in applyset 'fleet'", id="other set"),
    ],
)
def test_errors_are_greater_than_one(
    bellhop: Bellhop, arguments: tuple[str, ...], said: str
) -> None:
    """A pipeline does not take a failure for a difference."""
    bellhop("apply", "-f", "-", *PRUNE, stdin=MAP)
    result = bellhop("diff", *arguments, stdin=MAP)

    assert (result.exit_code, said in result.stderr) == (2, True)


def test_an_empty_folder_is_an_error(bellhop: Bellhop, tmp_path: Path) -> None:
    """As it is for apply, unless it is meant."""
    bellhop("apply", "-f", "-", *PRUNE, stdin=MAP)
    (tmp_path / "empty").mkdir()
    refused = bellhop("diff", "-f", str(tmp_path / "empty"), *PRUNE)
    meant = bellhop("diff", "-f", str(tmp_path / "empty"), *PRUNE, "--allow-empty")

    assert (refused.exit_code, meant.exit_code) == (2, 1)


# Dry runs -----------------------------------------------------------------------------------------


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


def test_a_cluster_that_is_not_there_is_not_compared(bellhop: Bellhop, here: Installation) -> None:
    """It has the exit code of an error, and not of a difference."""
    fleet.populate(here)
    result = bellhop("diff", fleet.PROFILE, "--cluster", "a/b")

    assert "there is no cluster 'a/b'" in result.stderr
    assert result.exit_code == 2


def test_a_cluster_that_cannot_be_asked_is_named(bellhop: Bellhop, here: Installation) -> None:
    """There are no credentials: nothing is said of what would change there."""
    fleet.populate(here)
    result = bellhop("diff", fleet.PROFILE)

    assert f"'{fleet.PROFILE}' in '{CLUSTER}'" in result.stderr
    assert (result.stdout, result.exit_code != 0) == ("", True)
