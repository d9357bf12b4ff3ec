"""Patches of triggers and profiles, from what is declared to what a cluster has."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import pytest

from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger

TEMPLATE = "projectsveltos.io/template: ok"

MERGE = """patches:
  - target: {kind: ConfigMap, name: "a.*"}
    patch: |
      data: {patched: "yes"}
  """
OF_CLUSTER = """patches:
  - target: {kind: ConfigMap}
    patch: |
      - {op: add, path: /data/cluster, value: "{{ .Cluster.metadata.name }}"}
  """
FROM = "patchesFrom: [{kind: ConfigMap, namespace: default, name: more}]"
ENTRY = """
    target: {{kind: ConfigMap}}
    patch: |
      - {{op: add, path: /data/held, value: "{value}"}}
"""


def one_of(name: str) -> str:
    return config(name, 'v: "1"')


def patches(value: str = "1", *, name: str = "more", annotations: str = "") -> str:
    """Return a ConfigMap that holds one patch."""
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default, annotations: {{{annotations}}}}}
data:
  one: |{ENTRY.format(value=value)}"""


def data(kube: FakeKube) -> dict[str, Mapping[str, str]]:
    return {each["metadata"]["name"]: each["data"] for each in kube.objects(CONFIG)}


def failure(fleet: Fleet) -> str:
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    return outcome.message


def test_a_patch_changes_the_objects_that_fit(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(join(profile(more=MERGE), holder("own", one_of("a1"), one_of("b"))))

    assert data(east) == {"a1": {"v": "1", "patched": "yes"}, "b": {"v": "1"}}


def test_a_patch_that_is_changed_or_taken_out_is_followed(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(join(profile(more=MERGE), holder("own", one_of("a"))))
    (before,) = east.objects(CONFIG)
    fleet.deploy(profile(more=MERGE.replace('"yes"', '"no"')))
    assert data(east) == {"a": {"v": "1", "patched": "no"}}

    fleet.deploy(profile())
    (after,) = east.objects(CONFIG)
    assert data(east) == {"a": {"v": "1"}}
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_an_object_that_a_patch_deletes_is_removed(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(join(profile(), holder("own", one_of("a"), one_of("b"))))
    fleet.deploy(profile(more=MERGE.replace('data: {patched: "yes"}', "$patch: delete")))

    assert list(data(east)) == ["b"]


def test_a_patch_is_rendered_for_each_cluster(fleet: Fleet, east: FakeKube) -> None:
    west = fleet.register("west", env="production")
    fleet.deploy(join(profile(more=OF_CLUSTER), holder("own", one_of("a"))))

    assert data(east)["a"]["cluster"] == "east"
    assert data(west)["a"]["cluster"] == "west"


def test_a_patch_that_renders_to_nothing_is_none(fleet: Fleet, east: FakeKube) -> None:
    for_west = """patches:
  - target: {kind: ConfigMap}
    patch: |
      {{ if eq .Cluster.metadata.name "west" }}data: {patched: "yes"}{{ end }}
  """
    west = fleet.register("west", env="production")
    fleet.deploy(join(profile(more=for_west), holder("own", one_of("a"))))

    assert data(east) == {"a": {"v": "1"}}
    assert data(west) == {"a": {"v": "1", "patched": "yes"}}


def test_patches_come_after_templates_and_before_added_labels(fleet: Fleet, east: FakeKube) -> None:
    more = """extraLabels: {tier: front}
  patches:
  - target: {kind: ConfigMap, labelSelector: "!tier"}
    patch: |
      {metadata: {labels: {tier: back, zone: b}}, data: {name: null}}
  """
    made = holder("own", config("of-{{ .Cluster.metadata.name }}", "name: x"), annotations=TEMPLATE)
    fleet.deploy(join(profile(more=more), made))

    (found,) = east.objects(CONFIG)
    assert found["metadata"]["name"] == "of-east"
    assert found["metadata"]["labels"].items() >= {"tier": "front", "zone": "b"}.items()
    assert not found.get("data")


@pytest.mark.parametrize("one", ["true", "false"])
def test_a_trigger_patches_what_it_makes(fleet: Fleet, east: FakeKube, one: str) -> None:
    """Patches read the cluster that gets the objects, and not the event."""
    made = holder("made", one_of("made"), annotations=INSTANTIATE)
    fleet.deploy(join(source(), trigger(one=one, more=f"{OF_CLUSTER}{FROM}"), made, patches()))
    fleet.write("east", service("a"))
    fleet.pump()
    assert data(east) == {"made": {"v": "1", "cluster": "east", "held": "1"}}

    fleet.deploy(patches("2"))
    assert data(east) == {"made": {"v": "1", "cluster": "east", "held": "2"}}


def test_patches_from_come_last_and_are_followed(fleet: Fleet, east: FakeKube) -> None:
    more = MERGE + FROM
    fleet.deploy(join(profile(more=more), holder("own", one_of("a")), patches("1")))
    assert data(east) == {"a": {"v": "1", "patched": "yes", "held": "1"}}

    fleet.deploy(patches("2"))
    assert data(east) == {"a": {"v": "1", "patched": "yes", "held": "2"}}


@pytest.mark.parametrize(
    ("annotations", "value"), [("", "{{ .Cluster.metadata.name }}"), (TEMPLATE, "east")]
)
def test_a_held_patch_is_a_template_where_it_says_so(
    fleet: Fleet, east: FakeKube, annotations: str, value: str
) -> None:
    held = patches("{{ .Cluster.metadata.name }}", annotations=annotations)
    fleet.deploy(join(profile(more=FROM), holder("own", one_of("a")), held))

    assert data(east)["a"]["held"] == value


def test_each_cluster_may_have_patches_of_its_own(fleet: Fleet, east: FakeKube) -> None:
    """A patch that does not fit one cluster harms only that one."""
    west = fleet.register("west", env="production")
    more = (
        'patchesFrom: [{kind: ConfigMap, namespace: default, name: "{{ .Cluster.metadata.name }}"}]'
    )
    fleet.deploy(join(profile(more=more), holder("own", one_of("a")), patches("w", name="west")))
    assert data(west)["a"]["held"] == "w"
    assert data(east) == {}
    assert "ConfigMap default/east that patchesFrom names" in failure(fleet)

    fleet.deploy(patches("e", name="east"))
    assert data(east)["a"]["held"] == "e"


def test_missing_patches_are_an_error_unless_they_are_optional(
    fleet: Fleet, east: FakeKube
) -> None:
    fleet.deploy(join(profile(more=FROM), holder("own", one_of("a"))))
    assert data(east) == {}
    (found,) = fleet.records.profiles.of("")
    assert found.error == (
        "cannot find ConfigMap default/more that patchesFrom names; apply it, or mark the ref"
        " optional"
    )

    fleet.deploy(profile(more=FROM.replace("name: more", "name: more, optional: true")))
    assert data(east) == {"a": {"v": "1"}}


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        ("data: text", "patches[0]: cannot patch ConfigMap 'a': data is a mapping in the object"),
        (
            "- {op: test, path: /data/v, value: other}",
            "operation 0 (test /data/v) does not fit: another value is there",
        ),
        ("{{ .Cluster.nothing }}", "patches[0]"),
        ("{{ `[` }}", "patches[0]"),
    ],
)
def test_what_does_not_fit_says_which_patch_and_object(
    fleet: Fleet, east: FakeKube, patch: str, sentence: str
) -> None:
    """Nothing is deployed, and what was deployed before stays as it is."""
    fleet.deploy(join(profile(), holder("own", one_of("a"))))
    more = f"""patches:
  - target: {{kind: ConfigMap}}
    patch: |
      {patch}
  """
    fleet.deploy(profile(more=more))

    assert sentence in failure(fleet)
    assert data(east) == {"a": {"v": "1"}}


@pytest.mark.parametrize(
    "text",
    [
        "- {op: add, path: hunter2, value: hunter2}",
        "data: [hunter2",
        "- {op: test, path: /data/v, value: hunter2}",
        "{{ fail `hunter2` }}",
        "data: {v: {hunter2: hunter2}}",
        "data: {v: {$patch: hunter2}}",
        "- {op: test, path: /data/hunter2, value: '1'}",
        "- {op: move, from: /data/hunter2, path: /data/a}",
    ],
)
def test_no_error_quotes_a_patch_of_a_secret(fleet: Fleet, east: FakeKube, text: str) -> None:
    whole = f"target: {{kind: ConfigMap}}\npatch: |\n  {text}\n"
    secret = f"""
apiVersion: v1
kind: Secret
metadata: {{name: more, namespace: default, annotations: {{{TEMPLATE}}}}}
type: addons.projectsveltos.io/cluster-profile
data: {{one: {base64.b64encode(whole.encode()).decode()}}}
"""
    fleet.deploy(
        join(profile(more=FROM.replace("ConfigMap", "Secret")), holder("own", one_of("a")), secret)
    )

    assert failure(fleet)
    assert "hunter2" not in failure(fleet)
    assert data(east) == {}


def test_what_a_patch_of_a_secret_writes_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    whole = "target: {kind: ConfigMap}\npatch: |\n  data: {key: hunter2}\n"
    secret = f"""
apiVersion: v1
kind: Secret
metadata: {{name: more, namespace: default}}
type: addons.projectsveltos.io/cluster-profile
data: {{one: {base64.b64encode(whole.encode()).decode()}}}
"""
    fleet.deploy(
        join(profile(more=FROM.replace("ConfigMap", "Secret")), holder("own", one_of("a")), secret)
    )

    assert data(east) == {"a": {"v": "1", "key": "hunter2"}}


def test_drift_of_what_a_patch_wrote_is_corrected(fleet: Fleet, east: FakeKube) -> None:
    """Objects are compared as they were deployed, patches included."""
    more = "syncMode: ContinuousWithDriftDetection\n  " + MERGE
    fleet.deploy(join(profile(more=more), holder("own", one_of("a"))))
    (found,) = east.objects(CONFIG)
    changed = {**found, "data": {**found["data"], "patched": "drifted"}}
    fleet.write("east", changed)
    fleet.pump()

    assert data(east) == {"a": {"v": "1", "patched": "yes"}}
