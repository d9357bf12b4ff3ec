"""Objects that templates of deploy time read: from the records, from a cluster, as they are now."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bellhop.api.kinds import InvalidDocuments
from bellhop.core.gvk import GVK, Resource
from bellhop.diagnosis.selection_gaps import KnownRefs, list_missing_refs
from bellhop.errors import UnreachableError
from bellhop.state.cluster import Cluster
from bellhop.state.profile import Profile
from tests.fakes.fleet import Fleet, service
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile, source, trigger

SECRET = GVK("", "v1", "Secret")
WIDGET = GVK("shop.io", "v1", "Widget")
TEMPLATE = "projectsveltos.io/template: ok"
SAID = "v: '{{ (getResource \"Read\").data.v }}'"


def reading(kind: str = "ConfigMap", name: str = "read", more: str = "", **said: str) -> str:
    """Return a templateResourceRefs with one object."""
    version = said.get("version", "v1")
    place = (
        f"namespace: {said.get('namespace', 'default')}, " if said.get("namespace") != "" else ""
    )
    found = f"{{apiVersion: {version}, kind: {kind}, {place}name: '{name}'}}"
    return f"templateResourceRefs: [{{resource: {found}, identifier: Read{more}}}]"


def own(more: str = "", text: str = SAID) -> str:
    """Return a profile whose template reads an object."""
    more = more or reading()
    return join(profile(more=more), holder("own", config("got", text), annotations=TEMPLATE))


def read(value: str, name: str = "read") -> str:
    return config(name, f"v: '{value}'")


def said(kube: FakeKube) -> dict[str, str]:
    return {each["metadata"]["name"]: each["data"]["v"] for each in kube.objects(CONFIG)}


def told(fleet: Fleet) -> str:
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    return outcome.message


def test_a_template_reads_what_was_applied_and_follows_it(fleet: Fleet, east: FakeKube) -> None:
    """A change renders again; an equal result is not written again."""
    fleet.deploy(own(), read("1"))
    assert said(east) == {"got": "1"}

    fleet.deploy(read("2"))
    assert said(east) == {"got": "2"}

    east.calls.clear()
    fleet.deploy(read("2") + "immutable: false\n")
    assert [call.verb for call in east.calls if call.verb == "apply"] == []


def test_in_a_trigger_the_names_are_templates_of_the_event(fleet: Fleet, east: FakeKube) -> None:
    """Each object's profile reads its own; two phases in one text."""
    text = "v: '{{ .Resource.metadata.name }} {{`{{ (getResource \"Read\").data.v }}`}}'"
    both = f"projectsveltos.io/instantiate: ok, {TEMPLATE}"
    fleet.apply(
        source(),
        trigger(more=reading(name="for-{{ .Resource.metadata.name }}")),
        holder("made", config("got-{{ .Resource.metadata.name }}", text), annotations=both),
        read("1", "for-a"),
        read("2", "for-b"),
    )
    for name in "ab":
        fleet.write("east", service(name))
    fleet.pump()
    assert said(east) == {"got-a": "a 1", "got-b": "b 2"}

    fleet.deploy(read("3", "for-b"))
    assert said(east) == {"got-a": "a 1", "got-b": "b 3"}


def test_names_are_templates_of_the_destination_too(fleet: Fleet, east: FakeKube) -> None:
    """And an empty namespace is that of each cluster."""
    west = fleet.register("west", env="production")
    fleet.apply(own(reading(name="of-{{ .Cluster.metadata.name }}", namespace="")))
    for name in ("east", "west"):
        text = read(name, f"of-{name}").replace("namespace: default", "namespace: fleet")
        fleet.apply(text)
    fleet.pump()

    assert (said(east), said(west)) == ({"got": "east"}, {"got": "west"})


@pytest.mark.parametrize(
    ("optional", "got", "sentence"),
    [
        pytest.param(
            "",
            {},
            "cannot find ConfigMap 'default/read' among what is applied to Bellhop or in cluster"
            " 'mgmt/mgmt'; templateResourceRefs names it as 'Read': apply it, or mark it optional",
            id="wanted",
        ),
        pytest.param(", optional: true", {"got": "none"}, "", id="optional"),
    ],
)
def test_what_is_missing_fails_unless_it_is_optional(
    fleet: Fleet, east: FakeKube, optional: str, got: dict[str, str], sentence: str
) -> None:
    """Once applied it is read; after its deletion the add-ons stay."""
    text = "v: '{{ with getResource \"Read\" }}{{ .data.v }}{{ else }}none{{ end }}'"
    fleet.deploy(own(reading(more=optional), text))
    assert said(east) == got
    assert told(fleet).startswith(sentence)

    fleet.deploy(read("1"))
    fleet.wait(fleet.settings.retry_ceiling)
    assert said(east) == {"got": "1"}

    fleet.delete("ConfigMap", "read", "default")
    assert said(east) == (got or {"got": "1"})


def test_reads_clusters_and_what_else_was_applied(fleet: Fleet, east: FakeKube) -> None:
    """A SveltosCluster as templates know it, which is read again when it is labelled."""
    lib = "lib.projectsveltos.io/v1beta1"
    cluster = reading("SveltosCluster", "west", namespace="fleet", version=lib)
    fleet.register("west", tier="gold")
    fleet.deploy(own(cluster, "v: '{{ (getResource \"Read\").metadata.labels.tier }}'"))
    assert said(east) == {"got": "gold"}

    fleet.declare.label("fleet/west", {"tier": "silver"})
    fleet.pump()
    assert said(east) == {"got": "silver"}


@pytest.mark.parametrize("text", [SAID, "v: '{{ .MgmtResources.Read.data.v }}'"])
def test_both_spellings_read_it(fleet: Fleet, east: FakeKube, text: str) -> None:
    """By the function, or among the variables."""
    fleet.deploy(own(text=text), read("1"))

    assert said(east) == {"got": "1"}


def test_two_of_one_identifier_are_a_mistake(fleet: Fleet) -> None:
    """Nobody could say which is meant."""
    one = reading().removeprefix("templateResourceRefs: [").removesuffix("]")
    with pytest.raises(InvalidDocuments, match="have the identifier 'Read'"):
        fleet.apply(profile(more=f"templateResourceRefs: [{one}, {one}]"))


@pytest.mark.parametrize("field", ["apiVersion: v1, ", "kind: Service, ", ", name: 'read'"])
def test_an_object_is_named_whole(fleet: Fleet, field: str) -> None:
    """Without a kind or a name nothing is read; the version of a ConfigMap or Secret is known."""
    with pytest.raises(InvalidDocuments, match=r"resource\.\w+ is missing"):
        fleet.apply(profile(more=reading("Service").replace(field, "")))


def test_missing_references_are_reported_before_an_event_comes(fleet: Fleet) -> None:
    """Not what is generated then, nor what is optional or named by a template."""
    refs = [
        reading(name="absent"),
        reading(name="maybe", more=", optional: true"),
        reading(name="made", namespace="projectsveltos"),
        reading(name="{{ .Cluster.metadata.name }}"),
    ]
    entries = [each.removeprefix("templateResourceRefs: [")[:-1] for each in refs]
    numbered = (each.replace("Read", f"Read{n}") for n, each in enumerate(entries))
    fleet.apply(own(f"templateResourceRefs: [{', '.join(numbered)}]"))

    declared = fleet.catalogs.current().profiles["own"]
    found = list_missing_refs(KnownRefs(fleet.installation()), declared)
    assert [(ref.kind, ref.namespace, ref.name) for ref in found] == [
        ("ConfigMap", "default", "absent")
    ]


@pytest.mark.parametrize(
    "kind", ["ClassifierReport", "EventReport", "HealthCheckReport", "HeldReport"]
)
def test_a_report_is_refused_with_what_to_write_instead(fleet: Fleet, kind: str) -> None:
    """Reports are views that `bellhop get` shows: a template would wait for one for ever."""
    with pytest.raises(InvalidDocuments, match=f"{kind} is a view, which templates cannot read"):
        fleet.apply(profile(more=reading(kind, version="lib.projectsveltos.io/v1beta1")))


# Secrets ------------------------------------------------------------------------------------------


def secret(value: str) -> str:
    data = base64.b64encode(value.encode()).decode()
    return f"""
apiVersion: v1
kind: Secret
metadata: {{name: read, namespace: default}}
data: {{v: {data}}}
"""


def test_no_object_is_named_after_a_secret_that_is_read(fleet: Fleet, east: FakeKube) -> None:
    """Names are shown to everybody."""
    text = config('{{ (getResource "Read").data.v | b64dec }}')
    fleet.deploy(
        profile(more=reading("Secret")),
        holder("own", text, annotations=TEMPLATE),
        secret("hunter22"),
    )

    assert said(east) == {}
    assert "'metadata.name' is made of a value of a Secret" in told(fleet)
    assert "hunter22" not in told(fleet) + fleet.output.getvalue() + repr(fleet.ledger())


def test_an_error_quotes_nothing_of_a_secret_that_is_read(fleet: Fleet, east: FakeKube) -> None:
    """Neither the template's error nor the API server's is repeated."""
    text = "v: '{{ fail ((getResource \"Read\").data.v | b64dec) }}'"
    fleet.deploy(own(reading("Secret"), text), secret("hunter22"))

    assert said(east) == {}
    assert "default/own/main.yaml" in told(fleet)
    assert "hunter22" not in told(fleet) + fleet.output.getvalue() + repr(fleet.ledger())


# From the cluster mgmt/mgmt -----------------------------------------------------------------------


def management(fleet: Fleet) -> FakeKube:
    """Register the cluster that stands for Sveltos' management cluster."""
    found = require_value(fleet.records.clusters.get("fleet/east"))
    kube = fleet.access.clusters["mgmt/mgmt"] = FakeKube("mgmt/mgmt")
    kube.serve(Resource(WIDGET, "widgets", namespaced=True))
    fleet.declare.register(replace(found, namespace="mgmt", name="mgmt", labels={}))
    return kube


def widget(value: str) -> dict[str, Any]:
    metadata = {"name": "read", "namespace": "default"}
    return {
        "apiVersion": "shop.io/v1",
        "kind": "Widget",
        "metadata": metadata,
        "data": {"v": value},
    }


def test_other_kinds_are_read_from_the_management_cluster(fleet: Fleet, east: FakeKube) -> None:
    """And again with each resync of the cluster that they are rendered for."""
    management(fleet).put(widget("1"))
    fleet.deploy(own(reading("Widget", version="shop.io/v1")))
    assert said(east) == {"got": "1"}

    fleet.access.clusters["mgmt/mgmt"].put(widget("2"))
    fleet.resync()
    assert said(east) == {"got": "2"}


def test_without_a_management_cluster_that_is_said(fleet: Fleet, east: FakeKube) -> None:
    """With what to do."""
    fleet.deploy(own(reading("Widget", version="shop.io/v1")))

    assert "none is registered as 'mgmt/mgmt'" in told(fleet)
    assert said(east) == {}


def test_a_management_cluster_that_is_away_harms_no_other(fleet: Fleet, east: FakeKube) -> None:
    """The cluster that is applied to is not taken for away; it goes on when the other is back."""
    kube = management(fleet)
    kube.put(widget("1"))
    kube.fail_with(UnreachableError("The API server of 'mgmt/mgmt' does not answer."))
    fleet.deploy(own(reading("Widget", version="shop.io/v1")))
    assert "cannot read Widget 'default/read'" in told(fleet)
    assert fleet.records.circuits.get("fleet/east") is None

    kube.fail_with(None)
    fleet.wait(fleet.settings.retry_ceiling)
    assert said(east) == {"got": "1"}


# Two at once --------------------------------------------------------------------------------------


def test_a_reference_that_changes_during_an_apply_is_applied_again(
    fleet: Fleet, east: FakeKube
) -> None:
    """The slow worker reads it again once it has ended."""
    fleet.apply(own(), read("1"))
    resources = fleet.reconciler._features[0]._desired_state._resources
    real, left = resources.reader, ["2"]

    def slow(profile: Profile, *fields: str) -> Any:
        def of(cluster: Cluster) -> Any:
            found = real(profile, *fields)(cluster)
            if left:
                fleet.records.manifests.put("ConfigMap", "default", "read", changed(left.pop()))
            return found

        return of

    resources.reader = slow
    fleet.pump()

    assert said(east) == {"got": "2"}


def changed(value: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(read(value))
    return found


# Seed: a Secret replicated on demand --------------------------------------------------------------


def namespace(name: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"secret": "required"}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def test_a_secret_is_replicated_to_each_namespace_that_asks(fleet: Fleet, east: FakeKube) -> None:
    """It comes with the label, follows its change, and goes with the label."""
    fleet.apply_example("replicate-secret")
    for name in ("eng", "hr"):
        fleet.write("east", namespace(name))
    fleet.pump()
    found = {each["metadata"]["namespace"]: each for each in east.objects(SECRET)}
    assert sorted(found) == ["eng", "hr"]
    assert {each["metadata"]["name"] for each in found.values()} == {"login-credentials"}
    assert {each["type"] for each in found.values()} == {"Opaque"}
    assert base64.b64decode(found["hr"]["data"]["username"]) == b"admin"
    generated = fleet.instantiation._writer._titles.read("ConfigMap", "fleet-east-namespaces")
    assert generated
    assert generated.namespace == "projectsveltos"
    assert yaml.safe_load(generated.data["namespaces"]) == {"eng": "ok", "hr": "ok"}

    folder = Path(__file__).parents[3] / "docs/examples/replicate-secret"
    text = (folder / "secret.yaml").read_text()
    fleet.deploy(re.sub("username: admin", "username: root", text))
    assert {base64.b64decode(each["data"]["username"]) for each in east.objects(SECRET)} == {
        b"root"
    }

    fleet.write("east", {**namespace("hr"), "metadata": {"name": "hr", "labels": {}}})
    fleet.pump()
    assert [each["metadata"]["namespace"] for each in east.objects(SECRET)] == ["eng"]
    everything = fleet.output.getvalue() + repr(fleet.ledger())
    assert "a word for the example" not in everything
