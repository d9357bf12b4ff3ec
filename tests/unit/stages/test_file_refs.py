"""What refs to files must not do: tell secrets, read an event as a template, blame a cluster."""

from __future__ import annotations

import pytest

from bellhop.model.gvk import Resource
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, join, source
from tests.fakes.read import management
from tests.unit.stages.test_files import (
    ARTIFACT,
    GIT,
    URL,
    data,
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
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


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
    """Have a trigger bring some policyRefs for a Service."""
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
    kept = fleet.records.health.get("fleet/east")
    assert kept
    return kept.value.state


class TestTemplates:
    """URLs and names are rendered whole, and what an event says is not rendered again."""

    URL = "https://files.example/web{{ if true }}?of={{ %s }}{{ end }}"

    def test_a_query_may_be_in_a_condition(self, fleet: Fleet, east: FakeKube) -> None:
        fleet.files.served["https://files.example/web?of=east"] = {"a.yaml": config("web")}
        fleet.apply(own(remote(url=self.URL % ".Cluster.metadata.name")))
        fleet.pump()
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
        """Where a trigger itself writes an action out, an event with braces is refused."""
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
        fleet.apply(own(f"{{path: '{path}', {remote()[1:-1]}}}", more=reads))
        fleet.pump()
        assert "policyRefs[0]: 'path' is made of a value of a Secret" in outcome(fleet).message
        assert "swordfish" not in outcome(fleet).message
        assert data(east) == {}
