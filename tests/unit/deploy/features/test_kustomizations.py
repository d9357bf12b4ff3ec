"""Kustomizations of triggers and profiles, from what is declared to their objects in a cluster.

They are built by the real kubectl.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.diagnosis.profile_manifests import manifest
from bellhop.errors import TemporaryError
from bellhop.operations.previews import preview_now
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.messages import CHARTS, Apply
from tests.fakes.charts import FakeCharts
from tests.fakes.fleet import Fleet, service
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile, source, trigger
from tests.fakes.releases import chart
from tests.fakes.tarballs import packed, tarball
from tests.unit.adapters.kustomize.conftest import kubectl  # noqa: F401 - a fixture
from tests.unit.resync.test_drift_scan import forgotten, resync

REASON = "projectsveltos.io/reason"


class CountingKustomizations:
    """The real ones, and how often they are asked; they may fail before that."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.built: list[str] = []
        self.failure: Exception | None = None

    def build(self, folder: Mapping[str, bytes], path: str = "", **how: Any) -> str:
        self.built.append(path)
        if self.failure:
            raise self.failure
        made: str = self.real.build(folder, path, **how)
        return made


@pytest.fixture
def builds(fleet: Fleet, kubectl: Path) -> CountingKustomizations:  # noqa: F811 - a fixture
    del kubectl
    counting = CountingKustomizations(fleet.kustomizations)
    fleet.kustomizations = counting  # type: ignore[assignment]
    fleet.reread()
    return counting


@pytest.fixture
def east(fleet: Fleet, builds: CountingKustomizations) -> FakeKube:
    del builds
    return fleet.register("east", env="production", zone="a")


def files(*values: str, name: str = "web") -> dict[str, str]:
    """Return a base, an overlay of it and a component; `values` are lines of data."""
    return {
        "base/kustomization.yaml": "resources: [config.yaml]\n",
        "base/config.yaml": config(name, ", ".join(values) or "v: '1'", namespace="apps"),
        "over/kustomization.yaml": "resources: [../base]\nnamePrefix: over-\n",
        "more/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\n"
        "kind: Component\nconfigMapGenerator: [{name: more, literals: [v=3], "
        "options: {disableNameSuffixHash: true}}]\n",
    }


def kustomized(name: str = "p", ref: str = "", more: str = "", refs: str = "") -> str:
    """Return a profile with one kustomization, or with `refs`."""
    one = f"[{{kind: ConfigMap, name: kust, namespace: default, {ref or 'path: base'}}}]"
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: {name}}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  kustomizationRefs: {refs or one}
  {more}
"""


def data(kube: FakeKube) -> dict[str, Any]:
    found = kube.objects(CONFIG)
    place = {
        each["metadata"]["name"]: f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in found
    }
    return {place[each["metadata"]["name"]]: each["data"]["v"] for each in found}


def reasons(kube: FakeKube) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each["metadata"]["labels"][REASON]
        for each in kube.objects(CONFIG)
    }


def outcome(fleet: Fleet, name: str = "p", cluster: str = "east") -> DeploymentStatus:
    return fleet.status_of(name, f"fleet/{cluster}")


def said(fleet: Fleet, name: str = "p") -> str:
    return outcome(fleet, name).message


def phases(fleet: Fleet, name: str = "p") -> dict[str, str]:
    return {each.feature: each.phase for each in outcome(fleet, name).features}


def error(fleet: Fleet, name: str = "p") -> str:
    kept = require_value(fleet.records.profiles.head("", "", name))
    return kept.error


def test_its_objects_come_change_and_go_with_the_profile(
    fleet: Fleet, east: FakeKube, builds: CountingKustomizations
) -> None:
    """Like those of manifests, and marked as Sveltos marks them; it is built once for a state."""
    fleet.deploy(join(packed("kust", files()), kustomized()))
    assert data(east) == {"apps/web": "1"}
    assert phases(fleet) == {"Kustomize": "Provisioned"}
    metadata = east.objects(CONFIG)[0]["metadata"]
    assert metadata["labels"] == {REASON: "Kustomize"}
    assert metadata["annotations"]["projectsveltos.io/reference-name"] == "kust"

    fleet.deploy(kustomized(more="tier: 90"))
    assert builds.built == ["base"]

    fleet.deploy(packed("kust", files("v: '2'")))
    assert data(east) == {"apps/web": "2"}
    fleet.deploy(packed("kust", files(name="other")))
    assert data(east) == {"apps/other": "1"}
    assert len(builds.built) == 3

    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.release()
    fleet.pump()
    assert data(east) == {}
    assert (
        fleet.records.owners.get("fleet/east", Identity("", "ConfigMap", "apps", "other")) is None
    )


def test_a_path_components_and_a_namespace_count(fleet: Fleet, east: FakeKube) -> None:
    """All three are what `kubectl kustomize` would have of the kustomization's own fields."""
    ref = "path: over, components: [../more], targetNamespace: shop"
    fleet.deploy(join(packed("kust", files()), kustomized(ref=ref)))
    # A component comes before the prefix of the overlay.
    assert data(east) == {"shop/over-web": "1", "shop/over-more": "3"}


def test_patches_and_labels_of_the_profile_are_added(fleet: Fleet, east: FakeKube) -> None:
    """A kustomization is deployed as all else of its profile is."""
    more = """extraLabels: {team: a}
  patches:
  - target: {kind: ConfigMap}
    patch: |
      - {op: replace, path: /data/v, value: "{{ .Cluster.metadata.name }}"}
"""
    fleet.deploy(join(packed("kust", files()), kustomized(more=more)))
    assert data(east) == {"apps/web": "east"}
    assert east.objects(CONFIG)[0]["metadata"]["labels"]["team"] == "a"


def test_values_are_put_into_what_was_built(fleet: Fleet, east: FakeKube) -> None:
    """Those of holders win, and of these the ones that are no templates; all are followed."""
    text = files("v: '{{ .one }} {{ .two }} {{ .three }} {{ .Cluster.metadata.labels.zone }}'")
    values = "values: {one: '{{ .Cluster.metadata.name }}', two: own, three: own}"
    ref = f"""path: base, {values}, valuesFrom: [
        {{kind: ConfigMap, namespace: default, name: plain}},
        {{kind: ConfigMap, namespace: default, name: template}}]"""
    plain = """
apiVersion: v1
kind: ConfigMap
metadata: {name: plain, namespace: default}
data: {three: '{{ plain }}'}
"""
    template = """
apiVersion: v1
kind: ConfigMap
metadata: {name: template, namespace: default, annotations: {projectsveltos.io/template: ok}}
data: {two: '{{ .Cluster.metadata.namespace }}', three: lost}
"""
    fleet.deploy(join(packed("kust", text), plain, template, kustomized(ref=ref)))
    assert data(east) == {"apps/web": "east fleet {{ plain }} a"}

    fleet.deploy(plain.replace("{{ plain }}", "changed"))
    assert data(east) == {"apps/web": "east fleet changed a"}


def test_without_values_braces_stay_what_they_are(fleet: Fleet, east: FakeKube) -> None:
    """A built object is a template only where there are values, as in Sveltos."""
    fleet.deploy(join(packed("kust", files("v: '{{ .one }}'")), kustomized()))
    assert data(east) == {"apps/web": "{{ .one }}"}


def test_a_value_that_is_named_and_not_there_is_an_error(fleet: Fleet, east: FakeKube) -> None:
    """The template's own words say which, and in what."""
    text = packed("kust", files("v: '{{ .one }}{{ .two }}'"))
    fleet.deploy(join(text, kustomized(ref="path: base, values: {one: '1'}")))
    assert 'no entry for key "two"' in said(fleet)
    assert "ConfigMap default/kust/kustomize.tar.gz" in said(fleet)
    assert data(east) == {}


def test_fields_are_templates_of_each_cluster(fleet: Fleet, east: FakeKube) -> None:
    """The name of its ConfigMap, its path and its namespace; who fails harms no other cluster."""
    west = fleet.register("west", env="production", zone="b")
    third = fleet.register("third", env="production", zone="c")
    ref = "[{kind: ConfigMap, name: 'kust-{{ .Cluster.metadata.labels.zone }}', namespace: default,"
    ref += (
        " path: '{{ .Cluster.metadata.labels.zone }}', targetNamespace: '{{ .Cluster.metadata.name"
    )
    ref += " }}'}]"
    for zone in ("a", "b"):
        moved = {f"{zone}/{path.partition('/')[2]}": text for path, text in files().items()}
        moved[f"{zone}/kustomization.yaml"] = "resources: [config.yaml]\n"
        fleet.apply(packed(f"kust-{zone}", moved))
    fleet.deploy(kustomized(refs=ref))
    assert (data(east), data(west), data(third)) == ({"east/web": "1"}, {"west/web": "1"}, {})
    assert "cannot find ConfigMap default/kust-c" in outcome(fleet, cluster="third").message
    assert "kustomizationRefs" in outcome(fleet, cluster="third").message
    assert [each.feature for each in outcome(fleet, cluster="third").features] == ["Kustomize"]


def test_clusters_share_what_is_built_alike(
    fleet: Fleet, east: FakeKube, builds: CountingKustomizations
) -> None:
    """Ten clusters cost one build."""
    others = [fleet.register(f"c{number}", env="production") for number in range(9)]
    fleet.deploy(join(packed("kust", files()), kustomized()))
    assert all(data(each) == {"apps/web": "1"} for each in (east, *others))
    assert builds.built == ["base"]


def test_events_render_a_kustomization_for_good(fleet: Fleet, east: FakeKube) -> None:
    """The text of an event is no template; an action that a trigger writes out as text is one."""
    own = "policyRefs: [{kind: ConfigMap, name: made, namespace: default}]"
    refs = """kustomizationRefs:
  - kind: ConfigMap
    name: kust
    namespace: default
    path: '{{ .Resource.metadata.labels.path }}'
    targetNamespace: '{{ .Resource.metadata.name }}'
    values:
      note: '{{ .Resource.metadata.annotations.note }}'
      of: '{{`{{ .Cluster.metadata.name }}`}}'
"""
    event = service("shop")
    event["metadata"]["labels"]["path"] = "base"
    event["metadata"]["annotations"] = {"note": "{{ .Cluster }}"}
    text = packed("kust", files("v: '{{ .note }} {{ .of }}'"))
    fleet.apply(join(source(), trigger(more=refs).replace(own, ""), text))
    stored = fleet.write("east", event)
    fleet.pump()
    assert data(east) == {"shop/web": "{{ .Cluster }} east"}

    fleet.drop("east", stored)
    fleet.pump()
    assert data(east) == {}


EVERY_FIELD = (
    "kustomizationRefs[].namespace",
    "kustomizationRefs[].name",
    "kustomizationRefs[].path",
    "kustomizationRefs[].targetNamespace",
    "kustomizationRefs[].components[]",
    "kustomizationRefs[].values",
    "kustomizationRefs[].valuesFrom[].namespace",
    "kustomizationRefs[].valuesFrom[].name",
)
"""Those that Sveltos renders with the event."""


def test_every_field_is_rendered_with_the_event(fleet: Fleet, east: FakeKube) -> None:
    """Each of them says which Service it is for."""
    name = "{{ .Resource.metadata.name }}"
    own = "policyRefs: [{kind: ConfigMap, name: made, namespace: default}]"
    refs = f"""kustomizationRefs:
  - kind: ConfigMap
    name: 'k-{name}'
    namespace: '{name}'
    path: '{name}'
    targetNamespace: 'in-{name}'
    components: ['../c-{name}']
    values: {{one: 'one-{name}'}}
    valuesFrom: [{{kind: ConfigMap, namespace: '{name}', name: 'v-{name}'}}]
"""
    assert len(EVERY_FIELD) == refs.count(name)
    values = """
apiVersion: v1
kind: ConfigMap
metadata: {name: v-shop, namespace: shop}
data: {two: held}
"""
    built = files("v: '{{ .one }} {{ .two }}'")
    moved = {"base/": "shop/", "more/": "c-shop/"}
    for old, new in moved.items():
        built = {path.replace(old, new): text for path, text in built.items()}
    text = packed("k-shop", built, space="shop")
    fleet.apply(join(source(), trigger(more=refs).replace(own, ""), text, values))
    fleet.write("east", service("shop"))
    fleet.pump()
    assert data(east) == {"in-shop/web": "one-shop held", "in-shop/more": "3"}
    (generated,) = fleet.records.profiles.of("made")
    spec = manifest(generated, "watched")["spec"]
    assert spec["policyRefs"] == []
    assert spec["kustomizationRefs"] == [
        {
            "kind": "ConfigMap",
            "namespace": "shop",
            "name": "k-shop",
            "path": "shop",
            "components": ["../c-shop"],
            "targetNamespace": "in-shop",
            "values": {"one": "one-shop"},
            "valuesFrom": [{"kind": "ConfigMap", "namespace": "shop", "name": "v-shop"}],
        }
    ]


def test_two_kustomizations_of_one_profile(fleet: Fleet, east: FakeKube) -> None:
    """They may be of one ConfigMap; of two that have one object the lower tier owns it."""
    one = "kind: ConfigMap, name: kust, namespace: default"
    refs = f"[{{{one}, path: base}}, {{{one}, path: over}}]"
    fleet.deploy(join(packed("kust", files()), kustomized(refs=refs)))
    assert data(east) == {"apps/web": "1", "apps/over-web": "1"}

    other = "kind: ConfigMap, name: other, namespace: default, path: base"
    refs = f"[{{{one}, path: base}}, {{{other}, tier: 50}}]"
    fleet.deploy(join(packed("other", files("v: '2'")), kustomized(refs=refs)))
    assert data(east) == {"apps/web": "2"}


def test_a_manifest_and_a_kustomization_want_one_object(fleet: Fleet, east: FakeKube) -> None:
    """Of one tier the manifest has it, and the kustomization says so; a lower tier has it."""
    refs = "kustomizationRefs: [{kind: ConfigMap, name: kust, namespace: default, path: base%s}]"
    own = holder("own", config("web", 'v: "own"', namespace="apps"))
    fleet.deploy(join(packed("kust", files()), own, profile(more=refs % "")))
    assert data(east) == {"apps/web": "own"}
    assert "ConfigMap default/own and ConfigMap default/kust of one profile" in said(fleet, "own")

    fleet.apply(profile(more=refs % ", tier: 50"))
    fleet.wait()
    assert (data(east), reasons(east)) == ({"apps/web": "1"}, {"web": "Kustomize"})
    assert outcome(fleet, "own").phase == "Provisioned"


def test_an_object_moves_between_manifests_and_kustomizations(fleet: Fleet, east: FakeKube) -> None:
    """It is written by who has it from now on, and never removed in between."""
    refs = "kustomizationRefs: [{kind: ConfigMap, name: kust, namespace: default, path: base}]"
    moving, resting = config("web", 'v: "1"', namespace="apps"), config("a", 'v: "0"')
    fleet.deploy(join(holder("own", moving, resting), profile()))
    uid = east.objects(CONFIG)[0]["metadata"]["uid"]
    for own, more, reason in (
        (holder("own", resting), refs, "Kustomize"),
        (holder("own", moving, resting), "", "Resources"),
    ):
        fleet.deploy(join(packed("kust", files()), own, profile(more=more)))
        found = {each["metadata"]["name"]: each for each in east.objects(CONFIG)}
        assert found["web"]["metadata"]["uid"] == uid or found["a"]["metadata"]["uid"] == uid
        assert reasons(east) == {"a": "Resources", "web": reason}
        assert not [call for call in east.calls if call.verb == "remove"]


@pytest.mark.usefixtures("east")
def test_each_feature_has_its_own_status(fleet: Fleet) -> None:
    """Manifests, charts and kustomizations of one profile, in this order."""
    fleet.repositories.put("web", "1.0.0")
    refs = chart().rstrip() + "\n  kustomizationRefs: [{kind: ConfigMap, name: kust,"
    refs += " namespace: default, path: base}]"
    own = holder("own", config("plain", 'v: "1"'))
    fleet.deploy(join(packed("kust", files()), own, profile(more=refs)))
    every = ("Resources", "Helm", "Kustomize")
    assert phases(fleet, "own") == dict.fromkeys(every, "Provisioned")

    fleet.deploy(packed("kust", {"base/kustomization.yaml": "resources: [none.yaml]\n"}))
    found = {each.feature: (each.phase, each.message) for each in outcome(fleet, "own").features}
    assert found["Resources"] == found["Helm"] == ("Provisioned", "")
    assert found["Kustomize"][0].startswith("Failed")
    assert "none.yaml" in found["Kustomize"][1]


def test_a_build_error_fails_only_the_kustomization(fleet: Fleet, east: FakeKube) -> None:
    """Manifests of the profile are deployed; nothing is removed that it may be about to apply."""
    refs = "kustomizationRefs: [{kind: ConfigMap, name: kust, namespace: default, path: base}]"
    wrong = packed("kust", {"base/kustomization.yaml": "resources: [none.yaml]\n"})
    plain, moving = config("plain", "v: '1'"), config("web", "v: '0'", namespace="apps")
    fleet.deploy(join(holder("own", plain, moving), profile()))
    changed = holder("own", config("plain", "v: '2'"))
    fleet.deploy(join(wrong, changed, profile(more=refs)))
    assert data(east) == {"default/plain": "2", "apps/web": "0"}
    found = phases(fleet, "own")
    assert (found["Resources"], found["Kustomize"]) == ("Provisioned", outcome(fleet, "own").phase)
    assert "none.yaml" in said(fleet, "own")

    fleet.apply(packed("kust", files()))
    fleet.wait()
    assert data(east) == {"default/plain": "2", "apps/web": "1"}
    assert reasons(east) == {"plain": "Resources", "web": "Kustomize"}
    assert outcome(fleet, "own").phase == "Provisioned"


def test_one_that_cannot_be_built_takes_nothing_away(fleet: Fleet, east: FakeKube) -> None:
    """Its former objects stay until it renders again, or the profile is deleted."""
    fleet.deploy(join(packed("kust", files()), kustomized()))
    fleet.deploy(packed("kust", {"base/kustomization.yaml": "resources: [none.yaml]\n"}))
    assert data(east) == {"apps/web": "1"}
    assert "none.yaml" in said(fleet)

    fleet.declare.delete([("ClusterProfile", "", "p")])
    fleet.release()
    fleet.wait()
    assert data(east) == {}


@pytest.mark.usefixtures("east")
def test_what_of_a_profile_was_not_begun_is_held_as_before(fleet: Fleet) -> None:
    """A chart is not deployed again since a manifest before it is refused."""
    fleet.repositories.put("web", "1.0.0")
    own = holder("own", config("plain", 'v: "1"'))
    fleet.deploy(join(own, profile(more=chart())))
    fleet.deploy(join(profile(name="other"), holder("other", config("taken", 'v: "0"'))))
    changed = chart(values="replicas: two")
    refused = holder("own", config("plain", 'v: "2"'), config("taken", 'v: "1"'))
    fleet.deploy(join(refused, profile(more=changed)))
    kept = require_value(fleet.records.inventories.get("fleet/east", "own"))
    assert all(each.digest for each in kept.held.values())
    assert isinstance(fleet.charts, FakeCharts)
    assert len(fleet.charts.deployed) == 1


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            packed("kust", b"no tarball"),
            "ConfigMap default/kust: cannot unpack 'kustomize.tar.gz': it is not a complete tar.gz;"
            " make it with `tar -czf FILE -C FOLDER .`",
            id="no tarball",
        ),
        pytest.param(
            packed("kust", {"other/kustomization.yaml": ""}),
            "ConfigMap default/kust: cannot build the kustomization 'base': in the source it is not"
            " there",
            id="no such path",
        ),
        pytest.param(
            packed("kust", {"base/kustomization.yaml": "resources: ['https://x.example/a']\n"}),
            "ConfigMap default/kust: cannot build the kustomization 'base':"
            " 'base/kustomization.yaml': resources[0] 'https://x.example/a' is remote, and nothing"
            " is fetched while a kustomization is built; put it into the source",
            id="a remote base",
        ),
    ],
)
def test_what_cannot_be_built_says_why(fleet: Fleet, text: str, sentence: str) -> None:
    """A sentence that says what to do; the feature fails, and is well once it is mended."""
    fleet.deploy(join(text, kustomized()))
    assert said(fleet) == sentence
    assert phases(fleet) == {"Kustomize": outcome(fleet).phase}

    fleet.apply(packed("kust", files()))
    fleet.wait()
    assert (outcome(fleet).phase, said(fleet)) == ("Provisioned", "")


@pytest.mark.usefixtures("east")
def test_what_a_profile_refers_to_must_be_there(fleet: Fleet) -> None:
    """A ConfigMap that is missing, and one without a tarball; one that is optional need not be."""
    fleet.deploy(kustomized())
    assert said(fleet) == (
        "cannot find ConfigMap default/kust that kustomizationRefs names; apply it, or mark the"
        " ref optional"
    )
    fleet.deploy(holder("kust", config("a")))
    assert said(fleet) == (
        "cannot use ConfigMap default/kust in kustomizationRefs: it has no entry"
        " 'kustomize.tar.gz'; make one with `tar -czf kustomize.tar.gz -C FOLDER .` and `kubectl"
        " create configmap NAME --from-file=kustomize.tar.gz`"
    )
    fleet.deploy(kustomized("q", refs="[{kind: ConfigMap, name: none, optional: true}]"))
    assert outcome(fleet, "q").phase == "Provisioned"


@pytest.mark.parametrize(
    "ref",
    [
        pytest.param("", id="the tarball"),
        pytest.param(
            "path: base, valuesFrom: [{kind: ConfigMap, namespace: default, name: none}]",
            id="values",
        ),
    ],
)
def test_a_missing_source_fails_only_the_kustomization(
    fleet: Fleet, east: FakeKube, ref: str
) -> None:
    """Manifests are deployed; what was built before stays, and follows once it can be built."""
    manifests = "policyRefs: [{kind: ConfigMap, name: plain, namespace: default}]"
    fleet.apply(holder("plain", config("plain", "v: '1'")), packed("kust", files()))
    fleet.deploy(kustomized(more=manifests))
    assert data(east) == {"apps/web": "1", "default/plain": "1"}

    fleet.apply(kustomized(ref=ref, more=manifests))
    if not ref:
        fleet.declare.delete([("ConfigMap", "default", "kust")])
    fleet.deploy(holder("plain", config("plain", "v: '2'")))
    assert data(east) == {"apps/web": "1", "default/plain": "2"}
    assert phases(fleet) == {"Resources": "Provisioned", "Kustomize": "FailedNonRetriable"}
    assert error(fleet) == ""

    fleet.apply(packed("kust", files("v: '3'")), holder("none", "{}"))
    fleet.deploy(kustomized(more=manifests))
    assert data(east) == {"apps/web": "3", "default/plain": "2"}
    assert outcome(fleet).phase == "Provisioned"


def test_what_is_from_a_secret_is_built_and_not_quoted(fleet: Fleet, east: FakeKube) -> None:
    """The words of kustomize may quote it; and only a Secret of add-ons counts."""
    ref = "[{kind: Secret, name: kust, namespace: default, path: base}]"
    fleet.deploy(join(packed("kust", files(), kind="Secret"), kustomized(refs=ref)))
    assert data(east) == {"apps/web": "1"}

    hushed = {"base/kustomization.yaml": "resources: [hush-hush.yaml]\n"}
    fleet.deploy(packed("kust", hushed, kind="Secret"))
    assert said(fleet) == (
        "Secret default/kust: cannot build the kustomization; the reason is withheld, for it may"
        " quote the Secret: `kubectl kustomize` shows it in the folder of the tarball"
    )
    bare = packed("kust", files(), kind="Secret").replace("addons.projectsveltos.io/", "")
    fleet.apply(bare)
    fleet.wait()
    assert "unsupported secret type 'cluster-profile'" in said(fleet)


def test_values_of_secrets_are_in_no_name_and_no_sentence(fleet: Fleet, east: FakeKube) -> None:
    """They may be in an object; who puts one into its name is refused."""
    secret = """
apiVersion: v1
kind: Secret
metadata: {name: more, namespace: default}
type: addons.projectsveltos.io/cluster-profile
stringData: {password: hush-hush}
"""
    ref = "path: base, valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    text = packed("kust", files("v: '{{ .password }}'"))
    fleet.deploy(join(secret, text, kustomized(ref=ref)))
    assert data(east) == {"apps/web": "hush-hush"}
    kept = require_value(fleet.records.inventories.get("fleet/east", "p"))
    assert all(each.secret for each in kept.held.values())

    fleet.deploy(packed("kust", files(name="{{ .password }}")))
    assert "'metadata.name' is made of a value of a Secret" in said(fleet)
    fleet.deploy(packed("kust", files("v: '{{ fail .password }}'")))
    assert "hush" not in said(fleet)


def test_drift_of_built_objects_is_corrected(fleet: Fleet, east: FakeKube) -> None:
    """ContinuousWithDriftDetection treats them as all other objects of a profile."""
    fleet.deploy(
        join(packed("kust", files()), kustomized(more="syncMode: ContinuousWithDriftDetection"))
    )
    key = Identity("", "ConfigMap", "apps", "web")
    east.put({**east.objects(CONFIG)[0], "data": {"v": "theirs"}})
    fleet.publisher.publish([Apply("", "", "p", "fleet/east", touched=str(key))])
    fleet.pump()
    assert data(east) == {"apps/web": "1"}


def test_what_nobody_holds_any_more_is_found(fleet: Fleet, east: FakeKube) -> None:
    """A drift scan reads objects of kustomizations, too, and restores those that were deleted."""
    fleet.deploy(join(packed("kust", files()), kustomized()))
    east.drop(CONFIG, "apps", "web")
    resync(fleet)
    fleet.pump()
    assert data(east) == {"apps/web": "1"}

    forgotten(fleet)
    resync(fleet, full=True)
    found = dict(fleet.records.findings.of("fleet/east"))
    assert [(key.name, each.what, each.profile) for key, each in found.items()] == [
        ("web", "stray", "p")
    ]


def test_what_takes_too_long_is_not_the_clusters_fault(
    fleet: Fleet, east: FakeKube, builds: CountingKustomizations
) -> None:
    """It is tried again; the cluster is not taken for away."""
    builds.failure = TemporaryError("cannot build the kustomization 'base': it takes too long")
    fleet.deploy(join(packed("kust", files()), kustomized()))
    assert "it takes too long" in said(fleet)
    assert fleet.records.circuits.get("fleet/east") is None

    builds.failure = None
    fleet.wait()
    assert data(east) == {"apps/web": "1"}


@pytest.mark.usefixtures("east")
def test_without_a_program_the_feature_says_what_is_missing(fleet: Fleet) -> None:
    """As in a cloud without the function `charts`, and in one of an older version."""
    fleet.kustomizations = None  # type: ignore[assignment]
    fleet.reread()
    fleet.deploy(join(packed("kust", files()), kustomized()))
    assert "cannot build kustomizations: they are switched off here; deploy" in said(fleet)


@pytest.fixture
def apart(fleet: Fleet, builds: CountingKustomizations) -> None:
    """Only the workers of `charts` have kubectl, as in a cloud."""
    fleet.kustomizations = None  # type: ignore[assignment]
    fleet.reread()
    others = {name: each for name, each in fleet.inboxes.items() if name != CHARTS}
    fleet.kustomizations = builds  # type: ignore[assignment]
    fleet.reread()
    fleet.inboxes |= others


@pytest.mark.usefixtures("apart")
def test_a_worker_without_kubectl_leaves_the_profile_to_one_that_has_it(
    fleet: Fleet, east: FakeKube, builds: CountingKustomizations
) -> None:
    """From what comes first to what goes last, and all else that the profile has."""
    beside = "policyRefs: [{kind: ConfigMap, namespace: default, name: beside}]"
    plain = holder("beside", config("plain", "v: '0'", namespace="apps"))
    fleet.deploy(join(plain, packed("kust", files()), kustomized(more=beside)))
    assert data(east) == {"apps/plain": "0", "apps/web": "1"}
    assert phases(fleet) == {"Resources": "Provisioned", "Kustomize": "Provisioned"}

    fleet.deploy(packed("kust", files("v: '2'")))
    assert data(east) == {"apps/plain": "0", "apps/web": "2"}
    assert builds.built == ["base", "base"]

    fleet.deploy(join(plain, kustomized(more=beside, refs="[]")))
    assert data(east) == {"apps/plain": "0"}
    assert said(fleet) == ""


@pytest.mark.usefixtures("apart")
def test_a_worker_without_kubectl_leaves_dry_runs_and_drift_to_one_that_has_it(
    fleet: Fleet, east: FakeKube
) -> None:
    """Both need what kustomizations build before it is known what there is to do."""
    fleet.deploy(join(packed("kust", files()), kustomized(more="syncMode: DryRun")))
    kept = require_value(fleet.records.previews.get("fleet/east", "p"))
    assert [each.action for each in kept.changes] == ["Create"]

    fleet.deploy(kustomized(more="syncMode: ContinuousWithDriftDetection"))
    key = Identity("", "ConfigMap", "apps", "web")
    east.put({**east.objects(CONFIG)[0], "data": {"v": "theirs"}})
    fleet.publisher.publish([Apply("", "", "p", "fleet/east", touched=str(key))])
    fleet.pump()
    assert data(east) == {"apps/web": "1"}


@pytest.mark.usefixtures("apart", "east")
def test_a_worker_without_kubectl_looks_first_whether_the_profile_may_begin(
    fleet: Fleet, builds: CountingKustomizations
) -> None:
    """A profile that waits for another one starts no other worker."""
    fleet.deploy(join(packed("kust", files()), kustomized(more="dependsOn: [other]")))
    assert "other" in said(fleet)
    assert builds.built == []


def test_a_dry_run_and_a_preview_report_what_would_change(fleet: Fleet, east: FakeKube) -> None:
    """Nothing is written."""
    fleet.deploy(join(packed("kust", files()), kustomized(more="syncMode: DryRun")))
    kept = require_value(fleet.records.previews.get("fleet/east", "p"))
    shown = [(str(each.key), each.action) for each in kept.changes]
    assert shown == [("/ConfigMap/apps/web", "Create")]
    told = [str(each.change.key) for each in preview_now(fleet.installation(), "p")]  # type: ignore[union-attr]
    assert told == ["/ConfigMap/apps/web"]
    assert data(east) == {}


def test_what_is_local_is_built_for_each_cluster(fleet: Fleet, east: FakeKube) -> None:
    """In the cluster that is registered as mgmt/mgmt, with its values."""
    mgmt = fleet.access.clusters.setdefault("mgmt/mgmt", FakeKube("mgmt/mgmt"))
    fleet.register("west", env="production")
    west = require_value(fleet.records.clusters.get("fleet/west"))
    fleet.declare.register(replace(west, namespace="mgmt", name="mgmt", labels={}))
    ref = "path: base, deploymentType: Local, values: {name: '{{ .Cluster.metadata.name }}'}"
    text = packed("kust", files("v: '{{ .name }}'", name="web-{{ .name }}"))
    fleet.deploy(join(text, kustomized(ref=ref)))
    assert data(mgmt) == {"apps/web-east": "east", "apps/web-west": "west"}
    assert data(east) == {}


def test_a_tarball_is_always_the_same() -> None:
    """Else each apply of a test would be a change."""
    assert tarball(files()) == tarball(files())


def test_what_a_kustomization_builds_is_held_to_what_its_profile_may_deploy(
    fleet: Fleet, east: FakeKube
) -> None:
    """Built objects are checked in their namespaces like others."""
    fleet.apply(packed("kust", files()))
    allow = 'annotations: {bellhop.dev/allow: "ConfigMap in team-*"}'
    fleet.deploy(kustomized().replace("{name: p}", f"{{name: p, {allow}}}"))

    assert data(east) == {}
    assert "may not deploy a ConfigMap in namespace 'apps'" in outcome(fleet).message
