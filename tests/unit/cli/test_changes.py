"""Messages about a change that would remove too much, and its release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.installation import Installation
from bellhop.state.chart import HeldRelease, release_key
from bellhop.state.cluster import Cluster
from bellhop.state.deployment import Held, Inventory, Owner
from bellhop.state.profile import Profile
from tests.fakes.manifests import profile, trigger
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

CLUSTERS = [f"prod/c{number:02}" for number in range(30)]


@pytest.fixture
def deployed(here: Installation) -> Installation:
    """A ClusterProfile that is deployed to thirty clusters."""
    for key in CLUSTERS:
        namespace, _, name = key.partition("/")
        labels = {"env": "production"}
        here.declare.register(Cluster(namespace, name, labels, "v1.31.0", "digest", fleet.now()))
    head = Profile(
        name="own",
        trigger="",
        cluster="",
        object="",
        contents=(),
        destinations=tuple(CLUSTERS),
        tier=100,
        leaves_policies=False,
        continue_on_conflict=False,
        digest="d",
        told=True,
    )
    here.records.profiles.put(head)
    return here


def written(folder: Path, selector: str = "env: production") -> str:
    path = folder / "profile.yaml"
    path.write_text(profile(f"clusterSelector: {{matchLabels: {{{selector}}}}}"))
    return str(path)


@pytest.mark.usefixtures("deployed")
def test_names_what_a_selector_would_remove(bellhop: Bellhop, tmp_path: Path) -> None:
    """A dry run says it and holds nothing; `apply` says it with the command that releases it."""
    assert bellhop("apply", "-f", written(tmp_path)).exit_code == 0
    loses = (
        "warning: ClusterProfile 'own' loses 30 of 30 add-ons (1 profile) in prod/c00, prod/c01,"
        " prod/c02 and 27 more clusters\n"
    )

    dry = bellhop("apply", "-f", written(tmp_path, "env: prodution"), "--dry-run=client")
    assert "loses 30 of 30 add-ons (1 profile) in prod/c00, " in dry.stderr
    assert "would be held" in dry.stderr
    assert bellhop("get", "held").stderr == "No heldreports found.\n"

    done = bellhop("apply", "-f", written(tmp_path, "env: prodution"))
    assert loses in done.stderr
    [held] = json.loads(bellhop("get", "held", "-o", "json").stdout)["items"]
    name = held["metadata"]["name"]
    assert f"`bellhop release --change {name}`" in done.stderr
    assert (held["kind"], held["status"]["held"], held["status"]["of"]) == ("HeldChange", 30, 30)
    [row] = held["status"]["removals"]
    assert (row["rule"], row["clusters"]) == ("ClusterProfile 'own'", 30)
    assert "ClusterProfile own was changed: ClusterProfile 'own' loses 30 of 30" in (
        bellhop("get", "held").stdout
    )
    assert "prod/c00" in bellhop("describe", "held").stdout
    failures = json.loads(bellhop("show", "failures", "-o", "json").stdout)
    assert [each["which"] for each in failures if each["what"] == "held"] == [f"change {name}"]

    bellhop("apply", "-f", written(tmp_path))
    assert bellhop("get", "held").stderr == "No heldreports found.\n"


@pytest.mark.usefixtures("deployed")
def test_releases_a_change(bellhop: Bellhop, tmp_path: Path) -> None:
    """By its identifier or with everything; what nobody holds cannot be released."""
    bellhop("apply", "-f", written(tmp_path))
    deleted = bellhop("delete", "clusterprofile", "own")
    assert "loses 30 of 30 add-ons" in deleted.stderr
    [held] = json.loads(bellhop("get", "held", "-o", "json").stdout)["items"]
    name = held["metadata"]["name"]

    released = bellhop("release", "--change", name)
    assert released.stdout == f"Released 30 add-ons of change '{name}'.\n"
    again = bellhop("release", "--change", name)
    assert (again.exit_code, f"cannot release change '{name}'" in again.stderr) == (1, True)
    assert bellhop("release", "--all").stderr == "Nothing is held.\n"
    assert bellhop("release", "prod/c00", "own", "--change", name).exit_code == 2


def test_a_deletion_that_is_meant_is_not_held(
    bellhop: Bellhop, deployed: Installation, tmp_path: Path
) -> None:
    """With `--withdraw` nobody has to release anything."""
    bellhop("apply", "-f", written(tmp_path))
    dry = bellhop("delete", "clusterprofile", "own", "--dry-run=client")
    assert "loses 30 of 30" in dry.stderr

    done = bellhop("delete", "clusterprofile", "own", "--withdraw")
    assert (done.exit_code, done.stderr) == (0, "")
    assert list(deployed.records.removals.all()) == []


def test_names_what_a_label_would_remove(
    bellhop: Bellhop, deployed: Installation, tmp_path: Path
) -> None:
    """A dry run of `label cluster` says it and changes nothing; `label` says how to release it."""
    bellhop("apply", "-f", written(tmp_path))
    label = ("label", "cluster", CLUSTERS[0], "env=prodution", "--overwrite")
    loses = "warning: ClusterProfile 'own' loses 1 of 30 add-ons (1 profile) in prod/c00\n"

    dry = bellhop(*label, "--dry-run=client", BELLHOP_HOLD_SHARE="0.01")
    assert dry.stdout == "cluster/prod/c00 labelled env=prodution (dry run)\n"
    assert (loses in dry.stderr, "would be held" in dry.stderr) == (True, True)
    kept = deployed.records.clusters.get(CLUSTERS[0])
    assert kept
    assert kept.value.labels == {"env": "production"}
    assert list(deployed.records.removals.all()) == []

    done = bellhop(*label, BELLHOP_HOLD_SHARE="0.01")
    assert done.stdout == "cluster/prod/c00 labelled env=prodution\n"
    [held] = json.loads(bellhop("get", "held", "-o", "json").stdout)["items"]
    assert loses in done.stderr
    assert f"`bellhop release --change {held['metadata']['name']}`" in done.stderr
    assert (held["status"]["held"], held["status"]["of"]) == (1, 30)


def test_a_dry_run_lists_what_goes_below_any_line(
    bellhop: Bellhop, deployed: Installation, tmp_path: Path
) -> None:
    """One add-on of thirty is not held: `label` and `apply` name it, and its cluster."""
    bellhop("apply", "-f", written(tmp_path))
    at_once = "warning: they would be removed at once: the deletion guard would not hold them\n"

    dry = bellhop("label", "cluster", CLUSTERS[3], "env=prodution", "--overwrite", "--dry-run")
    one = "warning: ClusterProfile 'own' loses 1 of 30 add-ons (1 profile) in prod/c03\n"
    assert dry.stderr == one + at_once

    refs = "".join(f"{{kind: SveltosCluster, namespace: prod, name: c{n:02}}}," for n in range(18))
    (tmp_path / "profile.yaml").write_text(profile(f"clusterRefs: [{refs}]"))
    dry = bellhop("apply", "-f", str(tmp_path / "profile.yaml"), "--dry-run")
    first = ", ".join(CLUSTERS[18:28])
    assert f"loses 12 of 30 add-ons (1 profile) in {first} and 2 more clusters\n" in dry.stderr
    assert at_once in dry.stderr
    assert list(deployed.records.removals.all()) == []


def config(name: str) -> Identity:
    return Identity("", "ConfigMap", "default", name)


def owned(here: Installation) -> None:
    """Have the profile own a few objects in one cluster, and many in another."""
    mine = Held("d", "ConfigMap default/own")
    few: dict[Identity, Held] = {
        config("a"): mine,
        config("adopted"): replace(mine, adopted="somebody", uid="u"),
        config("awaited"): mine,
        release_key("apps", "web"): replace(mine, release=HeldRelease("web", "1.0.0")),
        config("of-web"): replace(mine, part_of="apps/web"),
        release_key("apps", "old"): replace(mine, release=HeldRelease(removed=True)),
    }
    many = {config(f"m{number:02}"): mine for number in range(57)}
    here.records.inventories.put(Inventory(CLUSTERS[0], "own", few))
    here.records.inventories.put(Inventory(CLUSTERS[1], "own", many))
    here.records.owners.put(
        CLUSTERS[0], config("awaited"), Owner("own", "", "", 100, waiting=(("", "", "next"),))
    )
    own = here.records.profiles.head("", "", "own")
    assert own
    here.records.profiles.put(replace(own.value, name="next", destinations=(CLUSTERS[0],)))
    waiting = fleet.outcome(
        cluster=CLUSTERS[0], profile="next", trigger="", source="", reason="Conflict"
    )
    here.records.outcomes.put(waiting)


def test_a_dry_run_lists_the_objects_of_each_cluster(
    bellhop: Bellhop, deployed: Installation, tmp_path: Path
) -> None:
    """Of many the first twenty; what is adopted, part of a release or handed over is not listed."""
    bellhop("apply", "-f", written(tmp_path))
    owned(deployed)

    dry = bellhop("delete", "clusterprofile", "own", "--dry-run")

    first, *rest = dry.stderr.splitlines()
    assert "loses 30 of 30" in first
    named = [f"  {CLUSTERS[1]}: ConfigMap default/m{number:02}" for number in range(20)]
    assert rest == [
        f"  {CLUSTERS[0]}: ConfigMap default/a",
        f"  {CLUSTERS[0]}: release apps/web",
        *named,
        f"  {CLUSTERS[1]}: and 37 more",
        "warning: they would be held: nothing would be removed until it is released",
    ]


def test_a_dry_run_lists_no_object_that_stays(
    bellhop: Bellhop, deployed: Installation, tmp_path: Path
) -> None:
    """With `LeavePolicies` all stay, also if deploy has not processed the option yet."""
    path = tmp_path / "profile.yaml"
    path.write_text(
        profile(
            "clusterSelector: {matchLabels: {env: production}}",
            more="stopMatchingBehavior: LeavePolicies",
        )
    )
    bellhop("apply", "-f", str(path))
    owned(deployed)

    dry = bellhop("delete", "clusterprofile", "own", "--dry-run")

    assert (dry.exit_code, dry.stderr) == (0, "")


@pytest.mark.usefixtures("deployed")
def test_a_dry_run_of_a_deletion_that_is_meant_holds_nothing(
    bellhop: Bellhop, tmp_path: Path
) -> None:
    """With `--withdraw` all of it would go at once, as the list says."""
    bellhop("apply", "-f", written(tmp_path))

    dry = bellhop("delete", "clusterprofile", "own", "--withdraw", "--dry-run")

    assert "loses 30 of 30" in dry.stderr
    assert "would be removed at once" in dry.stderr


def test_a_dry_run_of_a_deregistration_changes_nothing(
    bellhop: Bellhop, deployed: Installation
) -> None:
    """It names what the cluster's events deployed in others, and the cluster stays registered."""
    bellhop("apply", "-f", "-", stdin=trigger(more="destinationClusterSelector: {matchLabels: {}}"))
    made = fleet.profile(
        name="m", trigger="made", cluster=CLUSTERS[0], destinations=(CLUSTERS[0], CLUSTERS[1])
    )
    deployed.records.profiles.put(made)

    dry = bellhop("deregister", "cluster", CLUSTERS[0], "--dry-run")

    assert (
        dry.stdout == f"Cluster '{CLUSTERS[0]}' deregistered; the add-ons in it stay. (dry run)\n"
    )
    assert f"EventTrigger 'made' loses 1 of 1 add-ons (1 profile) in {CLUSTERS[1]}\n" in dry.stderr
    assert "would be removed at once" in dry.stderr
    assert deployed.records.clusters.get(CLUSTERS[0])


def test_a_label_of_many_clusters_is_one_change(
    bellhop: Bellhop, deployed: Installation, tmp_path: Path
) -> None:
    """The first cluster loses one add-on of thirty, and is held with all others."""
    bellhop("apply", "-f", written(tmp_path))
    typo = ("label", "cluster", "--all", "env=prodution", "--overwrite")

    dry = bellhop(*typo, "--dry-run")
    assert dry.stderr.count("loses 30 of 30 add-ons") == 1
    assert "would be held" in dry.stderr
    done = bellhop(*typo)

    assert "cluster/prod/c29 labelled env=prodution\n" in done.stdout
    [held] = [each.value for each in deployed.records.removals.all()]
    assert held.rule == ("", "own")
    assert done.stderr.count("loses 30 of 30 add-ons") == 1
    assert done.stderr.count("they are held") == 1


def test_what_is_applied_and_pruned_is_one_change(
    bellhop: Bellhop, deployed: Installation, tmp_path: Path
) -> None:
    """A third of one profile is too much beside all of another, as the dry run says."""
    for key in CLUSTERS[:20]:
        deployed.declare.label(key, {"keep": "this"})
    own = deployed.records.profiles.head("", "", "own")
    assert own
    deployed.records.profiles.put(replace(own.value, name="other"))
    other = tmp_path / "other.yaml"
    other.write_text(profile("clusterSelector: {matchLabels: {env: production}}", name="other"))
    written(tmp_path)
    apply = ("apply", "-f", str(tmp_path), "--applyset", "fleet", "--prune")
    assert bellhop(*apply).exit_code == 0
    other.unlink()
    written(tmp_path, "keep: this")

    dry = bellhop(*apply, "--dry-run")
    assert "'own' loses 10 of 30" in dry.stderr
    assert "removed at once" not in dry.stderr
    done = bellhop(*apply)

    assert (done.exit_code, "'own' loses 10 of 30" in done.stderr) == (0, True)
    held = sorted(each.value.rule for each in deployed.records.removals.all())
    assert held == [("", "other"), ("", "own")]


def test_a_cycle_is_refused_before_anything_is_pruned(
    bellhop: Bellhop, deployed: Installation, tmp_path: Path
) -> None:
    """With the sentence of an `apply` without `--prune`."""
    apply = ("apply", "-f", str(tmp_path), "--applyset", "fleet", "--prune")
    (tmp_path / "other.yaml").write_text(profile("clusterSelector: {}", name="other"))
    written(tmp_path)
    assert bellhop(*apply).exit_code == 0
    (tmp_path / "other.yaml").unlink()
    (tmp_path / "profile.yaml").write_text(
        profile("clusterSelector: {}", more="dependsOn: [two]")
        + "---\n"
        + profile("clusterSelector: {}", more="dependsOn: [own]", name="two")
    )

    result = bellhop(*apply)
    assert result.exit_code == 2, result.stderr
    assert deployed.records.manifests.has("ClusterProfile", "", "other")
