"""Charts, Flux artifacts and URLs of a release: fetched once, and the same for all its clusters."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from bellhop.core.gvk import Resource
from bellhop.errors import UnreachableError
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config
from tests.fakes.read import management
from tests.unit.deploy.test_files import ARTIFACT, GIT, URL, repository
from tests.unit.promotions.conftest import Fleet3, auto, promotion

HOUR = timedelta(hours=1)
LAST = {"name": "production"}


def chart(version: str = "") -> dict[str, Any]:
    return {
        "policyRefs": [],
        "helmCharts": [
            {
                "repositoryURL": "https://charts.example.com",
                "repositoryName": "charts",
                "chartName": "charts/web",
                "chartVersion": version,
                "releaseName": "web",
                "releaseNamespace": "apps",
            }
        ],
    }


def released(fleet: Fleet, cluster: str) -> str:
    """Return the version of the chart that a cluster has; empty for none."""
    found = fleet.charts.releases.get((f"fleet/{cluster}", "apps", "web"))
    return found.version if found else ""


def has(staged: Fleet3) -> list[str]:
    return [released(staged.fleet, f"{each}1") for each in ("staging", "production")]


def test_a_newer_version_of_a_chart_is_a_release_of_its_own(staged: Fleet3) -> None:
    fleet = staged.fleet
    fleet.repositories.put("web", "1.0.0")
    staged.apply(promotion(auto("staging", delay="1h"), LAST, profileSpec=chart()))
    fleet.wait(HOUR)
    staged.settle()
    assert has(staged) == ["1.0.0", "1.0.0"]

    fleet.repositories.put("web", "1.0.0", "2.0.0")
    fleet.resync("fleet/production1", full=True)
    staged.settle()
    assert has(staged) == ["1.0.0", "1.0.0"], "a later stage keeps its own"
    fleet.resync("fleet/staging1", full=True)
    staged.settle()

    assert staged.stage("staging").release == 2
    assert has(staged) == ["2.0.0", "1.0.0"]
    fleet.wait(HOUR)
    staged.settle()
    assert has(staged) == ["2.0.0", "2.0.0"]


def test_a_cluster_that_joins_needs_no_repository(staged: Fleet3) -> None:
    fleet = staged.fleet
    fleet.repositories.put("web", "1.0.0")
    staged.apply(promotion(auto("staging"), LAST, profileSpec=chart()))
    fleet.repositories.failure = UnreachableError("the repository is down")

    fleet.register("production9", env="production")
    staged.settle()

    assert released(fleet, "production9") == "1.0.0"


def test_old_releases_go_with_their_charts(staged: Fleet3) -> None:
    fleet = staged.fleet
    staged.apply(promotion(auto("staging"), LAST, profileSpec=chart()))
    for number in range(1, 15):
        fleet.repositories.put("web", f"{number}.0.0")
        staged.apply(promotion(auto("staging"), LAST, profileSpec=chart(f"{number}.0.0")))
    kept = {each.number for each in fleet.records.releases.heads("agent")}
    pinned = {each.release for each in fleet.records.pins.of("agent")}
    assert len(kept) < 14
    assert pinned <= kept | {0}
    assert len(list(fleet.records.frozen.items("agent"))) <= len(kept)


def files(*refs: dict[str, Any]) -> str:
    return promotion(auto("staging", delay="1h"), LAST, profileSpec={"policyRefs": [*refs]})


def pass_an_hour(staged: Fleet3) -> None:
    staged.fleet.wait(HOUR)
    staged.settle()


def versions(staged: Fleet3) -> list[set[str]]:
    return [staged.has(each) for each in ("staging", "production")]


def test_a_url_that_serves_something_else_is_a_release_of_its_own(staged: Fleet3) -> None:
    fleet = staged.fleet
    fleet.files.served[URL] = {"web.yaml": config("web", "v: '1'")}
    staged.apply(files({"remoteURL": {"url": URL, "interval": "1m"}}))
    pass_an_hour(staged)
    assert versions(staged) == [{"1"}, {"1"}]

    fleet.files.served[URL] = {"web.yaml": config("web", "v: '2'")}
    fleet.resync("fleet/production1")
    staged.settle()
    assert versions(staged) == [{"1"}, {"1"}], "a later stage keeps its own"
    fleet.resync("fleet/staging1")
    staged.settle()

    assert versions(staged) == [{"2"}, {"1"}]
    fleet.files.failure = UnreachableError("is down")
    pass_an_hour(staged)
    assert versions(staged) == [{"2"}, {"2"}], "it is not downloaded again"


def test_a_new_commit_of_flux_is_a_release_of_its_own(staged: Fleet3) -> None:
    fleet = staged.fleet
    fleet.register("east")
    mgmt = management(fleet)
    mgmt.serve(Resource(GIT, "gitrepositories", namespaced=True))
    mgmt.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}})

    def commit(v: str) -> None:
        folder = {"web.yaml": config("web", f"v: '{v}'")}
        fleet.files.served[ARTIFACT] = folder
        mgmt.put(repository(folder))

    commit("1")
    git = {"kind": "GitRepository", "namespace": "flux-system", "name": "web", "path": "web.yaml"}
    staged.apply(files(git))
    pass_an_hour(staged)
    assert versions(staged) == [{"1"}, {"1"}]

    commit("2")
    for cluster in ("production1", "staging1"):
        fleet.resync(f"fleet/{cluster}")
        staged.settle()

    assert versions(staged) == [{"2"}, {"1"}]
    pass_an_hour(staged)
    assert versions(staged) == [{"2"}, {"2"}]
