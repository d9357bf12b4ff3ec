"""Manifests and kustomizations whose files are at a URL, or in an artifact of Flux."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.diagnosis.profile_manifests import manifest
from bellhop.errors import UnreachableError
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.content import Remote
from bellhop.state.deployment import DeploymentStatus
from tests.fakes.files import digest_of
from tests.fakes.fleet import Fleet, service
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, source
from tests.fakes.read import drop, management, write
from tests.unit.adapters.kustomize.conftest import kubectl  # noqa: F401 - a fixture

GIT = GVK("source.toolkit.fluxcd.io", "v1", "GitRepository")
ARTIFACT = "http://source-controller.flux-system.svc.cluster.local./git/web.tar.gz"
URL = "https://files.example/web.yaml"
REPOSITORY = "kind: GitRepository, namespace: flux-system, name: web"


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production", zone="a")


@pytest.fixture
def mgmt(fleet: Fleet, east: FakeKube) -> FakeKube:
    """Return the cluster where Flux runs."""
    assert east
    kube = management(fleet)
    kube.serve(Resource(GIT, "gitrepositories", namespaced=True))
    kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}})
    fleet.pump()
    return kube


def own(refs: str, field: str = "policyRefs", name: str = "p", more: str = "") -> str:
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: {name}}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  {field}: [{refs}]
  {more}
"""


PLAIN = "{kind: ConfigMap, namespace: default, name: plain}"


def plain(name: str) -> str:
    """Return the ConfigMap that `PLAIN` names, with another one to deploy."""
    return holder("plain", config(name))


def remote(more: str = "", url: str = URL) -> str:
    return f"{{remoteURL: {{url: '{url}', {more}}}}}"


def repository(files: dict[str, str] | None, **annotations: str) -> dict[str, Any]:
    """Return a Flux source, with the artifact of some files if there are any."""
    about = {"name": "web", "namespace": "flux-system", "annotations": annotations}
    found: dict[str, Any] = {"apiVersion": str(GIT.api_version), "kind": GIT.kind}
    found["metadata"] = about
    if files is not None:
        artifact = {"url": ARTIFACT, "digest": f"sha256:{digest_of(files)}"}
        found["status"] = {"artifact": {**artifact, "revision": "main@sha1:1"}}
    return found


def fetch(fleet: Fleet, files: dict[str, str], **annotations: str) -> None:
    """Let Flux fetch files, and the forwarder report that."""
    fleet.files.served[ARTIFACT] = files
    write(fleet, repository(files, **annotations))
    fleet.pump()


def data(kube: FakeKube) -> dict[str, Any]:
    return {each["metadata"]["name"]: each.get("data") for each in kube.objects(CONFIG)}


def outcome(fleet: Fleet, name: str = "p") -> DeploymentStatus:
    return fleet.status_of(name)


class TestUrls:
    """`remoteURL` of policyRefs and kustomizationRefs."""

    def test_what_a_url_serves_comes_changes_and_goes(self, fleet: Fleet, east: FakeKube) -> None:
        """A resync reads it again, and writes nothing while it serves the same."""
        fleet.files.served[URL] = {"web.yaml": config("web", "v: '1'")}
        fleet.deploy(own(remote()))
        assert data(east) == {"web": {"v": "1"}}
        marks = east.objects(CONFIG)[0]["metadata"]["annotations"]
        assert marks["projectsveltos.io/reference-kind"] == "RemoteURL"
        assert marks["projectsveltos.io/reference-name"] == URL

        east.calls.clear()
        fleet.resync()
        assert [call for call in east.calls if call.verb == "apply"] == []
        fleet.files.served[URL] = {"web.yaml": config("web", "v: '2'")}
        fleet.resync()
        assert data(east) == {"web": {"v": "2"}}

        fleet.declare.label("fleet/east", {"env": "test"})
        fleet.release()
        fleet.pump()
        assert data(east) == {}

    def test_it_is_downloaded_as_its_ref_says(self, fleet: Fleet, east: FakeKube) -> None:
        """With the credentials of a Secret, which no record and no error repeats."""
        fleet.apply(
            """
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: fleet}
type: addons.projectsveltos.io/cluster-profile
stringData: {username: ada, password: pa55, token: t0ken, caFile: PEM}
"""
        )
        fleet.files.served[URL] = {"web.yaml": config("web")}
        more = "interval: 90s, insecureSkipTLSVerify: true, plainHTTP: true"
        more += ", secretRef: {name: 'login{{ if false }}s{{ end }}'}"
        fleet.deploy(own(remote(more)))
        assert list(data(east)) == ["web"]
        assert fleet.files.asked[0] == Remote(
            URL, 90.0, "t0ken", "ada", "pa55", "PEM", insecure=True, plain=True
        )
        assert "pa55" not in fleet.output.getvalue() + repr(fleet.files.asked)

    def test_a_template_is_rendered_where_it_says_so(self, fleet: Fleet, east: FakeKube) -> None:
        """And the URL in any case, so that each cluster may have its own."""
        text = config("web", "v: '{{ .Cluster.metadata.name }}'")
        fleet.files.served["https://files.example/east"] = {"web.yaml": text}
        url = "https://files.example/{{ .Cluster.metadata.name }}"
        fleet.deploy(own(remote(url=url)))
        assert data(east) == {"web": {"v": "{{ .Cluster.metadata.name }}"}}
        fleet.deploy(own(remote("template: true", url=url)))
        assert data(east) == {"web": {"v": "east"}}

    def test_a_server_that_is_away_harms_nothing(self, fleet: Fleet, east: FakeKube) -> None:
        """Deployed objects stay, the cluster counts as healthy, and a retry follows."""
        fleet.files.served[URL] = {"web.yaml": config("web", "v: '1'")}
        fleet.deploy(own(remote()))
        fleet.files.failure = UnreachableError("cannot download 'https://files.example': away")
        fleet.resync()
        assert "cannot download 'https://files.example': away" in outcome(fleet).message
        assert data(east) == {"web": {"v": "1"}}
        kept = require_value(fleet.records.health.get("fleet/east"))
        assert kept.state == "Healthy"
        fleet.files.failure = None
        fleet.files.served[URL] = {"web.yaml": config("web", "v: '2'")}
        fleet.wait()
        assert data(east) == {"web": {"v": "2"}}
        assert outcome(fleet).phase == "Provisioned"

    def test_what_is_not_there_is_said_unless_it_is_optional(
        self, fleet: Fleet, east: FakeKube
    ) -> None:
        fleet.deploy(own(remote()))
        assert outcome(fleet).message == f"cannot download '{URL}': there is nothing"
        fleet.apply(own(f"{{optional: true, {remote()[1:-1]}}}"))
        fleet.wait()
        assert outcome(fleet).phase == "Provisioned"
        assert data(east) == {}

    @pytest.mark.parametrize(
        ("files", "path", "told"),
        [
            ({"README.md": "hello"}, "", "there is no file in it that ends in .yaml, .yml, .json"),
            ({"a.yaml": "{}"}, "apps", "there is no file at 'apps' that ends in"),
            ({"a.yaml": "{}"}, "../a.yaml", "its path '../a.yaml' leads out of it"),
            ({"a.yaml": "kind: ["}, "", "this is not YAML"),
            ({"a.yaml": "a: 1"}, "", "apiVersion"),
        ],
    )
    def test_what_cannot_be_deployed_says_why(
        self, fleet: Fleet, east: FakeKube, files: dict[str, str], path: str, told: str
    ) -> None:
        fleet.files.served[URL] = files
        fleet.deploy(own(f"{{path: '{path}', {remote()[1:-1]}}}"))
        assert told in outcome(fleet).message
        assert URL in outcome(fleet).message
        assert "RemoteURL" not in outcome(fleet).message
        assert data(east) == {}

    def test_a_path_chooses_among_files(self, fleet: Fleet, east: FakeKube) -> None:
        """Files come by their names, and what is no manifest does not count."""
        names = ("apps/a.yaml", "apps/deep/b.yml", "apps2/c.yaml", "d.yaml")
        found = {name: config(name.rpartition("/")[2][0]) for name in names}
        fleet.files.served[URL] = {**found, "apps/README.md": "# Apps"}
        fleet.deploy(own(f"{{path: ./apps/, {remote()[1:-1]}}}"))
        assert sorted(data(east)) == ["a", "b"]
        fleet.deploy(own(f"{{path: d.yaml, {remote()[1:-1]}}}"))
        assert sorted(data(east)) == ["d"]

    def test_an_event_chooses_the_url(self, fleet: Fleet, east: FakeKube) -> None:
        """So it does by policyRefs[].path; the profile goes with its event, and shows the two."""
        found = {"web.yaml": config("of-web"), "other.yaml": config("of-other")}
        fleet.files.served["https://files.example/web"] = found
        fleet.apply(
            join(
                source("Service"),
                """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: t}
spec:
  eventSourceName: watched
  oneForEvent: true
  sourceClusterSelector: {matchLabels: {env: production}}
  policyRefs:
  - path: '{{ .MatchingResource.Name }}.yaml'
    remoteURL: {url: 'https://files.example/{{ .MatchingResource.Name }}', interval: 1m}
""",
            )
        )
        fleet.release()
        seen = fleet.write("east", service("web"))
        fleet.pump()
        assert list(data(east)) == ["of-web"]
        (made,) = fleet.records.profiles.heads("t")
        profile = require_value(fleet.records.profiles.get("t", made.cluster, made.name))
        refs = manifest(profile, "watched")["spec"]["policyRefs"]
        url = {"url": "https://files.example/web", "interval": "60s"}
        assert refs == [{"path": "web.yaml", "remoteURL": url}]
        fleet.drop("east", seen)
        fleet.pump()
        assert data(east) == {}


class TestFlux:
    """GitRepository, OCIRepository and Bucket of the cluster `mgmt/mgmt`."""

    def test_a_new_revision_is_deployed_at_once(
        self, fleet: Fleet, east: FakeKube, mgmt: FakeKube
    ) -> None:
        """Objects that the new revision no longer has are removed."""
        first = {"apps/a.yaml": config("a", "v: '1'"), "apps/b.yaml": config("b")}
        fleet.files.served[ARTIFACT] = first
        mgmt.put(repository(first))
        fleet.deploy(own(f"{{{REPOSITORY}, path: apps}}"))
        assert sorted(data(east)) == ["a", "b"]
        fetch(fleet, {"apps/a.yaml": config("a", "v: '2'")})
        assert data(east) == {"a": {"v": "2"}}

    def test_annotations_of_the_source_count(
        self, fleet: Fleet, east: FakeKube, mgmt: FakeKube
    ) -> None:
        files = {"a.yaml": config("a", "v: '{{ .Cluster.metadata.name }}'")}
        fleet.files.served[ARTIFACT] = files
        mgmt.put(repository(files, **{"projectsveltos.io/template": "ok"}))
        fleet.deploy(own(f"{{{REPOSITORY}}}"))
        assert data(east) == {"a": {"v": "east"}}

    @pytest.mark.usefixtures("mgmt")
    def test_one_that_is_not_ready_is_waited_for(self, fleet: Fleet, east: FakeKube) -> None:
        """First there is no source, then Flux has not fetched it, and then it is deployed."""
        fleet.deploy(own(f"{{{REPOSITORY}}}"))
        told = "cannot find GitRepository 'flux-system/web' that policyRefs[0] names; apply it in"
        assert told in outcome(fleet).message
        write(fleet, repository(None))
        fleet.pump()
        assert "Flux has no artifact of it yet" in outcome(fleet).message
        fetch(fleet, {"a.yaml": config("a")})
        assert list(data(east)) == ["a"]
        assert outcome(fleet).phase == "Provisioned"

    @pytest.mark.usefixtures("kubectl")
    def test_a_kustomization_is_built_of_it(
        self, fleet: Fleet, east: FakeKube, mgmt: FakeKube
    ) -> None:
        """Once for a revision, however many clusters there are."""
        files = {"over/kustomization.yaml": "resources: [a.yaml]", "over/a.yaml": config("a")}
        fleet.files.served[ARTIFACT] = files
        mgmt.put(repository(files))
        ref = f"{{{REPOSITORY}, path: over, targetNamespace: shop}}"
        fleet.deploy(own(ref, "kustomizationRefs"))
        (made,) = east.objects(CONFIG)
        assert made["metadata"]["namespace"] == "shop"
        assert made["metadata"]["annotations"]["projectsveltos.io/reference-name"] == "web"
        fetch(fleet, {**files, "over/a.yaml": config("b")})
        assert list(data(east)) == ["b"]

    def test_a_chart_of_it_is_upgraded_by_each_revision(
        self, fleet: Fleet, east: FakeKube, mgmt: FakeKube
    ) -> None:
        """Only the missing one fails: manifests of the profile are deployed."""
        files = {"charts/web/Chart.yaml": "version: 1.0.0", "apps/a.yaml": config("a")}
        fleet.files.served[ARTIFACT] = files
        mgmt.put(repository(files))
        chart = """
  - repositoryURL: GitRepository://flux-system/web/charts/web
    releaseName: web
    releaseNamespace: apps
"""
        fleet.deploy(own(f"{{{REPOSITORY}, path: apps}}", more=f"helmCharts:{chart}"))
        assert data(east) == {"a": None, "web-config": {"chart": "web-1.0.0"}}
        fleet.resync()
        assert len(fleet.charts.deployed) == 1
        fetch(fleet, {**files, "charts/web/Chart.yaml": "version: 1.1.0"})
        assert data(east)["web-config"] == {"chart": "web-1.1.0"}
        revision, path = fleet.repositories.packed[-1]
        assert revision.startswith("GitRepository flux-system/web sha256:")
        assert path == "charts/web"
        assert fleet.repositories.found == []

        drop(fleet, ObjectKey(GIT, "flux-system", "web"))
        fleet.apply(join(plain("b"), own(PLAIN, more=f"helmCharts:{chart}")))
        fleet.wait()
        phases = {each.feature: each.phase for each in outcome(fleet).features}
        assert phases == {"Resources": "Provisioned", "Helm": "FailedNonRetriable"}
        assert "that helmCharts[0] names" in outcome(fleet).message
        assert sorted(data(east)) == ["b", "web-config"]

    @pytest.mark.usefixtures("kubectl", "mgmt")
    def test_a_missing_source_fails_only_its_kustomization(
        self, fleet: Fleet, east: FakeKube
    ) -> None:
        """Manifests of the profile are deployed meanwhile, and the source is waited for."""
        refs = f"kustomizationRefs: [{{{REPOSITORY}, path: over}}]"
        fleet.deploy(join(plain("b"), own(PLAIN, more=refs)))
        assert list(data(east)) == ["b"]
        phases = {each.feature: each.phase for each in outcome(fleet).features}
        assert phases == {"Resources": "Provisioned", "Kustomize": "FailedNonRetriable"}
        assert "that kustomizationRefs[0] names" in outcome(fleet).message

        files = {"over/kustomization.yaml": "resources: [a.yaml]", "over/a.yaml": config("a")}
        fleet.files.served[ARTIFACT] = files
        write(fleet, repository(files))
        fleet.pump()
        assert sorted(data(east)) == ["a", "b"]
        assert outcome(fleet).phase == "Provisioned"

    def test_the_account_of_a_profile_reads_it(
        self, fleet: Fleet, east: FakeKube, mgmt: FakeKube
    ) -> None:
        """A tenant that may not read a source may not deploy its contents."""
        files = {"a.yaml": config("a")}
        fleet.files.served[ARTIFACT] = files
        mgmt.put(repository(files))
        labels = """
  labels:
    projectsveltos.io/serviceaccount-name: ada
    projectsveltos.io/serviceaccount-namespace: default
"""
        fleet.deploy(
            own(f"{{{REPOSITORY}}}").replace("metadata: {name: p}", f"metadata:\n  name: p{labels}")
        )
        assert "may not" in outcome(fleet).message
        mgmt.rbac.grant("default/ada", "GitRepository")
        east.rbac.grant("default/ada", "ConfigMap")
        fleet.wait()
        assert list(data(east)) == ["a"]

    def test_without_a_management_cluster_it_says_so(self, fleet: Fleet, east: FakeKube) -> None:
        fleet.deploy(own(f"{{{REPOSITORY}}}"))
        assert "none is registered as 'mgmt/mgmt'" in outcome(fleet).message
        assert data(east) == {}


def test_nothing_of_it_reaches_another_installation(tmp_path: Path) -> None:
    """A process without what downloads says so, and what is deployed stays."""
    fleet = Fleet(tmp_path)
    fleet.files = None  # type: ignore[assignment]
    fleet.reread()
    east = fleet.register("east", env="production")
    fleet.deploy(own(remote()))
    assert outcome(fleet).message == "cannot download files: nothing here can"
    assert data(east) == {}
    assert MANAGEMENT not in fleet.access.clusters


@pytest.mark.parametrize("field", ["policyRefs", "kustomizationRefs"])
def test_files_of_flux_are_held_to_what_their_profile_may_deploy(
    fleet: Fleet, east: FakeKube, mgmt: FakeKube, field: str
) -> None:
    """Objects of manifests and of kustomizations are checked like those of a ConfigMap."""
    assert mgmt
    files = {"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": config("a")}
    fetch(fleet, files if field == "kustomizationRefs" else {"a.yaml": config("a")})
    allow = 'annotations: {bellhop.dev/allow: "ConfigMap in team-*"}'
    fleet.deploy(own(f"{{{REPOSITORY}}}", field).replace("{name: p}", f"{{name: p, {allow}}}"))

    assert data(east) == {}
    assert "may not deploy a ConfigMap in namespace 'default'" in outcome(fleet).message
