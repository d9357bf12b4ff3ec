"""Limits of refs to files: they show no Secret, render no event text and blame no cluster."""

from __future__ import annotations

import pytest

from bellhop.core.digest import digest
from bellhop.core.gvk import ObjectKey, Resource
from bellhop.errors import UnauthorizedError
from bellhop.profiles.drafts import complete_draft
from bellhop.state.content import Reading
from bellhop.state.profile import Profile
from tests.fakes.fleet import Fleet, service
from tests.fakes.kept import require_value
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, join, source
from tests.fakes.read import drop, management
from tests.unit.deploy.test_files import (
    ARTIFACT,
    GIT,
    REPOSITORY,
    URL,
    data,
    fetch,
    outcome,
    own,
    remote,
    repository,
)

LOGIN = """
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: fleet}
type: addons.projectsveltos.io/cluster-profile
stringData: {password: swordfish99}
"""
CHART = """helmCharts:
  - repositoryURL: gitrepository://flux-system/web/charts/web
    chartName: web
    releaseName: web
    releaseNamespace: apps
"""
FOLDER = {"charts/web/Chart.yaml": "version: 1.0.0", "a.yaml": config("a")}


@pytest.fixture
def mgmt(fleet: Fleet, east: FakeKube) -> FakeKube:
    """Return the cluster where Flux has fetched a folder."""
    assert east
    kube = management(fleet)
    kube.serve(Resource(GIT, "gitrepositories", namespaced=True))
    for name in ("flux-system", "fleet"):
        kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    fleet.files.served[ARTIFACT] = FOLDER
    kube.put(repository(FOLDER))
    fleet.pump()
    return kube


def declare(fleet: Fleet, refs: str, more: str = "") -> None:
    """Have a trigger deploy some policyRefs for a Service."""
    fleet.apply(
        join(
            source("Service"),
            f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: t}}
spec:
  eventSourceName: watched
  oneForEvent: true
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  policyRefs:
{refs}
{more}
""",
        )
    )
    fleet.release()


def state(fleet: Fleet) -> str:
    kept = require_value(fleet.records.health.get("fleet/east"))
    return kept.state


class TestCredentials:
    """Refused credentials of another server are not the target cluster's."""

    def test_a_url_refuses_them(self, fleet: Fleet, east: FakeKube) -> None:
        fleet.files.served[URL] = {"web.yaml": config("web", "v: '1'")}
        fleet.deploy(own(remote()))
        fleet.files.failure = UnauthorizedError("cannot download it: the server refuses")
        fleet.resync()
        assert outcome(fleet).reason == "Denied"
        assert (state(fleet), data(east)) == ("Healthy", {"web": {"v": "1"}})

    def test_flux_refuses_them(self, fleet: Fleet, east: FakeKube, mgmt: FakeKube) -> None:
        assert mgmt
        fleet.deploy(own(f"{{{REPOSITORY}, path: a.yaml}}"))
        fleet.files.failure = UnauthorizedError("cannot download it: the server refuses")
        fleet.resync()
        assert outcome(fleet).message.startswith("cannot read GitRepository flux-system/web: ")
        assert (state(fleet), list(data(east))) == ("Healthy", ["a"])

    def test_the_cluster_where_flux_runs_refuses_them(
        self, fleet: Fleet, east: FakeKube, mgmt: FakeKube
    ) -> None:
        fleet.deploy(own(f"{{{REPOSITORY}, path: a.yaml}}"))
        mgmt.fail_with(UnauthorizedError("cannot read it: 'mgmt/mgmt' refuses"), "get")
        fleet.resync()
        assert outcome(fleet).reason == "Denied"
        assert (state(fleet), list(data(east))) == ("Healthy", ["a"])

    def test_a_secret_that_comes_is_a_new_try(self, fleet: Fleet, east: FakeKube) -> None:
        """At once: nobody waits for the next resync."""
        fleet.files.served[URL] = {"web.yaml": config("web")}
        fleet.deploy(own(remote("secretRef: {name: login}")))
        assert "cannot find Secret 'fleet/login' that remoteURL" in outcome(fleet).message
        fleet.deploy(LOGIN)
        assert list(data(east)) == ["web"]


class TestTemplates:
    """URLs and names are rendered whole, and what an event says is not rendered again."""

    URL = "https://files.example/web{{ if true }}?of={{ %s }}{{ end }}"

    def test_a_query_may_be_in_a_condition(self, fleet: Fleet, east: FakeKube) -> None:
        fleet.files.served["https://files.example/web?of=east"] = {"a.yaml": config("web")}
        fleet.deploy(own(remote(url=self.URL % ".Cluster.metadata.name")))
        assert list(data(east)) == ["web"]

    def test_an_event_may_choose_a_query(self, fleet: Fleet, east: FakeKube) -> None:
        fleet.files.served["https://files.example/web?of=s"] = {"a.yaml": config("web")}
        declare(fleet, f"  - {remote(url=self.URL % '.MatchingResource.Name')}")
        fleet.write("east", service("s"))
        fleet.pump()
        assert list(data(east)) == ["web"]

    @pytest.mark.parametrize("written", ["", '/{{ "{{ .Cluster.metadata.name }}" }}'])
    def test_what_an_event_says_is_no_template(
        self, fleet: Fleet, east: FakeKube, written: str
    ) -> None:
        """If a trigger itself writes an action out, an event with braces is refused."""
        found = {"a.yaml": config("web")}
        fleet.files.served |= dict.fromkeys(
            ("https://files.example/east", "https://files.example/east/east"), found
        )
        url = "https://files.example/{{ .Resource.metadata.annotations.x }}" + written
        declare(fleet, f"  - {remote(url=url)}")
        said = service("s")
        said["metadata"]["annotations"] = {"x": "{{ .Cluster.metadata.name }}"}
        fleet.write("east", said)
        fleet.pump()
        assert data(east) == {}

    def test_a_trigger_may_leave_an_action_to_deploy_time(
        self, fleet: Fleet, east: FakeKube
    ) -> None:
        fleet.files.served["https://files.example/s/east"] = {"a.yaml": config("web")}
        later = '{{ "{{ .Cluster.metadata.name }}" }}'
        url = f"https://files.example/{{{{ .MatchingResource.Name }}}}/{later}"
        declare(fleet, f"  - {remote(url=url)}")
        fleet.write("east", service("s"))
        fleet.pump()
        assert list(data(east)) == ["web"]

    def test_an_error_numbers_refs_as_they_are_written(self, fleet: Fleet, east: FakeKube) -> None:
        fleet.files.served[URL] = {"web.yaml": config("web")}
        held = "  - {kind: ConfigMap, namespace: default, name: '{{ fail \"no\" }}'}"
        declare(fleet, f"  - {remote()}\n{held}")
        fleet.write("east", service("s"))
        fleet.pump()
        (made,) = fleet.records.profiles.heads("t")
        assert "policyRefs[1].name" in made.error
        assert data(east) == {}

    def test_a_path_is_made_of_no_secret(self, fleet: Fleet, east: FakeKube) -> None:
        """It is a name, which errors quote."""
        fleet.files.served[URL] = {"web.yaml": config("web")}
        reads = (
            "templateResourceRefs: [{identifier: S, resource: {apiVersion: v1, kind: Secret,"
            " namespace: fleet, name: login}}]"
        )
        path = '{{ (getResource "S").data.password | b64dec }}'
        fleet.apply(LOGIN)
        fleet.deploy(own(f"{{path: '{path}', {remote()[1:-1]}}}", more=reads))
        assert "policyRefs[0]: 'path' is made of a value of a Secret" in outcome(fleet).message
        assert "swordfish" not in outcome(fleet).message
        assert data(east) == {}


class TestCharts:
    """Charts in Flux sources."""

    def test_one_is_uninstalled_without_its_source(
        self, fleet: Fleet, east: FakeKube, mgmt: FakeKube
    ) -> None:
        assert mgmt
        fleet.deploy(own("", more=CHART))
        drop(fleet, ObjectKey(GIT, "flux-system", "web"))
        fleet.pump()
        assert list(data(east)) == ["web-config"]
        fleet.apply(own("", more=f"{CHART}    helmChartAction: Uninstall\n"))
        fleet.wait()
        assert (data(east), outcome(fleet).phase) == ({}, "Provisioned")

    def test_a_template_may_not_write_the_kind(
        self, fleet: Fleet, east: FakeKube, mgmt: FakeKube
    ) -> None:
        """No repository is asked for it."""
        assert mgmt
        url = "'{{ if true }}gitrepository{{ end }}://flux-system/web/charts/web'"
        fleet.deploy(own("", more=CHART.replace("gitrepository://flux-system/web/charts/web", url)))
        assert "begin repositoryURL with gitrepository://" in outcome(fleet).message
        assert (fleet.repositories.found, data(east)) == ([], {})

    def test_a_profile_names_the_source_that_it_reads(
        self, fleet: Fleet, east: FakeKube, mgmt: FakeKube
    ) -> None:
        """It is that of its own namespace, whatever the address says."""
        made = repository(FOLDER)
        mgmt.put({**made, "metadata": {"name": "web", "namespace": "fleet"}})
        profile = own("", more=CHART).replace("ClusterProfile", "Profile")
        chart = profile.replace("{name: p}", "{name: p, namespace: fleet}")
        fleet.deploy(chart.replace("releaseNamespace: apps", "releaseNamespace: fleet"))
        assert list(data(east)) == ["web-config"]
        ((revision, _),) = set(fleet.repositories.packed)
        assert revision.startswith("GitRepository fleet/web ")


def test_a_source_that_goes_removes_nothing(fleet: Fleet, east: FakeKube, mgmt: FakeKube) -> None:
    """Nor does a revision without manifests, or with one that is none; the next one is deployed."""
    assert mgmt
    fleet.deploy(own(f"{{{REPOSITORY}, path: a.yaml}}"))
    drop(fleet, ObjectKey(GIT, "flux-system", "web"))
    fleet.pump()
    assert list(data(east)) == ["a"]
    for files in ({"README.md": "a"}, {"a.yaml": "<html></html>"}):
        fetch(fleet, files)
        fleet.wait()
        assert outcome(fleet).phase == "Failed"
        assert list(data(east)) == ["a"]
    fetch(fleet, {"a.yaml": config("b")})
    fleet.wait()
    assert list(data(east)) == ["b"]


def test_profiles_without_files_are_as_they_were() -> None:
    """Their digest is the one from before there were files."""
    reading = Reading("a", "v1", "Secret", "n", "b")
    draft = Profile(
        name="p",
        trigger="",
        cluster="",
        object="",
        contents=(),
        destinations=(),
        tier=100,
        leaves_policies=False,
        continue_on_conflict=False,
        digest="",
        reads=(reading,),
    )
    told = {
        "identifier": "a",
        "api_version": "v1",
        "kind": "Secret",
        "namespace": "n",
        "name": "b",
        "optional": False,
    }
    assert complete_draft(draft, ()).digest == digest([[], [], [told]])
