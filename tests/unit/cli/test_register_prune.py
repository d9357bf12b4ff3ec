"""`bellhop register cluster -f --prune`: clusters that left their files leave the fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from msgspec.structs import replace

from bellhop.core.sveltos_annotations import APPLYSET
from bellhop.errors import ConflictError, TemporaryError
from bellhop.installation import Installation
from bellhop.operations.cluster_applysets import ClusterApplySet
from bellhop.ports.kube import Kube
from bellhop.state.cluster import Cluster
from tests.fakes.kept import require_value
from tests.unit.cli.conftest import Bellhop

DOCUMENT = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: SveltosCluster
metadata: {{namespace: prod, name: {name}}}
---"""
OPTIONS = ("--applyset", "fleet", "--prune")


@pytest.fixture
def clusters(here: Installation) -> Installation:
    """Three clusters that were registered by hand, and do not answer."""
    now = here.records.clock.now()
    for name in ("eu-1", "eu-2", "eu-3"):
        here.declare.register(Cluster("prod", name, {"env": "prod"}, "v1.36.0", "", now))
    return here


def register(bellhop: Bellhop, *names: str, options: tuple[str, ...] = OPTIONS) -> Result:
    """Register what a file declares; without Secrets, no cluster is called."""
    text = "".join(DOCUMENT.format(name=name) for name in names)
    return bellhop("register", "cluster", "-f", "-", *options, stdin=text)


def sets(here: Installation) -> dict[str, str]:
    """Return the set of each registered cluster."""
    return {each.name: each.labels.get(APPLYSET, "") for each in here.records.clusters.all()}


def test_a_cluster_that_left_the_files_is_deregistered(
    bellhop: Bellhop, clusters: Installation
) -> None:
    """One that was registered by hand stays, as do labels that no document has."""
    first = register(bellhop, "eu-1", "eu-2")
    assert first.stdout == "cluster/prod/eu-1 configured\ncluster/prod/eu-2 configured\n"
    assert sets(clusters) == {"eu-1": "fleet", "eu-2": "fleet", "eu-3": ""}

    planned = register(bellhop, "eu-1", options=(*OPTIONS, "--dry-run"))
    assert planned.stdout == (
        "cluster/prod/eu-1 unchanged (dry run)\n"
        "cluster/prod/eu-2 pruned; the add-ons in it stay (dry run)\n"
    )
    assert sets(clusters) == {"eu-1": "fleet", "eu-2": "fleet", "eu-3": ""}

    done = register(bellhop, "eu-1")
    assert (done.exit_code, done.stdout) == (
        0,
        "cluster/prod/eu-1 unchanged\ncluster/prod/eu-2 pruned; the add-ons in it stay\n",
    )
    assert "warning: prod/eu-2: its webhook configuration and forwarder may still" in done.stderr
    assert "; once it answers, " in done.stderr
    assert sets(clusters) == {"eu-1": "fleet", "eu-3": ""}
    kept = require_value(clusters.records.clusters.get("prod/eu-1"))
    assert kept.labels == {"env": "prod", APPLYSET: "fleet"}
    assert register(bellhop, "eu-1").stdout == "cluster/prod/eu-1 unchanged\n"


def test_a_run_that_was_killed_is_completed_by_the_next(
    bellhop: Bellhop, clusters: Installation
) -> None:
    """Meanwhile its lease keeps others out, and what it has deregistered is no error."""
    register(bellhop, "eu-1", "eu-2", "eu-3")
    token = clusters.records.applysets.acquire("fleet")
    clusters.declare.deregister("prod/eu-2")
    early = register(bellhop, "eu-1")
    assert (early.exit_code, sets(clusters)) == (75, {"eu-1": "fleet", "eu-3": "fleet"})

    clusters.records.applysets.release("fleet", token)
    assert register(bellhop, "eu-1").exit_code == 0
    assert sets(clusters) == {"eu-1": "fleet"}


def test_a_cluster_that_leaves_the_set_while_it_is_called_stays(
    bellhop: Bellhop, clusters: Installation
) -> None:
    """Somebody registers it by hand, and a cluster that does not answer lasts."""
    register(bellhop, "eu-1", "eu-2")

    class Access:
        """The way to a cluster that leaves the set meanwhile."""

        def open(self, key: str, **_: Any) -> Kube:
            clusters.declare.label(key, {APPLYSET: None})
            raise TemporaryError(f"cluster '{key}' does not answer")

    members = ClusterApplySet(replace(clusters, access=Access()), "fleet")
    with members.leased(), pytest.raises(ConflictError, match="left applyset 'fleet' meanwhile"):
        members.prune("prod/eu-2")
    assert sets(clusters) == {"eu-1": "fleet", "eu-2": "", "eu-3": ""}


def test_nothing_is_pruned_if_a_cluster_fails(bellhop: Bellhop, clusters: Installation) -> None:
    """The files may be half of what they should be."""
    register(bellhop, "eu-1", "eu-2")
    for more in ((), ("--dry-run",)):
        failed = register(bellhop, "eu-1", "new", options=(*OPTIONS, *more))
        assert failed.exit_code == 1
        assert "pruned;" not in failed.stdout
    assert sets(clusters) == {"eu-1": "fleet", "eu-2": "fleet", "eu-3": ""}


def test_an_empty_folder_prunes_nothing_unless_it_may(
    bellhop: Bellhop, clusters: Installation, tmp_path: Path
) -> None:
    """A checkout that failed must not empty the fleet."""
    register(bellhop, "eu-1", "eu-2")
    (tmp_path / "clusters").mkdir()
    empty = ("register", "cluster", "-f", str(tmp_path / "clusters"), *OPTIONS)
    assert bellhop(*empty).exit_code == 1
    assert sets(clusters) == {"eu-1": "fleet", "eu-2": "fleet", "eu-3": ""}

    assert bellhop(*empty, "--allow-empty").exit_code == 0
    assert sets(clusters) == {"eu-3": ""}


def test_an_empty_file_beside_others_prunes_nothing(
    bellhop: Bellhop, clusters: Installation, tmp_path: Path
) -> None:
    """A program that failed to write it must not take its clusters out of the fleet."""
    register(bellhop, "eu-1", "eu-2")
    (tmp_path / "eu-1.yaml").write_text(DOCUMENT.format(name="eu-1"))
    (tmp_path / "eu-2.yaml").write_text("\n")
    refused = bellhop("register", "cluster", "-f", str(tmp_path), *OPTIONS)

    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"error: cannot read '{tmp_path}/eu-2.yaml': it is empty; if it is to have nothing,"
        " delete it\n"
    )
    assert sets(clusters) == {"eu-1": "fleet", "eu-2": "fleet", "eu-3": ""}


def test_a_file_that_is_no_yaml_blames_no_other(bellhop: Bellhop, tmp_path: Path) -> None:
    """Its error is the only one."""
    (tmp_path / "a.yaml").write_text(DOCUMENT.format(name="eu-1"))
    (tmp_path / "b.yaml").write_text(f"{DOCUMENT.format(name='eu-2')}\nkind: [")
    refused = bellhop("register", "cluster", "-f", str(tmp_path), *OPTIONS)

    assert refused.exit_code == 2
    assert "b.yaml, document 2" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_cluster_is_in_one_set(bellhop: Bellhop, clusters: Installation) -> None:
    """It leaves a set by being registered without one."""
    register(bellhop, "eu-1", "eu-2")
    other = register(bellhop, "eu-1", options=("--applyset", "other", "--prune"))
    assert other.exit_code == 1
    assert "cannot register cluster 'prod/eu-1' in applyset 'other': it is in" in other.stderr

    assert register(bellhop, "eu-1", options=()).stdout == "cluster/prod/eu-1 configured\n"
    assert sets(clusters) == {"eu-1": "", "eu-2": "fleet", "eu-3": ""}
    assert register(bellhop, "eu-2").exit_code == 0
    assert set(sets(clusters)) == {"eu-1", "eu-2", "eu-3"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-f", "-", "--prune"), "--prune needs --applyset NAME"),
        (("-f", "-", "--applyset", "a b"), "cannot use --applyset 'a b'"),
        (
            ("prod/eu-1", "--applyset", "fleet"),
            "--applyset, --prune and --allow-empty belong to -f",
        ),
    ],
)
def test_refuses_options_that_make_no_sense(
    bellhop: Bellhop, options: tuple[str, ...], said: str
) -> None:
    """Before anything is read."""
    result = bellhop("register", "cluster", *options, stdin="")

    assert (result.exit_code, said in result.stderr) == (2, True)
