"""What commands say of a change that would remove too much, and how it is released."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bellhop.fleet.installation import Installation
from bellhop.model.record import Cluster, Profile
from tests.fakes.manifests import profile
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
    assert (loses in dry.stderr, "would be held" in dry.stderr) == (True, True)
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
