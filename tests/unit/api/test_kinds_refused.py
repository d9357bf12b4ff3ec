"""Every mistake is one sentence that names the place, and all of them are reported at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from bellhop.api.kinds import EventTrigger, InvalidDocuments, of, parse_all, read_documents
from bellhop.api.unsupported import KNOWN
from bellhop.errors import InvalidError

TRIGGER = """\
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata:
  name: t
spec:
  sourceClusterSelector: {matchLabels: {env: fv}}
  eventSourceName: s
"""
SOURCE = """\
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata:
  name: s
spec:
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: c}\n"
PROFILE = (
    "apiVersion: config.projectsveltos.io/v1beta1\nkind: ClusterProfile\nmetadata: {name: p}\n"
)


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidDocuments) as raised:
        parse_all(read_documents(text, source="f"))
    return [str(problem).removeprefix("f, document 1, ") for problem in raised.value.problems]


def read_cases() -> dict[str, tuple[str, list[str]]]:
    """Read the manifests in the folder `refused`, each with its title and its errors as comments.

    A case without apiVersion is appended to the first manifest of its file, which has no title.
    """
    cases = {}
    for file in sorted((Path(__file__).parent / "refused").glob("*.yaml")):
        base = ""
        for document in file.read_text().split("---\n"):
            lines = document.splitlines(keepends=True)
            text = "".join(line for line in lines if not line.startswith("# "))
            if not document.startswith("# "):
                base = text
                continue
            errors = [
                line.removeprefix("# error: ").rstrip("\n") for line in lines if "# error:" in line
            ]
            whole = text if text.startswith("apiVersion:") else base + text
            cases[f"{file.stem}: {lines[0][2:].rstrip()}"] = (whole, errors)
    return cases


CASES = read_cases()


@pytest.mark.parametrize(("text", "errors"), CASES.values(), ids=CASES)
def test_reports_every_mistake(text: str, errors: list[str]) -> None:
    """The sentences are exact, in the order of the lines."""
    assert problems(text) == errors


def test_bounds_names_and_data() -> None:
    """As an API server does."""
    long = CONFIG_MAP.replace("{name: c}", f"{{name: {'c' * 254}, namespace: {'n' * 64}}}")

    assert problems(long) == [
        "line 3, metadata.name: a name has at most 253 characters, this one has 254",
        "line 3, metadata.namespace: a namespace has at most 63 characters, this one has 64",
    ]
    assert problems(CONFIG_MAP + f"data: {{a: {'x' * (1024 * 1024 + 1)}}}\n") == [
        "line 1: the data have 1,048,577 bytes and at most 1,048,576 are taken"
    ]


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        pytest.param(
            {"labels": {"A_b/x": "y"}},
            "f, metadata.labels: 'A_b/x' is not a key: what stands before '/' must be a DNS name",
            id="prefix",
        ),
        pytest.param(
            {"labels": {"x": "-"}},
            "f, metadata.labels: 'x': '-' is not a label's value: "
            "it takes letters, digits, '-', '_' and '.'",
            id="label's value",
        ),
        pytest.param(
            {"annotations": {"x": "é" * 150_000}},
            "f, metadata.annotations: annotations have at most 262,144 bytes together, "
            "these have 300,001",
            id="large annotations",
        ),
        pytest.param(
            {"annotations": {"": "x"}},
            "f, metadata.annotations: '' is not a key: it takes letters, digits, '-', '_' and '.'",
            id="empty key",
        ),
    ],
)
def test_holds_metadata_to_the_rules(metadata: dict[str, Any], error: str) -> None:
    """Labels and annotations are what an API server would take."""
    with pytest.raises(InvalidDocuments) as raised:
        of(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}},
            source="f",
        )

    assert str(raised.value) == error


def test_bounds_data_keys() -> None:
    """A data key is a file name of at most 253 characters."""
    assert problems(f"{CONFIG_MAP}data: {{{'k' * 254}: x}}\n") == [
        "line 4, data: a data key has at most 253 characters, this one has 254"
    ]
    assert problems(f"{CONFIG_MAP}data: {{..: x}}\n") == [
        "line 4, data: '..' is not a data key: it takes letters, digits, '-', '_' and '.'"
    ]


def test_reports_the_mistakes_of_all_documents() -> None:
    """One bad document hides neither the others' mistakes nor where they are."""
    text = f"{CONFIG_MAP}spec: 1\n---\n{CONFIG_MAP}---\n{SECRET}type: 1\n"

    with pytest.raises(InvalidDocuments) as raised:
        parse_all(read_documents(text, source="f"))

    assert [problem.where for problem in raised.value.problems] == [
        "f, document 1, line 4, spec",
        "f, document 3, line 13, type",
    ]
    assert str(raised.value) == "f, document 1, line 4, spec: unknown field 'spec' (and 1 more)"
    assert isinstance(raised.value, InvalidError)


def test_names_the_place_in_a_list() -> None:
    """A mistake in an item of a List says which item."""
    text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {}}"

    assert problems(text) == ["line 4, items[0].metadata.name: the field 'name' is missing"]


def test_names_the_place_of_a_stored_manifest() -> None:
    """What was not read from a file has no line, but its path."""
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {}}

    with pytest.raises(InvalidDocuments) as raised:
        of(manifest, source="store")

    assert str(raised.value) == "store, metadata.name: the field 'name' is missing"


def test_refuses_that_one_for_event_changes() -> None:
    """OneForEvent decides what exists; to change it users delete it first."""
    old, new = (
        next(iter(parse_all(read_documents(TRIGGER + more, source="f"))))
        for more in ("", "  oneForEvent: true\n")
    )
    assert isinstance(old, EventTrigger)
    assert isinstance(new, EventTrigger)

    with pytest.raises(InvalidError) as raised:
        new.refuse_change(old)

    assert str(raised.value) == (
        "spec.oneForEvent: Value is immutable: it was false and cannot become true; "
        "delete EventTrigger 't' and create it again"
    )
    new.refuse_change(new)


@pytest.mark.parametrize("kind", KNOWN)
def test_kinds_of_sveltos_are_known(kind: str) -> None:
    """A kind that Sveltos has is not called unknown; one of that name in another group is."""
    manifest = {"apiVersion": "config.projectsveltos.io/v1beta1", "kind": kind}
    with pytest.raises(InvalidDocuments, match=f": {kind} is "):
        of(manifest)
    with pytest.raises(InvalidDocuments, match=f"the kind '{kind}' is not known"):
        of({**manifest, "apiVersion": "example.com/v1"})


@pytest.mark.parametrize(
    ("version", "kind", "said"),
    [
        pytest.param("v1", "Namespaces", "did you mean 'Namespace'?", id="a plural"),
        pytest.param("v1", "configmap", "did you mean 'ConfigMap'?", id="small letters"),
        pytest.param("v1", "Deployment", "it is in the group 'apps'", id="another group"),
        pytest.param("v1", "Widget", "name its group", id="a kind of one's own"),
        pytest.param("v1beta1", "Pod", "'v1', not 'v1beta1'", id="no such version"),
    ],
)
def test_the_core_group_has_its_kinds_and_no_others(version: str, kind: str, said: str) -> None:
    """No CRD adds a kind there, so an EventSource would wait for ever."""
    named = f"{{group: '', version: {version}, kind: {kind}}}"
    health = SOURCE.replace("EventSource", "HealthCheck")
    check = (
        f"  preDeployChecks: [{{name: c, featureID: Resources, version: {version}, kind: {kind}}}]"
    )
    texts = (
        SOURCE + f"  resourceSelectors: [{named}]\n",
        SOURCE + f"  group: ''\n  version: {version}\n  kind: {kind}\n",
        health + f"  evaluateHealth: x\n  resourceSelectors: [{named}]\n",
        health + f"  script: x\n  group: ''\n  version: {version}\n  kind: {kind}\n",
        PROFILE + "spec:\n  clusterSelector: {matchLabels: {env: fv}}\n" + check,
    )

    assert [said in " ".join(problems(text)) for text in texts] == [True] * len(texts)


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param("{group: example.org, version: v1, kind: Namespaces}", id="its CRD may come"),
        pytest.param("{group: '', version: v1, kind: '{{ .Kind }}'}", id="a template"),
    ],
)
def test_other_kinds_are_accepted(selector: str) -> None:
    """Only what is certain to be a mistake is refused."""
    assert parse_all(read_documents(SOURCE + f"  resourceSelectors: [{selector}]\n", source="f"))


def test_a_check_by_a_job_may_have_any_kind() -> None:
    """It looks at no object, and manifests that tools generate name a kind all the same."""
    check = (
        "{name: c, featureID: Resources, kind: Job, jobCheck: {jobRef: {name: j, namespace: d}}}"
    )
    text = PROFILE + "spec:\n  clusterSelector: {matchLabels: {env: fv}}\n"

    assert parse_all(read_documents(f"{text}  validateHealths: [{check}]\n", source="f"))


def test_a_stored_manifest_with_such_a_kind_is_read() -> None:
    """It was accepted by an earlier version, and must not keep others from being read."""
    named = {"group": "", "version": "v1", "kind": "Namespaces"}
    [document] = read_documents(SOURCE + "  resourceSelectors: []\n", source="f")
    document.data["spec"]["resourceSelectors"] = [named]

    assert [str(each) for each in of(document.data).kinds] == ["v1/Namespaces"]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ("[one, two]", "values of a chart must be a mapping, as in 'replicaCount: 2'"),
        ("a: [1", "values, document 1, line 2: this is not YAML: did not find expected ',' or ']'"),
        ("a: 1", ""),
        ("", ""),
        ("{{ if .x }}- a{{ end }}", ""),
        ("{% if x %}- a{% endif %}", ""),
    ],
)
def test_values_of_a_chart_are_a_mapping(values: str, problem: str) -> None:
    """What has to be rendered first is checked later."""
    chart = {"repositoryURL": "https://a", "chartName": "a", "releaseName": "a"}
    manifest = {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": "ClusterProfile",
        "metadata": {"name": "a"},
        "spec": {"helmCharts": [{**chart, "releaseNamespace": "a", "values": values}]},
    }
    documents = read_documents(json.dumps(manifest), source="f")
    if not problem:
        parse_all(documents)
        return
    with pytest.raises(InvalidDocuments) as refused:
        parse_all(documents)
    assert f"spec.helmCharts[0].values: {problem}" in str(refused.value)


def test_a_stored_chart_with_other_values_is_read() -> None:
    """An earlier version accepted it: its own profile fails, and no other."""
    chart = {"repositoryURL": "https://a", "chartName": "a", "releaseName": "a"}
    manifest = {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": "ClusterProfile",
        "metadata": {"name": "a"},
        "spec": {"helmCharts": [{**chart, "releaseNamespace": "a", "values": "[one, two]"}]},
    }

    assert of(manifest).name == "a"
