"""`bellhop get held` and `bellhop release` as they are typed."""

from __future__ import annotations

import json
from datetime import timedelta

from msgspec.structs import replace

from bellhop.configuration.records import ConfiguredObject
from bellhop.installation import Installation
from bellhop.state.match import HeldDeletion, Match
from bellhop.state.table import Stored
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

CLUSTER, SOURCE = "default/workload", "sveltos-service"


def hold(here: Installation, *, decided: bool = True) -> None:
    """Have four of thirty objects held, as a resync found that twenty are deleted."""
    fleet.populate(here)
    now = fleet.now()
    one = HeldDeletion(CLUSTER, SOURCE, "lot", "sweep", now, now + timedelta(minutes=1), gone=16)
    here.records.holds.put(replace(one, of=30, held_at=now if decided else None))
    for name in "abcd":
        key = fleet.SERVICE._replace(name=name)
        match = Match(CLUSTER, SOURCE, key, matching=True, digest="d", since=now, held=True)
        here.records.matches.put(replace(match, told=True))
        here.records.holds.stay(match, "lot", None, again=True)


def test_lists_every_object_for_programs(bellhop: Bellhop, here: Installation) -> None:
    """The manifest names all of them, and says whether it is decided."""
    hold(here, decided=False)
    [item] = json.loads(bellhop("get", "held", "-o", "json").stdout)["items"]

    assert item["status"]["objects"] == [f"Service default/{name}" for name in "abcd"]
    assert (item["status"]["decided"], item["status"]["cause"]) == (False, "sweep")
    assert "counted until" in item["status"]["why"]


def test_describes_what_is_held(bellhop: Bellhop, here: Installation) -> None:
    """It names the objects, and the report that they are of says so, too."""
    hold(here)

    assert "Service default/d" in bellhop("describe", "held").stdout
    assert "20 of 30 objects" in bellhop("describe", "eventreport").stdout
    [report] = json.loads(bellhop("get", "er", "-o", "json").stdout)["items"]
    assert report["status"]["held"].startswith("4 objects: 20 of 30 objects")


def test_is_a_failure_once_it_is_decided(bellhop: Bellhop, here: Installation) -> None:
    hold(here, decided=False)
    assert "held" not in bellhop("show", "failures").stdout
    hold(here)
    rows = json.loads(bellhop("show", "failures", "-o", "json").stdout)

    [row] = (each for each in rows if each["what"] == "held")
    assert (row["which"], row["count"]) == (f"{SOURCE} in {CLUSTER}", 4)
    assert "Service default/a, Service default/b, Service default/c and 1 more" in row["sentence"]


def test_explains_what_is_held(bellhop: Bellhop, here: Installation) -> None:
    hold(here)
    said = bellhop("explain", CLUSTER, "Service", "default/a").stdout

    assert "its match is held" in said
    assert f"`bellhop release {CLUSTER} {SOURCE}`" in said


def kept(here: Installation) -> Stored[HeldDeletion]:
    found = here.records.holds.get(CLUSTER, SOURCE)
    assert found
    return found


def test_releases_a_report(bellhop: Bellhop, here: Installation) -> None:
    hold(here)
    result = bellhop("release", CLUSTER, SOURCE)

    assert result.stdout == f"Released 4 objects of EventSource '{SOURCE}' in '{CLUSTER}'.\n"
    assert "`bellhop serve` does not answer" in result.stderr
    assert kept(here).value.lot != "lot"
    assert kept(here).value.held_at is None
    assert here.records.timers.get(f"hold/{CLUSTER}/{SOURCE}")


def test_releases_everything(bellhop: Bellhop, here: Installation) -> None:
    """With --all nobody has to name what is held; where nothing is, that is said."""
    hold(here)
    assert bellhop("release", "--all").exit_code == 0
    assert kept(here).value.lot != "lot"

    here.records.holds.forget(CLUSTER)
    assert bellhop("release", "--all").stderr == "Nothing is held.\n"


def test_may_be_released_twice(bellhop: Bellhop, here: Installation) -> None:
    hold(here)
    assert bellhop("release", CLUSTER, SOURCE).exit_code == 0

    assert bellhop("release", CLUSTER, SOURCE).exit_code == 0


def test_what_is_not_held_cannot_be_released(bellhop: Bellhop, here: Installation) -> None:
    """A wrong name is one sentence that says where to look."""
    hold(here)

    assert "`bellhop get held` lists what is" in bellhop("release", CLUSTER, "other").stderr
    for words in ((), (CLUSTER,), (CLUSTER, SOURCE, "--all")):
        result = bellhop("release", *words)
        assert "name a cluster and an EventSource, or give --change or --all" in result.stderr
        assert result.exit_code == 2


def hold_clusters(here: Installation) -> None:
    """Have the deletion of three SveltosClusters held as one change."""
    why = "held: 3 of 4 clusters would be deregistered; `bellhop release --change c0ffee` does it"
    one = ConfiguredObject("1", "7", 1, "Ending", in_force=True, at=fleet.now(), message=why)
    for name in ("a", "b", "c"):
        kept = replace(one, change="c0ffee")
        here.records.configured.put("SveltosCluster", "prod", name, kept)
    here.records.configured.put("SveltosCluster", "prod", "d", replace(one, state="InForce"))


def test_clusters_that_would_be_deregistered_are_held(bellhop: Bellhop, here: Installation) -> None:
    """They are listed, described, a failure, and released by their change, once."""
    hold_clusters(here)

    assert "c0ffee" in bellhop("get", "held").stdout
    [item] = json.loads(bellhop("get", "held", "-o", "json").stdout)["items"]
    assert item["kind"] == "HeldClusters"
    assert item["status"]["clusterNames"] == ["prod/a", "prod/b", "prod/c"]
    assert "prod/c" in bellhop("describe", "held", "c0ffee").stdout
    [row] = [
        each
        for each in json.loads(bellhop("show", "failures", "-o", "json").stdout)
        if each["what"] == "held"
    ]
    assert (row["which"], row["count"]) == ("change c0ffee", 3)

    done = bellhop("release", "--change", "c0ffee")
    assert done.stdout == "Released 3 clusters of change 'c0ffee'.\n"
    assert bellhop("release", "--change", "c0ffee").exit_code == 1
    assert json.loads(bellhop("get", "held", "-o", "json").stdout)["items"] == []


def test_all_that_is_held_contains_clusters(bellhop: Bellhop, here: Installation) -> None:
    hold_clusters(here)
    done = bellhop("release", "--all")
    assert "Released 3 clusters of change 'c0ffee'." in done.stdout
