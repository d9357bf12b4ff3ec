"""Helm charts of triggers and profiles, from their manifests to the releases in a cluster."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.core.gvk import GVK
from bellhop.errors import (
    InvalidError,
)
from bellhop.state.chart import release_key
from tests.fakes.fleet import Fleet, service
from tests.fakes.kept import require_value
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile, source
from tests.fakes.releases import (
    CONFIG,
    TWO,
    chart,
    charted,
    charts,
    data,
    held,
    outcome,
)

SHOP = "{{ .Resource.metadata.name }}"
RENDERED = {
    "helmCharts[].repositoryURL": ("https://charts.example.com", f"https://{SHOP}.example.com"),
    "helmCharts[].repositoryName": ("repositoryName: example", f'repositoryName: "{SHOP}"'),
    "helmCharts[].chartName": ("chartName: example/web", f'chartName: "example/{SHOP}"'),
    "helmCharts[].chartVersion": ('"1.0.0"', '"{{ len .Resource.metadata.name | sub 5 }}.0.0"'),
    "helmCharts[].releaseName": ("releaseName: web", f'releaseName: "{SHOP}"'),
    "helmCharts[].releaseNamespace": ("releaseNamespace: apps", f'releaseNamespace: "{SHOP}"'),
    "helmCharts[].values": ("replicas: one", f'replicas: "{SHOP}"'),
    "helmCharts[].valuesFrom[].namespace": ("namespace: default", f'namespace: "{SHOP}"'),
    "helmCharts[].valuesFrom[].name": ("name: more", f'name: "{SHOP}"'),
}
"""Texts of a chart, and each with the name of the event's object in it."""

CHECK = """preDeleteChecks:
  - name: drained
    featureID: Helm
    version: v1
    kind: ConfigMap
    namespace: apps
    script: |
      function evaluate()
        return {healthy = obj.metadata.name ~= "busy", message = "it is busy"}
      end
"""
BUSY = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "busy", "namespace": "apps"},
    "data": {},
}

MORE = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: {namespace}}}
data: {{values: "from: {name} in {namespace}"}}
"""


def test_a_chart_is_deployed_and_withdrawn_with_its_profile(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(charts())

    assert data(east) == {"web-config": {"chart": "web-1.0.0", "replicas": "one"}}
    assert outcome(fleet) == ("Provisioned", "")
    assert held(fleet) == {"helm.sh/Release/apps/web", "/ConfigMap/apps/web-config"}
    kept = fleet.status_of("p")
    assert [each.feature for each in kept.features] == ["Helm"]

    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.release()
    fleet.pump()

    assert data(east) == {}
    assert fleet.charts.releases == {}
    assert held(fleet) == set()
    assert fleet.records.owners.get("fleet/east", release_key("apps", "web")) is None


def test_helm_is_asked_again_only_for_what_has_changed(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(charts())
    fleet.deploy(charts(more="tier: 90"))
    assert len(fleet.charts.deployed) == 1

    fleet.deploy(charts(of=chart(values="replicas: two")))
    assert data(east)["web-config"]["replicas"] == "two"

    fleet.deploy(charts(of=chart(version="1.1.0")))
    assert data(east) == {"web-config": {"chart": "web-1.1.0", "replicas": "one"}}
    assert len(fleet.charts.deployed) == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[one, two]", "values of a chart must be a mapping"),
        ("'a: [1'", "this is not YAML"),
        ("'{{ if false }}a{{ end }}- b'", "values of a chart must be a mapping"),
    ],
)
def test_values_that_are_no_mapping_are_named_before_helm_is_called(
    fleet: Fleet, east: FakeKube, text: str, why: str
) -> None:
    """By the ConfigMap and its entry, not by a file of our process."""
    more = "valuesFrom: [{kind: ConfigMap, namespace: default, name: more}]"
    text = text if text.startswith("'") else f"'{text}'"
    held = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: more, namespace: default, annotations: {{projectsveltos.io/template: ok}}}}
data: {{list: {text}}}
"""
    fleet.deploy(join(held, charts(of=chart(more))))

    assert east.objects(CONFIG) == []
    assert fleet.charts.deployed == []
    phase, message = outcome(fleet)
    assert phase == "Failed"
    assert "default/more/list: " in message
    assert why in message

    fleet.apply(held.replace(text, "'a: b'"))
    fleet.wait(timedelta(hours=1))
    assert outcome(fleet) == ("Provisioned", "")


def test_values_come_from_holders_in_order_and_are_followed(fleet: Fleet, east: FakeKube) -> None:
    more = """valuesFrom:
        - {kind: ConfigMap, namespace: default, name: of-cluster}
        - {kind: ConfigMap, namespace: default, name: plain}"""
    of_cluster = """
apiVersion: v1
kind: ConfigMap
metadata: {name: of-cluster, namespace: default, annotations: {projectsveltos.io/template: ok}}
data: {values: "cluster: '{{ .Cluster.metadata.name }}'\\nreplicas: three"}
"""
    plain = """
apiVersion: v1
kind: ConfigMap
metadata: {name: plain, namespace: default}
data: {values: "replicas: two\\ncolour: red"}
"""
    fleet.deploy(join(of_cluster, plain, charts(of=chart(more))))
    assert data(east)["web-config"] == {
        "chart": "web-1.0.0",
        "replicas": "three",
        "colour": "red",
        "cluster": "east",
    }

    fleet.deploy(plain.replace("red", "blue"))
    assert data(east)["web-config"]["colour"] == "blue"


def test_a_missing_source_of_values_is_an_error_of_the_profile(
    fleet: Fleet, east: FakeKube
) -> None:
    more = "valuesFrom: [{kind: Secret, namespace: default, name: none}]"
    fleet.deploy(charts(of=chart(more)))

    kept = require_value(fleet.records.profiles.head("", "", "p"))
    assert kept.error == (
        "cannot find Secret default/none that helmCharts[0].valuesFrom names; apply it, or mark"
        " the ref optional"
    )
    assert data(east) == {}


@pytest.mark.usefixtures("east")
def test_fields_of_a_profile_are_templates_of_its_clusters(fleet: Fleet) -> None:
    fleet.register("west", env="production")
    fleet.deploy(charts(of=chart(name='"web-{{ .Cluster.metadata.name }}"')))

    assert sorted(key[::2] for key in fleet.charts.releases) == [
        ("fleet/east", "web-east"),
        ("fleet/west", "web-west"),
    ]


def test_events_render_charts_for_good(fleet: Fleet, east: FakeKube) -> None:
    """The text of an event is no template: otherwise a Service could read what is not its own."""
    of = chart(
        name='"{{ .Resource.metadata.name }}"',
        values="note: '{{ .Resource.metadata.annotations.note }}'",
    )
    fleet.apply(join(source(), charted(of)))
    note = "{{ .Cluster.metadata.name }}"
    event = service("shop")
    event["metadata"]["annotations"] = {"note": note}
    fleet.write("east", event)
    fleet.pump()
    assert data(east)["shop-config"]["note"] == note

    fleet.drop("east", east.objects(GVK("", "v1", "Service"))[0])
    fleet.pump()
    assert data(east) == {}


@pytest.mark.parametrize("field", RENDERED)
def test_events_render_every_text_of_a_chart(fleet: Fleet, east: FakeKube, field: str) -> None:
    before, after = RENDERED[field]
    fleet.repositories.put("shop", "1.0.0")
    places = [(name, space) for name in ("more", "shop") for space in ("default", "shop")]
    holders = [MORE.format(name=name, namespace=space) for name, space in places]
    values = "valuesFrom: [{kind: ConfigMap, namespace: default, name: more}]"
    of = chart(values).replace(before, after)
    fleet.apply(join(source(), charted(of), *holders))
    fleet.write("east", service("shop"))
    fleet.pump()

    (place,) = {(each.repository, each.chart, each.version) for each in fleet.repositories.found}
    (release,) = fleet.charts.releases
    (found,) = data(east).values()
    fields = [*place, *release[1:], found["replicas"], found["from"]]
    usual = ["https://charts.example.com", "web", "1.0.0", "apps", "web", "one", "more in default"]
    changed = {
        "helmCharts[].repositoryURL": (0, "https://shop.example.com"),
        "helmCharts[].chartName": (1, "shop"),
        "helmCharts[].releaseNamespace": (3, "shop"),
        "helmCharts[].releaseName": (4, "shop"),
        "helmCharts[].values": (5, "shop"),
        "helmCharts[].valuesFrom[].namespace": (6, "more in shop"),
        "helmCharts[].valuesFrom[].name": (6, "shop in default"),
    }
    if field in changed:
        at, text = changed[field]
        usual[at] = text
    assert fields == usual


def test_an_action_that_is_written_out_is_for_deploy_time(fleet: Fleet, east: FakeKube) -> None:
    of = chart(values="of: '{{`{{ .Cluster.metadata.name }}`}}'")
    fleet.apply(join(source(), charted(of)))
    fleet.write("east", service("shop"))
    fleet.pump()

    assert data(east)["web-config"]["of"] == "east"


@pytest.mark.usefixtures("east")
def test_a_name_of_an_event_is_no_template_beside_one_for_deploy_time(fleet: Fleet) -> None:
    later = "{{`{{ .Cluster.metadata.name }}`}}"
    of = chart(name=f'"{later}"').replace(": apps", ': "{{ .Resource.metadata.annotations.note }}"')
    fleet.apply(join(source(), charted(of)))
    event = service("shop")
    event["metadata"]["annotations"] = {"note": "{{ .Cluster.metadata.namespace }}"}
    fleet.write("east", event)
    fleet.pump()
    assert fleet.charts.releases == {}
    assert any("an event's value has '{{'" in each.detail for each in fleet.ledger())

    event["metadata"]["annotations"] = {"note": "shop"}
    fleet.write("east", event)
    fleet.pump()
    assert list(fleet.charts.releases) == [("fleet/east", "shop", "east")]


def test_values_of_an_event_are_no_template_beside_one_for_deploy_time(
    fleet: Fleet, east: FakeKube
) -> None:
    """Only where they would be read as one: in other fields of the object they do no harm."""
    later = "of: '{{`{{ .Cluster.metadata.name }}`}}'"
    of = chart(values=f"{later}, note: '{{{{ .Resource.metadata.annotations.note }}}}'")
    of = of.replace("values: |\n        ", "values: |\n        {").replace("note }}'", "note }}'}")
    fleet.apply(join(source(), charted(of)))
    event = service("shop")
    event["metadata"]["annotations"] = {"note": "{{ .Cluster.metadata.namespace }}"}
    fleet.write("east", event)
    fleet.pump()
    assert fleet.charts.releases == {}
    assert any("an event's value has '{{'" in each.detail for each in fleet.ledger())

    event["metadata"]["annotations"] = {"note": "shop", "other": "{{ .Cluster }}"}
    fleet.write("east", event)
    fleet.pump()
    assert data(east)["web-config"] == {"chart": "web-1.0.0", "of": "east", "note": "shop"}


def test_a_profile_may_have_objects_and_charts(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(
        join(
            profile(more=chart() + "\n"),
            holder("own", config("plain", 'v: "1"')),
        )
    )
    assert set(data(east)) == {"plain", "web-config"}
    fleet.deploy(join(profile(more=""), holder("own", config("plain", 'v: "2"'))))
    assert data(east) == {"plain": {"v": "2"}}


@pytest.mark.usefixtures("east")
def test_a_dry_run_reports_release_and_objects(fleet: Fleet) -> None:
    fleet.deploy(charts(more="syncMode: DryRun"))
    kept = require_value(fleet.records.previews.get("fleet/east", "p"))
    assert [(str(each.key), each.action) for each in kept.changes] == [
        ("helm.sh/Release/apps/web", "Create"),
        ("/ConfigMap/apps/web-config", "Create"),
    ]
    assert fleet.charts.deployed == []


def test_labels_and_description_of_a_release_are_templates(fleet: Fleet, east: FakeKube) -> None:
    options = """options:
        labels: {cluster: "{{ .Cluster.metadata.name }}"}
        description: "for {{ .Cluster.metadata.name }}"
"""
    fleet.deploy(charts(of=chart(options)))
    assert data(east)
    (wanted,) = fleet.charts.deployed
    assert wanted.options.labels == {"cluster": "east"}
    assert wanted.options.description == "for east"

    fleet.deploy(charts(of=chart(options.replace('name }}"}', 'name }},b"}'))))
    assert outcome(fleet)[1] == (
        "helmCharts[0].options.labels.cluster: 'east,b' is not a label's value: it takes letters,"
        " digits, '-', '_' and '.'"
    )


def test_a_chart_that_renders_only_in_a_cluster_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    """It may ask for a version of Kubernetes, or for objects, that only the cluster has."""
    fleet.charts.refused_renders["web"] = InvalidError("chart requires kubeVersion: >=1.30.0")
    fleet.deploy(charts())

    assert outcome(fleet) == ("Provisioned", "")
    assert "web-config" in data(east)


@pytest.mark.usefixtures("east")
def test_a_release_that_is_ours_costs_no_other_call_of_helm(fleet: Fleet) -> None:
    """Each call is a process, which takes a fifth of the processor time of an upgrade."""
    for replicas in ("one", "two", "three"):
        fleet.deploy(charts(of=chart(values=f"replicas: {replicas}")))
    fleet.deploy(charts(of="policyRefs: []"))

    assert len(fleet.charts.deployed) == 3
    assert len(fleet.charts.removals) == 1
    assert fleet.charts.read == []


def test_a_chart_is_rendered_once_for_the_same_values(fleet: Fleet) -> None:
    """Rendering takes processor time that a fleet of clusters need not pay each.

    Values that are another cluster's own may be those by which templates loop.
    """
    fleet.repositories.put("web", "1.0.0")
    fleet.register("east", env="production")
    fleet.register("west", env="production")
    fleet.deploy(charts())
    assert len(fleet.charts.deployed) == 2
    assert len(fleet.charts.rendered) == 1

    fleet.deploy(charts(of=chart(values="replicas: two")))
    assert len(fleet.charts.rendered) == 2

    fleet.deploy(charts(of=chart(values="of: '{{ .Cluster.metadata.name }}'")))
    assert [each.values for each in fleet.charts.rendered[2:]] == [
        ("of: 'east'\n",),
        ("of: 'west'\n",),
    ]


def test_a_chart_that_a_profile_drops_stays_until_its_checks_pass(
    fleet: Fleet, east: FakeKube
) -> None:
    """All else of the profile is deployed meanwhile."""
    fleet.deploy(charts(of=TWO, more=CHECK))
    east.put(BUSY)
    fleet.deploy(charts(of=chart(values="replicas: two"), more=CHECK))
    assert set(data(east)) == {"web-config", "second-config", "busy"}
    assert data(east)["web-config"]["replicas"] == "two"
    phase, message = outcome(fleet)
    assert phase == "Provisioning"
    assert message == "waits for check 'drained': ConfigMap 'apps/busy' is not healthy: it is busy"

    east.drop(CONFIG, "apps", "busy")
    fleet.wait(timedelta(minutes=20))
    assert set(data(east)) == {"web-config"}
    assert outcome(fleet) == ("Provisioned", "")
    assert len(fleet.charts.deployed) == 3
