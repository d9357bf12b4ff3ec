"""`bellhop show helm-updates` beside real repositories: newer charts, logins, and silence."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from bellhop.installation.installation import Installation
from bellhop.state.chart import Chart, HeldRelease, release_key
from bellhop.state.cluster_text import HeldText
from bellhop.state.record import Content, Held, Inventory
from infra.lab.port import free_port
from tests.fakes.site import Site
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

CLUSTER = "default/workload"
INDEX = {
    "apiVersion": "v1",
    "entries": {
        "web": [
            {"version": each, "urls": [f"web-{each}.tgz"]}
            for each in ("1.0.0", "1.0.2", "1.1.0", "2.0.0-rc.1")
        ]
    },
}


@pytest.fixture
def site() -> Iterator[Site]:
    """A private repository of one chart in some versions."""
    with Site({"/index.yaml": json.dumps(INDEX).encode()}, ("ann", "hush")) as one:
        yield one


def hold(here: Installation, address: str, **versions: str) -> None:
    """Have the example's profile hold releases of the chart `web`, each in a version."""
    fleet.populate(here)
    held, contents = {}, []
    for number, (name, version) in enumerate(versions.items()):
        ref = f"helmCharts[{number}]"
        secret = json.dumps({"username": "ann", "password": "hush"})
        login = HeldText(secret, f"{ref}.credentials", plain=True, secret=True)
        chart = Chart(ref, address, "web", "", name, "apps", logins=(login,))
        contents.append(Content(ref, "", chart=chart))
        known = HeldRelease("web", version, address, 1)
        held[release_key("apps", name)] = Held("d", ref, fleet.now(), release=known)
    here.records.profiles.put(fleet.profile(contents=tuple(contents)))
    here.records.inventories.put(Inventory(CLUSTER, fleet.PROFILE, held))


def test_newer_versions_have_the_columns_of_sveltosctl(
    bellhop: Bellhop, here: Installation, site: Site
) -> None:
    """The newest version, and the newest patch; what is up to date is not listed."""
    hold(here, site.address, old="1.0.0", patched="1.0.2", new="1.1.0", early="2.0.0-beta.1")
    told = bellhop("show", "helm-updates")
    titles, *rows = told.stdout.splitlines()

    assert told.exit_code == 0
    assert titles.replace("  ", " ").split() == [
        *("CLUSTER", "NAMESPACE", "RELEASE", "NAME", "CURRENT", "VERSION"),
        *("NEWER", "VERSION", "NEWER", "PATCH", "VERSION", "MESSAGE"),
    ]
    assert [row.split() for row in rows] == [
        [CLUSTER, "apps", "old", "1.0.0", "1.1.0", "1.0.2"],
        [CLUSTER, "apps", "patched", "1.0.2", "1.1.0", "-"],
        [CLUSTER, "apps", "early", "2.0.0-beta.1", "2.0.0-rc.1", "2.0.0-rc.1"],
    ]


def test_a_repository_gets_the_login_of_the_profile(
    bellhop: Bellhop, here: Installation, site: Site
) -> None:
    """A release keeps no password; where its profile is gone, the repository says what it lacks."""
    hold(here, site.address, old="1.0.0")
    told = bellhop("show", "helm-updates", "-o", "json")
    here.records.profiles.put(fleet.profile())
    without = bellhop("show", "helm-updates", "-o", "json")

    assert [each["newerVersion"] for each in json.loads(told.stdout)] == ["1.1.0"]
    assert [each["newerVersion"] for each in json.loads(without.stdout)] == [""]
    assert "credentials" in json.loads(without.stdout)[0]["error"]
    assert "hush" not in told.stdout + told.stderr


def test_a_repository_that_does_not_answer_says_so(
    bellhop: Bellhop, here: Installation, site: Site
) -> None:
    """The others are shown all the same."""
    hold(here, site.address, old="1.0.0", lost="1.0.0")
    nobody = f"http://127.0.0.1:{free_port()}"
    kept = here.records.inventories.get(CLUSTER, fleet.PROFILE)
    assert kept
    key = release_key("apps", "lost")
    known = kept.value.held[key]
    assert known.release
    lost = replace(known, release=replace(known.release, repository=nobody))
    here.records.inventories.put(
        Inventory(CLUSTER, fleet.PROFILE, {**kept.value.held, key: lost}), expect=kept.token
    )
    rows = json.loads(bellhop("show", "helm-updates", "-o", "json").stdout)

    assert [(each["releaseName"], each["newerVersion"]) for each in rows] == [
        ("old", "1.1.0"),
        ("lost", ""),
    ]
    assert nobody in rows[1]["error"]
    assert rows[0]["error"] == ""


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param(("--cluster", CLUSTER), ["old"], id="its cluster"),
        pytest.param(("--namespace", "default"), ["old"], id="its namespace"),
    ],
)
def test_updates_are_chosen_by_cluster(
    bellhop: Bellhop,
    here: Installation,
    site: Site,
    arguments: tuple[str, ...],
    names: list[str],
) -> None:
    hold(here, site.address, old="1.0.0")
    rows = json.loads(bellhop("show", "helm-updates", *arguments, "-o", "json").stdout)

    assert [each["releaseName"] for each in rows] == names


def test_without_releases_nothing_is_asked(bellhop: Bellhop, here: Installation) -> None:
    fleet.populate(here)

    assert bellhop("show", "helm-updates").stderr == "No newer versions found.\n"
