"""Every field that Sveltos renders with the event is rendered, or refused with its sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.api.fields import field_at
from bellhop.api.kinds import EventTrigger
from bellhop.api.unsupported import NOT_YET
from bellhop.state.profile import Profile
from tests.fakes.fleet import Fleet, service
from tests.fakes.manifests import config, holder, source

ROOT = Path(__file__).parents[3]
FIELDS: list[dict[str, Any]] = yaml.safe_load(
    (ROOT / "tests/payloads/sveltos/templated-fields.yaml").read_text("utf-8")
)
WORKING = [each for each in FIELDS if "value" in each]


def trigger(path: str, value: str) -> dict[str, Any]:
    """Return a trigger for each object, with a value at a path of its spec."""
    spec: dict[str, Any] = {
        "sourceClusterSelector": {"matchLabels": {"env": "production"}},
        "eventSourceName": "of-east",
        "oneForEvent": True,
        "policyRefs": [{"kind": "ConfigMap", "name": "made", "namespace": "shop"}],
        "destinationCluster": {"name": "east"},
    }
    first, _, field = path.rpartition(".")
    if first.endswith("Generator[]"):
        generator = {"namespace": "shop", "name": "made", "nameFormat": "x"}
        spec[first.removesuffix("[]")] = [generator]
    if first.startswith("templateResourceRefs"):
        read = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", field: value}
        entry = {"resource": read, "identifier": "x", "optional": True}
        spec["templateResourceRefs"] = [entry]
        return _trigger(spec)
    place = spec[first.removesuffix("[]")] if first else spec
    (place[0] if isinstance(place, list) else place)[field] = value
    return _trigger(spec)


def _trigger(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "EventTrigger",
        "metadata": {"name": "made"},
        "spec": spec,
    }


def made(fleet: Fleet) -> Profile:
    (profile,) = fleet.records.profiles.of("made")
    return profile


def named(fleet: Fleet) -> str:
    (profile,) = fleet.records.profiles.of("made")
    return (profile.destinations or (profile.error.split("'")[1],))[0]


def read_ref(fleet: Fleet) -> str:
    (profile,) = fleet.records.profiles.of("made")
    return profile.contents[0].ref


def generated(label: str) -> Callable[[Fleet, str], str]:
    """Return a function that reads a label of a generated object, or its name."""

    def read_label(fleet: Fleet, _: str) -> str:
        (profile,) = fleet.records.profiles.of("made")
        metadata = profile.generated[0]["metadata"]
        return str({**metadata["labels"], "name": metadata["name"]}[label])

    return read_label


PREFIX = "eventtrigger.lib.projectsveltos.io/"
SHOWN: dict[str, Callable[[Fleet, str], str]] = {
    "eventSourceName": lambda fleet, _: fleet.catalogs.current().sources_in("fleet/east")[0],
    "policyRefs[].namespace": lambda fleet, _: read_ref(fleet).split()[1].split("/")[0],
    "policyRefs[].name": lambda fleet, _: read_ref(fleet).split("/")[1],
    "destinationCluster.namespace": lambda fleet, _: named(fleet).split("/")[0],
    "destinationCluster.name": lambda fleet, _: named(fleet).split("/")[1],
    **{
        f"{kind}Generator[].{field}": generated(label)
        for kind in ("configMap", "secret")
        for field, label in (
            ("namespace", f"{PREFIX}refnamespace"),
            ("name", f"{PREFIX}refname"),
            ("nameFormat", "name"),
        )
    },
    "profileNameFormat": lambda fleet, _: made(fleet).title,
    "templateResourceRefs[].resource.namespace": lambda fleet, _: made(fleet).reads[0].namespace,
    "templateResourceRefs[].resource.name": lambda fleet, _: made(fleet).reads[0].name,
    # Who renders to no kind of cluster is refused, below: here it is enough that it goes there.
    "destinationCluster.kind": lambda fleet, expected: expected if named(fleet) else "",
    "destinationCluster.apiVersion": lambda fleet, expected: expected if named(fleet) else "",
}
"""The result in which the field is seen."""


SECRET = "apiVersion: v1\nkind: Secret\ntype: addons.projectsveltos.io/cluster-profile\n"


@pytest.fixture
def ready(fleet: Fleet) -> Fleet:
    """Register a cluster with a Service in it, and all that triggers may name."""
    east = fleet.register("east", env="production")
    fleet.apply(source(name="of-east"))
    for name in ("made", "for-service"):
        text = holder(name, config("a")).replace("namespace: default", "namespace: shop", 1)
        fleet.apply(text, f"{SECRET}metadata: {{name: {name}, namespace: shop}}")
    east.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    return fleet


def render(fleet: Fleet, field: str, value: str) -> None:
    fleet.apply(yaml.safe_dump(trigger(field, value)))
    fleet.write("east", service("web", "shop"))
    fleet.pump()


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [pytest.param(*each.values(), id=each["field"]) for each in WORKING],
)
def test_is_rendered(ready: Fleet, field: str, value: str, expected: str) -> None:
    """With the variables of event time, or of the cluster for the source's name."""
    render(ready, field, value)

    assert SHOWN[field](ready, expected) == expected


@pytest.mark.parametrize("field", [each["field"] for each in WORKING])
def test_one_that_fails_is_named(ready: Fleet, field: str) -> None:
    """The field, which of several, the line and the column are said, and nothing is made."""
    render(ready, field, "x-{{ .Nothing }}")

    errors = [profile.error for profile in ready.records.profiles.of("made")]
    errors += map(str, ready.catalogs.current().problems_in("fleet/east").values())
    assert [said for said in errors if f"{field.replace('[]', '[0]')}:1:" in said]
    assert list(ready.records.inventories.of("fleet/east")) == []


SEVERAL = {
    "policyRefs": ("name", {"kind": "ConfigMap", "name": "made", "namespace": "shop"}),
    "secretGenerator": ("nameFormat", {"name": "made", "namespace": "shop", "nameFormat": "x"}),
}


@pytest.mark.parametrize("field", SEVERAL)
def test_of_several_it_is_said_which_one_fails(ready: Fleet, field: str) -> None:
    """By its number in the field; what stands in another field before it does not count."""
    failing, good = SEVERAL[field]
    asked = trigger("configMapGenerator[].nameFormat", "other")
    good = {**good, "optional": True}
    asked["spec"][field] = [good, {**good, failing: "x-{{ .Nothing }}"}]
    ready.apply(yaml.safe_dump(asked))
    ready.write("east", service("web", "shop"))
    ready.pump()

    assert made(ready).error.startswith(f"template: {field}[1].{failing}:1:")


@pytest.mark.parametrize("each", FIELDS, ids=lambda each: each["field"])
def test_the_others_are_refused(each: dict[str, Any]) -> None:
    """Each field exists; it works, or an error says why not."""
    path = f"spec.{each['field']}"
    places = NOT_YET["EventTrigger"]
    refused = [place for place in places if path.startswith(place)]

    assert field_at(EventTrigger, tuple(path.replace("[]", "").split(".")))
    if "elsewhere" in each:
        # It is rendered of what is no object, which a test of its own sends.
        assert each["field"] in (ROOT / each["elsewhere"]).read_text()
    assert bool(refused) is not ("value" in each or "elsewhere" in each)


def test_a_destination_that_is_no_cluster_is_refused(ready: Fleet) -> None:
    """Kinds other than a cluster's are a mistake."""
    render(ready, "destinationCluster.kind", "{{ .Resource.kind }}")

    (profile,) = ready.records.profiles.of("made")
    assert profile.error == (
        "destinationCluster.kind: cannot determine which cluster is meant: 'Service' is not a"
        " cluster, as a SveltosCluster is"
    )
