"""Helm charts of triggers and profiles, from what is declared to the releases in a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.core.gvk import GVK, Identity
from bellhop.errors import (
    BellhopError,
    ConflictError,
    InvalidError,
    TemporaryError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.ports.charts import DEPLOYED, Release
from bellhop.state.chart import release_key
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile, source, trigger
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.fakes.share import SHARE

CONFIG = GVK("", "v1", "ConfigMap")
CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    fleet.repositories.put("web", "1.0.0", "1.1.0")
    return fleet.register("east", env="production")


def chart(more: str = "", *, name: str = "web", version: str = "1.0.0", values: str = "") -> str:
    """Return the field of one chart."""
    return f"""helmCharts:
    - repositoryURL: https://charts.example.com
      repositoryName: example
      chartName: example/web
      chartVersion: "{version}"
      releaseName: {name}
      releaseNamespace: apps
      values: |
        {values or "replicas: one"}
      {more}
  """


TWO = chart().rstrip() + "\n    " + chart(name="second").partition("helmCharts:")[2].lstrip()


def charts(name: str = "p", *, of: str = "", more: str = "") -> str:
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: {name}}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  {more}
  {of or chart()}
"""


def charted(of: str) -> str:
    """Return a trigger that has charts alone."""
    refs = "policyRefs: [{kind: ConfigMap, name: made, namespace: default}]"
    return trigger(more=of).replace(refs, "")


def data(kube: FakeKube) -> dict[str, Mapping[str, str]]:
    return {each["metadata"]["name"]: each["data"] for each in kube.objects(CONFIG)}


def outcome(fleet: Fleet, name: str = "p") -> tuple[str, str]:
    kept = fleet.records.outcomes.get("fleet/east", name)
    return (kept.value.phase, kept.value.message) if kept else ("", "")


def held(fleet: Fleet, name: str = "p") -> set[str]:
    kept = fleet.records.inventories.get("fleet/east", name)
    return {str(key) for key in kept.value.held} if kept else set()


def test_a_chart_is_deployed_and_withdrawn_with_its_profile(fleet: Fleet, east: FakeKube) -> None:
    fleet.apply(charts())
    fleet.pump()

    assert data(east) == {"web-config": {"chart": "web-1.0.0", "replicas": "one"}}
    assert outcome(fleet) == ("Provisioned", "")
    assert held(fleet) == {"helm.sh/Release/apps/web", "/ConfigMap/apps/web-config"}
    kept = fleet.records.outcomes.get("fleet/east", "p")
    assert kept
    assert [each.feature for each in kept.value.features] == ["Helm"]

    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.release()
    fleet.pump()

    assert data(east) == {}
    assert fleet.charts.releases == {}
    assert held(fleet) == set()
    assert fleet.records.owners.get("fleet/east", release_key("apps", "web")) is None


def test_helm_is_asked_again_only_for_what_has_changed(fleet: Fleet, east: FakeKube) -> None:
    fleet.apply(charts())
    fleet.pump()
    fleet.apply(charts(more="tier: 90"))
    fleet.pump()
    assert len(fleet.charts.deployed) == 1

    fleet.apply(charts(of=chart(values="replicas: two")))
    fleet.pump()
    assert data(east)["web-config"]["replicas"] == "two"

    fleet.apply(charts(of=chart(version="1.1.0")))
    fleet.pump()
    assert data(east) == {"web-config": {"chart": "web-1.1.0", "replicas": "one"}}
    assert len(fleet.charts.deployed) == 3


def test_what_helm_refuses_right_after_new_definitions_is_tried_again_soon(
    fleet: Fleet, east: FakeKube
) -> None:
    """The API server has not published their schema; a refusal after that is the chart's."""
    upgrade = "options: {upgradeOptions: {upgradeCRDs: true}}"
    definition = {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": "gauges.example.org"},
        "spec": {
            "group": "example.org",
            "names": {"kind": "Gauge", "plural": "gauges"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    fleet.apply(charts(of=chart(upgrade)))
    fleet.pump()
    fleet.charts.crds = json.dumps(definition)
    fleet.charts.failures["web"] = InvalidError('unknown field "most"')
    fleet.apply(charts(of=chart(upgrade, version="1.1.0")))
    fleet.pump()
    kept = fleet.records.outcomes.get("fleet/east", "p")
    assert kept
    assert (kept.value.reason, kept.value.failures) == ("Temporary", 1)
    assert "the definitions of the chart were just changed" in kept.value.message
    assert len(east.objects(CRD)) == 1

    fleet.clock.advance(timedelta(seconds=5))
    fleet.pump()
    assert "just changed" not in outcome(fleet)[1]

    del fleet.charts.failures["web"]
    fleet.clock.advance(timedelta(seconds=10))
    fleet.pump()
    assert outcome(fleet) == ("Provisioned", "")


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
    fleet.apply(join(held, charts(of=chart(more))))
    fleet.pump()

    assert east.objects(CONFIG) == []
    assert fleet.charts.deployed == []
    phase, message = outcome(fleet)
    assert phase == "Failed"
    assert "default/more/list: " in message
    assert why in message

    fleet.apply(held.replace(text, "'a: b'"))
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    assert outcome(fleet) == ("Provisioned", "")


def test_values_of_a_secret_that_are_no_mapping_are_not_quoted(
    fleet: Fleet, east: FakeKube
) -> None:
    """A parser shows the line."""
    assert east
    more = "valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    held = """
apiVersion: v1
kind: Secret
metadata: {name: more, namespace: default}
type: addons.projectsveltos.io/cluster-profile
stringData: {list: "hush: [hidden"}
"""
    fleet.apply(join(held, charts(of=chart(more))))
    fleet.pump()
    assert "default/more/list: it is not a mapping in YAML" in outcome(fleet)[1]
    assert "hidden" not in outcome(fleet)[1]


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
    fleet.apply(join(of_cluster, plain, charts(of=chart(more))))
    fleet.pump()
    assert data(east)["web-config"] == {
        "chart": "web-1.0.0",
        "replicas": "three",
        "colour": "red",
        "cluster": "east",
    }

    fleet.apply(plain.replace("red", "blue"))
    fleet.pump()
    assert data(east)["web-config"]["colour"] == "blue"


def test_what_a_profile_needs_and_is_not_there_is_told(fleet: Fleet, east: FakeKube) -> None:
    more = "valuesFrom: [{kind: Secret, namespace: default, name: none}]"
    fleet.apply(charts(of=chart(more)))
    fleet.pump()

    kept = fleet.records.profiles.head("", "", "p")
    assert kept
    assert kept.value.error == (
        "cannot find Secret default/none that helmCharts[0].valuesFrom names; apply it, or mark"
        " the ref optional"
    )
    assert data(east) == {}


@pytest.mark.usefixtures("east")
def test_fields_of_a_profile_are_templates_of_its_clusters(fleet: Fleet) -> None:
    fleet.register("west", env="production")
    fleet.apply(charts(of=chart(name='"web-{{ .Cluster.metadata.name }}"')))
    fleet.pump()

    assert sorted(key[::2] for key in fleet.charts.releases) == [
        ("fleet/east", "web-east"),
        ("fleet/west", "web-west"),
    ]


def test_events_render_charts_for_good(fleet: Fleet, east: FakeKube) -> None:
    """What an event says is no template: else a Service could read what is none of its own."""
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
"""Which text of a chart stands for another, in which the name of the event's object is."""

MORE = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: {namespace}}}
data: {{values: "from: {name} in {namespace}"}}
"""


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
    told = [*place, *release[1:], found["replicas"], found["from"]]
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
    assert told == usual


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
    """Only where they would be read as one: elsewhere in the object they harm nobody."""
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


def test_nothing_is_deployed_once_the_lease_is_over(fleet: Fleet, east: FakeKube) -> None:
    """A worker that took too long to find a chart starts again: another one may have the lease."""
    deployed: list[int] = []
    fleet.repositories.meanwhile = [
        lambda: deployed.append(len(fleet.charts.deployed)),
        lambda: fleet.clock.advance(timedelta(minutes=3)),
    ]
    fleet.apply(charts())
    fleet.pump()
    assert deployed == [0]
    assert len(fleet.charts.deployed) == 1
    assert set(data(east)) == {"web-config"}
    assert outcome(fleet) == ("Provisioned", "")


def test_two_profiles_that_want_a_release_are_in_conflict(fleet: Fleet, east: FakeKube) -> None:
    fleet.apply(charts())
    fleet.pump()
    fleet.apply(charts("q", of=chart(values="replicas: two")))
    fleet.pump()
    phase, message = outcome(fleet, "q")
    assert message.startswith(
        "cannot apply Release 'apps/web' to 'fleet/east': profile 'p' of tier 100 has it;"
    ), phase
    assert data(east)["web-config"]["replicas"] == "one"

    fleet.apply(charts("q", of=chart(values="replicas: two"), more="tier: 50"))
    fleet.pump()
    assert data(east)["web-config"]["replicas"] == "two"
    assert outcome(fleet, "q")[0] == "Provisioned"
    assert "has it" in outcome(fleet, "p")[1]
    assert held(fleet, "p") == set()


@pytest.mark.usefixtures("east")
def test_a_release_is_handed_over_to_the_profile_that_waits_for_it(fleet: Fleet) -> None:
    """Who renames a profile loses none of what its charts keep."""
    fleet.apply(charts())
    fleet.pump()
    fleet.apply(charts("q"))
    fleet.pump()
    fleet.apply(charts().replace("production", "nowhere"))
    assert list(fleet.records.removals.all()) == []
    fleet.pump()

    assert fleet.charts.removals == []
    assert held(fleet) == set()
    assert held(fleet, "q") == {"helm.sh/Release/apps/web", "/ConfigMap/apps/web-config"}
    assert outcome(fleet, "q") == ("Provisioned", "")

    fleet.apply(charts("q").replace("production", "nowhere"))
    fleet.release()
    fleet.pump()
    assert fleet.charts.releases == {}
    assert list(fleet.records.owners.of("fleet/east")) == []


@pytest.mark.usefixtures("east")
def test_a_profile_that_only_tries_to_have_a_release_has_it_not_deployed_again(
    fleet: Fleet,
) -> None:
    fleet.apply(charts())
    fleet.pump()
    fleet.apply(charts("q", of=chart(version="9.9.9"), more="tier: 50"))
    for _ in range(3):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=30))
    assert "cannot find chart" in outcome(fleet, "q")[1]
    assert outcome(fleet) == ("Provisioned", "")
    assert len(fleet.charts.deployed) == 1


def test_a_profile_that_only_tries_to_have_an_object_has_no_chart_deployed_again(
    fleet: Fleet, east: FakeKube
) -> None:
    fleet.apply(charts())
    fleet.pump()
    other = holder("b", config("web-config", 'v: "1"', namespace="apps"))
    fleet.apply(join(profile(name="b", more="tier: 50"), other))
    for _ in range(3):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=30))
    assert "it already exists" in outcome(fleet, "b")[1]
    assert len(fleet.charts.deployed) == 1

    force = "policyRefs: [{kind: ConfigMap, name: b, namespace: default, force: true}]"
    usual = "policyRefs: [{kind: ConfigMap, name: b, namespace: default}]"
    fleet.apply(profile(name="b", more="tier: 50").replace(usual, force))
    fleet.pump()
    assert outcome(fleet, "b") == ("Provisioned", "")
    assert data(east)["web-config"]["v"] == "1"
    assert len(fleet.charts.deployed) == 1

    fleet.declare.delete([("ClusterProfile", "", "b")])
    fleet.release()
    fleet.pump()
    assert len(fleet.charts.deployed) == 2
    key = Identity("", "ConfigMap", "apps", "web-config")
    owner = fleet.records.owners.get("fleet/east", key)
    assert owner
    assert owner.value.profile == "p"


@pytest.mark.usefixtures("east")
def test_a_strange_release_is_taken_over_only_where_asked(fleet: Fleet) -> None:
    theirs = Release("web", "apps", 4, DEPLOYED, "other", "0.1.0")
    fleet.charts.releases["fleet/east", "apps", "web"] = theirs
    fleet.apply(charts())
    fleet.pump()
    assert outcome(fleet)[1].startswith(
        "cannot deploy the release 'apps/web': it already exists, from other 0.1.0, and no profile"
        " made it; to take it over, set options.installOptions.takeOwnership in helmCharts[0]"
    )
    assert fleet.charts.releases["fleet/east", "apps", "web"] == theirs

    fleet.apply(charts(of=chart("options: {installOptions: {takeOwnership: true}}")))
    fleet.pump()
    assert outcome(fleet) == ("Provisioned", "")
    assert fleet.charts.releases["fleet/east", "apps", "web"].revision == 5


@pytest.mark.usefixtures("east")
def test_a_strange_release_stays_though_something_had_begun(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Release("web", "apps", 4, DEPLOYED, "other", "0.1.0")
    fleet.charts.releases["fleet/east", "apps", "web"] = theirs

    def silent(*_: object) -> None:
        raise UnreachableError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(fleet.charts, "release", silent)
        fleet.apply(charts())
        fleet.pump()
    fleet.clock.advance(timedelta(minutes=20))
    fleet.pump()
    assert "no profile made it" in outcome(fleet)[1]
    fleet.apply(charts(of="policyRefs: []"))
    fleet.pump()

    assert fleet.charts.releases["fleet/east", "apps", "web"] == theirs
    assert held(fleet) == set()


def test_a_chart_that_is_not_wanted_any_more_is_removed(fleet: Fleet, east: FakeKube) -> None:
    fleet.apply(charts(of=TWO))
    fleet.pump()
    assert set(data(east)) == {"web-config", "second-config"}
    assert [each.name for each in fleet.charts.deployed] == ["web", "second"]

    fleet.apply(charts())
    fleet.pump()
    assert set(data(east)) == {"web-config"}


@pytest.mark.usefixtures("east")
def test_a_release_is_removed_where_its_profile_asks_for_that(fleet: Fleet) -> None:
    fleet.charts.releases["fleet/east", "apps", "web"] = Release(
        "web", "apps", 1, DEPLOYED, "web", "0.9.0"
    )
    fleet.apply(charts(of=chart("helmChartAction: Uninstall")))
    fleet.pump()
    assert fleet.charts.releases == {}
    assert outcome(fleet) == ("Provisioned", "")

    fleet.pump()
    fleet.apply(charts(of=chart("helmChartAction: Uninstall"), more="tier: 90"))
    fleet.pump()
    assert len(fleet.charts.removals) == 1


def test_what_helm_refuses_is_told_and_the_rest_waits(fleet: Fleet, east: FakeKube) -> None:
    fleet.charts.failures["web"] = InvalidError("cannot deploy the release 'apps/web': no values")
    fleet.apply(charts(of=TWO))
    fleet.pump()
    assert outcome(fleet)[1] == "cannot deploy the release 'apps/web': no values"
    assert [each.name for each in fleet.charts.deployed].count("second") == 0
    # What Helm had begun is there, and goes with the profile.
    assert "helm.sh/Release/apps/web" in held(fleet)

    fleet.charts.failures.clear()
    fleet.clock.advance(timedelta(minutes=20))
    fleet.pump()
    assert set(data(east)) == {"web-config", "second-config"}


@pytest.mark.usefixtures("east")
def test_an_installation_that_failed_is_installed_again(fleet: Fleet) -> None:
    """Helm runs the hooks of an installation in no upgrade; one that was deployed is upgraded."""
    fleet.charts.failures["web"] = TemporaryError("failed pre-install")
    fleet.apply(charts())
    fleet.pump()
    for _ in range(2):
        fleet.clock.advance(timedelta(minutes=30))
        fleet.pump()
    assert [(each.again, each.there) for each in fleet.charts.deployed] == [
        (False, False),
        (True, False),
        (True, False),
    ]

    fleet.charts.failures.clear()
    fleet.clock.advance(timedelta(minutes=30))
    fleet.pump()
    fleet.apply(charts(of=chart(version="1.1.0")))
    fleet.pump()
    assert [(each.again, each.there) for each in fleet.charts.deployed[3:]] == [
        (True, False),
        (False, True),
    ]


def test_with_continue_on_error_the_rest_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    fleet.charts.failures["web"] = InvalidError("no values")
    fleet.apply(charts(of=TWO, more="continueOnError: true"))
    fleet.pump()
    assert set(data(east)) == {"second-config"}
    assert outcome(fleet)[1] == "no values"


@pytest.mark.parametrize("where", ["its hook times out", "its repository is down"])
def test_with_continue_on_error_a_release_that_fails_for_now_delays_no_other(
    fleet: Fleet, east: FakeKube, where: str
) -> None:
    """Either may pass: the release is tried again, and the next one is deployed."""
    error = TemporaryError(f"cannot deploy 'web': {where}")

    def fail() -> None:
        raise error

    if "hook" in where:
        fleet.charts.failures["web"] = error
    else:
        fleet.repositories.meanwhile.append(fail)
    fleet.apply(charts(of=TWO, more="continueOnError: true"))
    fleet.pump()
    assert set(data(east)) == {"second-config"}
    assert outcome(fleet) == ("Failed", str(error))

    fleet.charts.failures.clear()
    fleet.clock.advance(timedelta(minutes=20))
    fleet.pump()
    assert set(data(east)) == {"web-config", "second-config"}
    assert outcome(fleet) == ("Provisioned", "")


REFS = "policyRefs: [{kind: ConfigMap, namespace: default, name: refs}]"


@pytest.mark.parametrize(
    "manifest",
    [
        "{apiVersion: none.example/v1, kind: Gadget, metadata: {name: one, namespace: apps}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Wrong', namespace: apps}}",
    ],
    ids=["a kind that is not served", "a template that cannot be parsed"],
)
def test_with_continue_on_error_objects_that_fail_delay_no_chart(
    fleet: Fleet, east: FakeKube, manifest: str
) -> None:
    """The outcome says of each feature how it ended; without the field no chart is deployed."""
    objects = holder("refs", manifest, annotations="projectsveltos.io/template: ok")
    fleet.apply(join(objects, charts(more=REFS)))
    fleet.pump()
    assert data(east) == {}

    fleet.apply(charts(more=f"{REFS}\n  continueOnError: true"))
    fleet.clock.advance(timedelta(minutes=1))
    fleet.pump()
    assert set(data(east)) == {"web-config"}
    kept = fleet.records.outcomes.get("fleet/east", "p")
    assert kept
    assert kept.value.phase.startswith("Failed")
    phases = {each.feature: each.phase for each in kept.value.features}
    assert phases == {"Resources": kept.value.phase, "Helm": "Provisioned"}


def test_a_repository_that_is_down_is_not_the_clusters_fault(fleet: Fleet, east: FakeKube) -> None:
    fleet.repositories.failure = UnreachableError("cannot read 'https://charts.example.com'")
    fleet.apply(charts())
    fleet.pump()
    assert outcome(fleet)[1] == "cannot read 'https://charts.example.com'"
    assert fleet.records.circuits.get("fleet/east") is None
    assert held(fleet) == {"helm.sh/Release/apps/web"}

    fleet.repositories.failure = None
    fleet.clock.advance(timedelta(minutes=20))
    fleet.pump()
    assert set(data(east)) == {"web-config"}


SAID = TemporaryError("cannot deploy the release 'apps/web': connection refused: Unauthorized")
ITSELF = (UnauthorizedError("it refuses the credentials"), UnreachableError("it does not answer"))


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize("error", [SAID, InvalidError("no values")])
def test_what_helm_says_is_not_what_its_cluster_says(fleet: Fleet, error: BellhopError) -> None:
    """A chart may write such words; each try counts for maxConsecutiveFailures."""
    fleet.charts.failures["web"] = error
    fleet.apply(charts(more="maxConsecutiveFailures: 3"))
    fleet.pump()
    for _ in range(8):
        fleet.clock.advance(timedelta(minutes=20))
        fleet.pump()
    assert fleet.records.health.get("fleet/east").value.state == "Healthy"
    assert fleet.records.circuits.get("fleet/east") is None
    assert outcome(fleet)[1].startswith(str(error))
    assert len(fleet.charts.deployed) == 3


@pytest.mark.parametrize("own", ITSELF, ids=["refuses", "away"])
def test_a_cluster_is_asked_itself_after_helm_has_failed(
    fleet: Fleet, east: FakeKube, own: BellhopError
) -> None:
    """Also where what Helm says may quote a Secret."""
    more = "valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    fleet.charts.failures["web"] = SAID
    fleet.charts.meanwhile.append(lambda: east.fail_with(own))
    fleet.apply(join(SECRET, charts(of=chart(more))))
    fleet.pump()
    refused = isinstance(own, UnauthorizedError)
    state = fleet.records.health.get("fleet/east").value.state
    assert (state == "Unauthorized") == refused
    assert (fleet.records.circuits.get("fleet/east") is None) == refused


def test_leave_policies_leaves_releases(fleet: Fleet, east: FakeKube) -> None:
    fleet.apply(charts(more="stopMatchingBehavior: LeavePolicies"))
    fleet.pump()
    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.release()
    fleet.pump()
    assert set(data(east)) == {"web-config"}
    assert held(fleet) == set()


def test_a_profile_may_have_objects_and_charts(fleet: Fleet, east: FakeKube) -> None:
    fleet.apply(
        join(
            profile(more=chart() + "\n"),
            holder("own", config("plain", 'v: "1"')),
        )
    )
    fleet.pump()
    assert set(data(east)) == {"plain", "web-config"}
    fleet.apply(join(profile(more=""), holder("own", config("plain", 'v: "2"'))))
    fleet.pump()
    assert data(east) == {"plain": {"v": "2"}}


@pytest.mark.usefixtures("east")
def test_a_dry_run_tells_what_would_change(fleet: Fleet) -> None:
    fleet.apply(charts(more="syncMode: DryRun"))
    fleet.pump()
    kept = fleet.records.previews.get("fleet/east", "p")
    assert kept
    assert [(str(each.key), each.action) for each in kept.value.changes] == [
        ("helm.sh/Release/apps/web", "Create"),
        ("/ConfigMap/apps/web-config", "Create"),
    ]
    assert fleet.charts.deployed == []


SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: more, namespace: default}
type: addons.projectsveltos.io/cluster-profile
stringData: {values: "password: hush-hush"}
"""


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize("failure", [None, TemporaryError("killed half-way")])
def test_a_dry_run_shows_nothing_of_a_secret_that_was_deployed(
    fleet: Fleet, failure: TemporaryError | None
) -> None:
    more = "valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    fleet.apply(join(SECRET, charts(of=chart(more))))
    fleet.pump()
    if failure:
        fleet.charts.failures["web"] = failure
        fleet.apply(charts(of=chart(more, version="1.1.0")))
        fleet.pump()
    fleet.apply(charts(more="syncMode: DryRun"))
    fleet.clock.advance(timedelta(minutes=20))
    fleet.pump()
    kept = fleet.records.previews.get("fleet/east", "p")
    assert kept
    assert [each.action for each in kept.value.changes] == ["Update", "Update"]
    assert "hush-hush" not in repr(kept.value.changes)


def test_a_tenants_charts_are_deployed_with_its_rights(fleet: Fleet, east: FakeKube) -> None:
    """It has to read Helm's own records of releases, as Helm does."""
    east.rbac.grant("team/bot", "Secret", "apps", "list")
    labels = (
        "labels: {projectsveltos.io/serviceaccount-name: bot,"
        " projectsveltos.io/serviceaccount-namespace: team}"
    )
    fleet.apply(charts().replace("{name: p}", "{name: p, " + labels + "}"))
    fleet.pump()
    assert fleet.charts.accounts == ["team/bot"]


def test_who_may_bring_other_kinds_alone_brings_no_chart(fleet: Fleet, east: FakeKube) -> None:
    allowing = 'annotations: {bellhop.dev/allow: "ConfigMap in apps"}'
    fleet.apply(charts().replace("{name: p}", "{name: p, " + allowing + "}"))
    fleet.pump()
    kept = fleet.records.profiles.head("", "", "p")
    assert kept
    assert "may not deploy a Release.helm.sh" in kept.value.error

    allowing = 'annotations: {bellhop.dev/allow: "Release.helm.sh in apps; ConfigMap in apps"}'
    fleet.apply(charts().replace("{name: p}", "{name: p, " + allowing + "}"))
    fleet.pump()
    assert set(data(east)) == {"web-config"}


def test_credentials_come_from_secrets_and_are_not_shown(fleet: Fleet, east: FakeKube) -> None:
    secret = """
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: default}
stringData: {username: ann, password: hush-hush}
"""
    more = "registryCredentialsConfig: {credentials: {name: login, namespace: default}}"
    fleet.apply(join(secret, charts(of=chart(more))))
    fleet.pump()
    login = fleet.repositories.found[-1].login
    assert (login.username, login.password) == ("ann", "hush-hush")
    assert "hush-hush" not in repr(fleet.repositories.found[-1])
    assert set(data(east)) == {"web-config"}


DOCKER = '{{"auths": {{"{host}": {{"auth": "YW5uOmh1c2gtaHVzaA=="}}}}}}'


@pytest.mark.parametrize(
    ("host", "repository", "found"),
    [
        pytest.param("charts.example.com", "https://charts.example.com", True, id="its own"),
        pytest.param("https://index.docker.io/v1/", "OCI://registry-1.docker.io", True, id="hub"),
        pytest.param("other.example.com", "https://charts.example.com", False, id="another"),
    ],
)
def test_logins_are_for_the_host_that_docker_names(
    fleet: Fleet, east: FakeKube, host: str, repository: str, *, found: bool
) -> None:
    """A Secret may have one entry, whatever it is called."""
    secret = f"""
apiVersion: v1
kind: Secret
metadata: {{name: login, namespace: default}}
stringData: {{config.json: '{DOCKER.format(host=host)}'}}
"""
    more = "registryCredentialsConfig: {credentials: {name: login, namespace: default}}"
    of = chart(more).replace("https://charts.example.com", repository)
    fleet.repositories.put("example/web", "1.0.0")
    fleet.apply(join(secret, charts(of=of)))
    fleet.pump()
    if found:
        place = fleet.repositories.found[-1]
        assert (place.login.username, place.login.password) == ("ann", "hush-hush")
        assert place.repository == repository.lower()
        assert outcome(fleet) == ("Provisioned", "")
    else:
        assert data(east) == {}
        assert outcome(fleet)[1] == (
            "cannot use Secret default/login in"
            " helmCharts[0].registryCredentialsConfig.credentials: it has no login for"
            " 'charts.example.com'; log in there with docker, and write its configuration into the"
            " Secret"
        )


def test_labels_and_description_of_a_release_are_templates(fleet: Fleet, east: FakeKube) -> None:
    options = """options:
        labels: {cluster: "{{ .Cluster.metadata.name }}"}
        description: "for {{ .Cluster.metadata.name }}"
"""
    fleet.apply(charts(of=chart(options)))
    fleet.pump()
    assert data(east)
    (wanted,) = fleet.charts.deployed
    assert wanted.options.labels == {"cluster": "east"}
    assert wanted.options.description == "for east"

    fleet.apply(charts(of=chart(options.replace('name }}"}', 'name }},b"}'))))
    fleet.pump()
    assert outcome(fleet)[1] == (
        "helmCharts[0].options.labels.cluster: 'east,b' is not a label's value: it takes letters,"
        " digits, '-', '_' and '.'"
    )


@pytest.mark.usefixtures("east")
def test_what_is_said_of_values_of_a_secret_is_withheld(fleet: Fleet) -> None:
    more = "valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    fleet.charts.failures["web"] = InvalidError("hush-hush is refused")
    fleet.apply(join(SECRET, charts(of=chart(more))))
    fleet.pump()
    assert "hush" not in outcome(fleet)[1]
    assert outcome(fleet)[1].startswith("cannot deploy the release 'apps/web': it is refused;")


@pytest.mark.usefixtures("east")
def test_what_a_rehearsal_says_of_values_of_a_secret_is_withheld(fleet: Fleet) -> None:
    """What is installed again is rehearsed first: Helm quotes the values there as well."""
    more = "valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    fleet.charts.failures["web"] = TemporaryError("failed pre-install")
    fleet.apply(join(SECRET, charts(of=chart(more))))
    fleet.pump()
    fleet.charts.refused_rehearsals["web"] = InvalidError("hush-hush is refused")
    fleet.clock.advance(timedelta(minutes=30))
    fleet.pump()
    assert "hush" not in outcome(fleet)[1]
    assert outcome(fleet)[1].startswith("cannot deploy the release 'apps/web': it is refused;")


@pytest.mark.parametrize("error", [TemporaryError("wait"), ConflictError("an object is theirs")])
def test_what_had_begun_is_deployed_again(
    fleet: Fleet, east: FakeKube, error: TemporaryError | ConflictError
) -> None:
    fleet.charts.failures["web"] = error
    fleet.apply(charts())
    fleet.pump()
    assert outcome(fleet)[1] == str(error)
    fleet.charts.failures.clear()
    fleet.clock.advance(timedelta(minutes=20))
    fleet.pump()
    assert outcome(fleet) == ("Provisioned", "")
    assert set(data(east)) == {"web-config"}


@pytest.mark.rest
@pytest.mark.parametrize("offset", range(3)[::SHARE])
def test_death_at_any_step_leaves_what_is_wanted(tmp_path: Path, offset: int) -> None:
    """Whoever dies while a release comes, changes or goes, the next worker ends it.

    It takes seconds: a process dies some sixty times.
    """
    for steps in range(1 + offset, 120, 6):
        folder = tmp_path / f"{offset}-{steps}"
        folder.mkdir()
        fleet, fate = Fleet(folder), Fate()
        fleet.repositories.put("web", "1.0.0", "1.1.0")
        east, fake = fleet.register("east", env="production"), fleet.charts
        rig.interpose(fleet, lambda name, port, fate=fate: Mortal(name, port, fate))
        fleet.access.clusters = {"fleet/east": east}

        die(fleet, fate, steps, charts())
        assert data(east) == {"web-config": {"chart": "web-1.0.0", "replicas": "one"}}
        die(fleet, fate, steps, charts(of=chart(version="1.1.0")))
        assert data(east) == {"web-config": {"chart": "web-1.1.0", "replicas": "one"}}
        assert outcome(fleet) == ("Provisioned", "")
        die(fleet, fate, steps, charts(of="policyRefs: []"))
        assert data(east) == {}
        assert fake.releases == {}
        assert held(fleet) == set()
        assert list(fleet.records.owners.of("fleet/east")) == []
        fleet.close()


def die(fleet: Fleet, fate: Fate, steps: int, declared: str) -> None:
    """Declare something, die at a step of what follows, and let another process end it."""
    fleet.apply(declared)
    fate.doom(steps)
    with suppress(Killed):
        fleet.pump()
    fate.revive()
    fleet.reread()
    fleet.clock.advance(timedelta(minutes=5))
    fleet.pump()
    fleet.clock.advance(timedelta(minutes=5))
    fleet.pump()


def test_a_chart_whose_templates_take_too_long_is_refused_before_helm_begins(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is rendered without a cluster first, so that no release is left half done.

    It is not tried again: only another chart, or other values, may render sooner.
    """
    del east
    slow = TooLargeError("cannot render the chart: it took more than 5 s of processor time")
    fleet.charts.refused_renders["web"] = slow
    fleet.apply(charts())
    fleet.pump()

    fleet.clock.advance(timedelta(minutes=5))
    fleet.pump()

    phase, message = outcome(fleet)
    assert phase == "FailedNonRetriable"
    assert "more than 5 s of processor time" in message
    assert fleet.charts.deployed == []
    assert len(fleet.charts.rendered) == 1


def test_a_chart_that_renders_only_in_a_cluster_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    """It may ask for a version of Kubernetes, or for objects, that only the cluster has."""
    fleet.charts.refused_renders["web"] = InvalidError("chart requires kubeVersion: >=1.30.0")
    fleet.apply(charts())
    fleet.pump()

    assert outcome(fleet) == ("Provisioned", "")
    assert "web-config" in data(east)


@pytest.mark.usefixtures("east")
def test_a_release_that_is_ours_costs_no_other_call_of_helm(fleet: Fleet) -> None:
    """Each call is a process, which takes a fifth of the processor time of an upgrade."""
    for replicas in ("one", "two", "three"):
        fleet.apply(charts(of=chart(values=f"replicas: {replicas}")))
        fleet.pump()
    fleet.apply(charts(of="policyRefs: []"))
    fleet.pump()

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
    fleet.apply(charts())
    fleet.pump()
    assert len(fleet.charts.deployed) == 2
    assert len(fleet.charts.rendered) == 1

    fleet.apply(charts(of=chart(values="replicas: two")))
    fleet.pump()
    assert len(fleet.charts.rendered) == 2

    fleet.apply(charts(of=chart(values="of: '{{ .Cluster.metadata.name }}'")))
    fleet.pump()
    assert [each.values for each in fleet.charts.rendered[2:]] == [
        ("of: 'east'\n",),
        ("of: 'west'\n",),
    ]


@pytest.mark.usefixtures("east")
def test_a_profile_that_is_deleted_while_helm_waits_is_removed_at_once(fleet: Fleet) -> None:
    """Helm is asked to end, its worker removes what it began, and the profile may come again."""

    def delete() -> None:
        fleet.declare.delete([("ClusterProfile", "", "p")])
        fleet.release()
        fleet.pump()

    fleet.charts.meanwhile = [delete]
    fleet.apply(charts())
    fleet.pump()
    assert fleet.charts.cancelled == ["web"]
    assert fleet.charts.releases == {}
    assert held(fleet) == set()
    assert outcome(fleet) == ("", "")

    fleet.apply(charts())
    fleet.pump()
    assert outcome(fleet) == ("Provisioned", "")


def test_objects_without_a_record_of_helm_are_removed_by_a_later_try(
    fleet: Fleet, east: FakeKube
) -> None:
    """Helm knows nothing of them any more, so the inventory must not forget them before."""
    fleet.apply(charts(of=TWO))
    fleet.pump()
    del fleet.charts.releases["fleet/east", "apps", "web"]
    east.fail_with(TemporaryError("not now"), "remove")
    fleet.apply(charts(of=chart(name="second")))
    fleet.pump()
    assert "not now" in outcome(fleet)[1]

    east.fail_with(None)
    fleet.clock.advance(timedelta(minutes=30))
    fleet.pump()
    assert set(data(east)) == {"second-config"}
    assert outcome(fleet) == ("Provisioned", "")
