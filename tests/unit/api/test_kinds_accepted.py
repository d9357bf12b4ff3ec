"""What users wrote in either era reads as one shape."""

import base64
from pathlib import Path
from typing import Any

import pytest

from bellhop.api.kinds import (
    KINDS,
    ClusterProfile,
    ClusterRef,
    ConfigMap,
    Declaration,
    EventSource,
    EventTrigger,
    InvalidDocuments,
    PolicyRef,
    Secret,
    Selector,
    of,
    parse,
    parse_all,
    read_documents,
)
from bellhop.api.names import DECLARED, RULES
from bellhop.api.profile import ClusterProfileSpec
from bellhop.core.gvk import GVK
from bellhop.state.profile import AddonPolicy

MANIFESTS = Path(__file__).parent / "manifests"
LIB = "lib.projectsveltos.io"


def read(name: str) -> list[Declaration]:
    return parse_all(read_documents((MANIFESTS / name).read_bytes(), source=name))


def source(spec: dict[str, Any], version: str = "v1beta1") -> EventSource:
    kind = of(
        {
            "apiVersion": f"{LIB}/{version}",
            "kind": "EventSource",
            "metadata": {"name": "s"},
            "spec": spec,
        }
    )
    assert isinstance(kind, EventSource)
    return kind


def trigger(spec: dict[str, Any], version: str = "v1beta1", kind: str = "EventTrigger") -> Any:
    spec = {"sourceClusterSelector": "env=fv", "eventSourceName": "s", **spec}
    return of(
        {"apiVersion": f"{LIB}/{version}", "kind": kind, "metadata": {"name": "t"}, "spec": spec}
    )


def secret(**fields: Any) -> Secret:
    kind = of({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **fields})
    assert isinstance(kind, Secret)
    return kind


def test_reads_the_first_era() -> None:
    """Flat sources, misspelt filters, selector strings and EventBasedAddOns keep their meaning."""
    by_label, by_script, addon, contents = read("first-era-network-policy.yaml")

    assert isinstance(by_label, EventSource)
    assert isinstance(by_script, EventSource)
    assert isinstance(addon, EventTrigger)
    assert isinstance(contents, ConfigMap)
    (selector,) = by_label.selectors
    assert selector.gvk == GVK("", "v1", "Service")
    assert [(f.key, f.operation, f.value) for f in selector.label_filters] == [
        ("sveltos", "Equal", "fv")
    ]
    assert by_label.collect_resources
    assert by_script.selectors[0].script.startswith("function evaluate()")
    assert (addon.kind, addon.name, addon.namespace) == (
        "EventBasedAddOn",
        "service-network-policy",
        "",
    )
    assert addon.source_selector == Selector.parse("env=fv")
    assert addon.destination_selector is None
    assert addon.one_for_event
    assert addon.instantiates_all
    assert addon.policy_refs == (
        PolicyRef("default", "network-policy", "ConfigMap", optional=False),
    )
    assert "{{ .Resource.metadata.name }}" in contents.data["networkpolicy.yaml"]


def test_reads_a_namespace_where_there_is_none() -> None:
    """A cluster-scoped kind has no namespace, even if one was written."""
    https, addon, _ = read("first-era-ingress.yaml")

    assert isinstance(https, EventSource)
    assert https.selectors[0].namespace == "eng"
    assert isinstance(addon, EventTrigger)
    assert tuple(addon.key) == ("EventBasedAddOn", "", "ingress-configuration")
    assert not addon.one_for_event


def test_reads_the_middle_of_the_first_era() -> None:
    """ResourceSelectors stand beside selectors that are strings."""
    balancers, policy, contents = read("cross-cluster-service.yaml")

    assert isinstance(balancers, EventSource)
    assert "ingress ~= nil" in balancers.selectors[0].script
    assert isinstance(policy, EventTrigger)
    assert policy.destination_selector == Selector.parse("dep=eng")
    assert policy.instantiates_all
    assert contents.annotations == {"projectsveltos.io/template": "ok"}


def test_reads_generators_and_what_templates_read() -> None:
    """A trigger names what is generated, by which names, and the objects to read."""
    trigger = read("second-era-credentials.yaml")[1]

    assert isinstance(trigger, EventTrigger)
    names = "{{ .Cluster.metadata.namespace }}-{{ .Cluster.metadata.name }}-namespaces"
    assert [(each.field, each.name_format) for each in trigger.generators] == [
        ("configMapGenerator", names)
    ]
    assert [(each.identifier, each.kind, each.namespace) for each in trigger.readings] == [
        ("Credentials", "Secret", "default"),
        ("Namespaces", "ConfigMap", "projectsveltos"),
    ]


def test_reads_a_profile() -> None:
    """A ClusterProfile has its clusters, its contents and its rank."""
    contents, profile = read("second-era-network-policy.yaml")

    assert "projectsveltos.io/instantiate" in contents.annotations
    assert isinstance(profile, ClusterProfile)
    assert profile.cluster_selector.matches({"env": "fv"})
    assert profile.cluster_refs == (ClusterRef("edge", "one"),)
    assert profile.policy_refs == (
        PolicyRef("default", "base-credentials", "Secret", optional=True),
    )
    policy = profile.policy
    assert (policy.leaves_policies, policy.continue_on_conflict, policy.tier) == (True, True, 50)


@pytest.mark.parametrize("path", sorted(MANIFESTS.iterdir()), ids=lambda path: path.stem)
def test_gives_back_what_was_written(path: Path) -> None:
    """A manifest comes back as it went in."""
    for document in read_documents(path.read_bytes(), source=path.name):
        try:
            kind = parse(document)
        except InvalidDocuments:
            continue
        assert kind.manifest() == document.data
        assert kind.manifest() is not kind.manifest()
        assert of(kind.manifest()) == kind


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize("form", ["env=fv", {"matchLabels": {"env": "fv"}}])
def test_either_era_takes_either_selector(version: str, form: Any) -> None:
    """Nothing is lost by reading both spellings, so both are read."""
    found = trigger({"sourceClusterSelector": form, "destinationClusterSelector": form}, version)

    assert found.source_selector == found.destination_selector == Selector.parse("env=fv")


@pytest.mark.parametrize(
    ("kind", "version", "always"),
    [
        pytest.param("EventTrigger", "v1alpha1", True, id="first era"),
        pytest.param("EventTrigger", "v1beta1", False, id="second era"),
        pytest.param("EventBasedAddOn", "v1alpha1", True, id="first name"),
        pytest.param("EventBasedAddOn", "v1beta1", True, id="first name in the second era"),
    ],
)
def test_the_era_decides_what_is_rendered(kind: str, version: str, always: bool) -> None:  # noqa: FBT001 - a table's column
    """Only the second era asks for an annotation."""
    assert trigger({}, version, kind).instantiates_all is always


def test_a_policy_has_each_field_from_a_declaration() -> None:
    """A field of a policy that no specification has would keep its default for ever."""
    declared = {*dir(ClusterProfile), *ClusterProfileSpec.model_fields, *dir(ClusterProfileSpec)}

    assert {*AddonPolicy.__struct_fields__} <= declared


def test_a_trigger_has_defaults() -> None:
    """What is not written has the value the API gives it."""
    found = trigger({})

    assert not found.one_for_event
    assert found.policy_refs == ()
    assert not found.policy.leaves_policies
    assert (found.policy.tier, found.policy.continue_on_conflict) == (100, False)


def test_defaults_may_be_written() -> None:
    """A field of something that is not built yet is welcome at its default."""
    found = trigger(
        {
            "syncMode": "Continuous",
            "helmCharts": [],
            "reloader": False,
            "dependsOn": None,
            "extraLabels": {},
            "cloudEventAction": "Create",
            "policyRefs": [
                {"kind": "Secret", "name": "s", "deploymentType": "Remote", "tier": 100, "path": ""}
            ],
        }
    )

    assert found.policy_refs == (PolicyRef("", "s", "Secret", optional=False),)


def test_names_may_be_templates() -> None:
    """What is rendered later is kept as it is."""
    found = trigger(
        {
            "eventSourceName": "{{ .Cluster.metadata.name }}-source",
            "policyRefs": [
                {
                    "kind": "ConfigMap",
                    "name": "{{ .Cluster.metadata.name }}-x",
                    "namespace": "{{X}}",
                }
            ],
        }
    )

    assert found.event_source_name == "{{ .Cluster.metadata.name }}-source"
    assert found.policy_refs[0][:2] == ("{{X}}", "{{ .Cluster.metadata.name }}-x")


@pytest.mark.parametrize(
    ("field", "filters"),
    [
        pytest.param("labelFilters", [{"key": "a", "operation": "Has"}], id="spelt right"),
        pytest.param(
            "labelsFilters", [{"key": "a", "operation": "Has"}], id="spelt as once taught"
        ),
    ],
)
@pytest.mark.parametrize("flat", [True, False], ids=["flat", "listed"])
def test_filters_have_two_spellings(field: str, filters: Any, flat: bool) -> None:  # noqa: FBT001 - a table's column
    """The old documentation's misspelling is read wherever filters may stand."""
    entry = {"group": "apps", "version": "v1", "kind": "Deployment", field: filters}

    found = source(entry if flat else {"resourceSelectors": [entry]})

    assert found.selectors[0].label_filters[0].operation == "Has"
    assert found.selectors[0].gvk == GVK("apps", "v1", "Deployment")


def test_a_source_lists_its_selectors_in_order() -> None:
    """Every entry of resourceSelectors is one selector, with all its conditions."""
    found = source(
        {
            "resourceSelectors": [
                {"group": "", "version": "v1", "kind": "Pod", "namespace": "a", "name": "b"},
                {
                    "group": "apps",
                    "version": "v1",
                    "kind": "Deployment",
                    "selector": {"matchLabels": {"x": "y"}},
                    "script": "function evaluate() end",
                },
            ]
        }
    )

    first, second = found.selectors
    assert (first.namespace, first.name, first.script, first.selector) == ("a", "b", "", None)
    assert second.selector == Selector.parse("x=y")
    assert second.script == "function evaluate() end"
    assert not found.collect_resources


def test_leaves_out_what_a_server_added() -> None:
    """What `kubectl get -o yaml` shows can be applied: the server's own fields mean nothing."""
    written = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "c",
            "namespace": "n",
            "labels": {"a": "b"},
            "annotations": {
                "x": "y",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
            "uid": "1",
            "resourceVersion": "2",
            "creationTimestamp": "2024-01-01T00:00:00Z",
            "generation": 1,
            "managedFields": [{}],
            "ownerReferences": [{}],
            "finalizers": ["f"],
        },
        "status": {"anything": True},
        "data": {"k": "v"},
    }

    found = of(written)

    assert found.manifest() == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "c",
            "namespace": "n",
            "labels": {"a": "b"},
            "annotations": {"x": "y"},
        },
        "data": {"k": "v"},
    }
    assert "uid" in written["metadata"]  # type: ignore[operator]


def test_a_config_map_holds_texts_and_bytes() -> None:
    """BinaryData are decoded, data are as written, and a null is empty."""
    found = of(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c"},
            "data": {"a": "é", "b": None},
            "binaryData": {"c": base64.b64encode(b"\xff").decode()},
            "immutable": True,
        }
    )

    assert isinstance(found, ConfigMap)
    assert found.namespace == "default"
    assert found.data == {"a": "é", "b": ""}
    assert found.decoded() == {"a": "é".encode(), "b": b"", "c": b"\xff"}
    assert str(found.key) == "ConfigMap default/c"


def test_a_secret_merges_its_string_data() -> None:
    """StringData wins over data, as on an API server."""
    found = secret(data={"a": "aGk=", "b": "aGk="}, stringData={"b": "höher", "c": None})

    assert found.decoded() == {"a": b"hi", "b": "höher".encode(), "c": b""}
    assert found.data["a"] == "aGk="
    assert found.type == "Opaque"


def test_a_secret_takes_line_breaks_in_base64() -> None:
    """Folded base64 decodes as it does in Go."""
    assert secret(data={"a": "aGVs\nbG8=\n"}).decoded() == {"a": b"hello"}


def test_a_secret_does_not_show_its_data() -> None:
    """What a debugger or a log prints of a Secret holds none of it."""
    shown = repr(secret(data={"a": "aGk="}, stringData={"b": "hush"}))

    assert "aGk=" not in shown
    assert "hush" not in shown


def test_kinds_are_frozen() -> None:
    """A kind cannot be changed once it is read."""
    with pytest.raises(ValueError, match="frozen"):
        secret().type = "other"


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"resourceSelectors": [], "collectResources": True}, id="no selectors"),
        pytest.param({"resourceSelectors": None}, id="null"),
    ],
)
def test_a_source_may_select_nothing(spec: dict[str, Any], version: str) -> None:
    """The API takes a source without selectors; no object matches it."""
    assert source(spec, version).selectors == ()


def test_a_source_may_have_no_spec() -> None:
    """Its spec is optional in the API."""
    manifest = {"apiVersion": f"{LIB}/v1beta1", "kind": "EventSource", "metadata": {"name": "s"}}
    found = of(manifest)

    assert isinstance(found, EventSource)
    assert found.kinds == frozenset()


@pytest.mark.parametrize("selector", [{}, "", {"matchLabels": {}}, None])
def test_an_empty_selector_of_destinations_means_the_events_cluster(selector: Any) -> None:
    """Every client in Go writes the selector that was left out."""
    assert trigger({"destinationClusterSelector": selector}).destination_selector is None


@pytest.mark.parametrize(
    "spec", [{"eventSourceName": "s"}, {"sourceClusterSelector": {}, "eventSourceName": "s"}]
)
def test_a_trigger_may_select_nothing(spec: dict[str, Any]) -> None:
    """A trigger without a selector selects no cluster."""
    found = of(
        {
            "apiVersion": f"{LIB}/v1beta1",
            "kind": "EventTrigger",
            "metadata": {"name": "t"},
            "spec": spec,
        }
    )

    assert isinstance(found, EventTrigger)
    assert not found.source_selector.matches({"a": "b"})


def test_the_names_of_the_kinds_are_those_that_have_a_model() -> None:
    """Only an EventReport is written by nobody but Bellhop, and what has contents comes last."""
    assert [*DECLARED, "EventReport"] == list(KINDS)
    assert DECLARED[len(RULES) :] == ("ConfigMap", "Secret")


def test_what_sveltos_own_manifests_spell_out_is_accepted() -> None:
    """An identifier may be empty, and subcharts may be asked for, which each archive has."""
    chart = {
        "repositoryURL": "https://charts.example.com",
        "chartName": "a",
        "releaseName": "a",
        "releaseNamespace": "a",
        "options": {"dependencyUpdate": True},
    }
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "b"}
    read = trigger(
        {
            "helmCharts": [chart],
            "templateResourceRefs": [{"resource": resource, "identifier": ""}],
        }
    )
    assert [each.identifier for each in read.readings] == [""]
    assert [each.chart.release for each in read.charts] == ["a"]
