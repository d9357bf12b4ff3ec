"""Every mistake is one sentence that names the place, and all of them are told at once."""

import json
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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            TRIGGER.replace("eventSourceName", "eventSourcName"),
            [
                (
                    "line 7, spec.eventSourcName: unknown field 'eventSourcName'; "
                    "did you mean 'eventSourceName'?"
                )
            ],
            id="a misspelt field, which is not missing as well",
        ),
        pytest.param(
            TRIGGER.replace("  eventSourceName: s\n", ""),
            ["line 5, spec.eventSourceName: the field 'eventSourceName' is missing"],
            id="a missing field",
        ),
        pytest.param(
            TRIGGER + "  eventsourceName: s\n",
            [
                (
                    "line 8, spec.eventsourceName: unknown field 'eventsourceName'; "
                    "did you mean 'eventSourceName'?"
                )
            ],
            id="other capitals",
        ),
        pytest.param(
            TRIGGER + "  wholly: other\n",
            ["line 8, spec.wholly: unknown field 'wholly'"],
            id="an unknown field like no other",
        ),
        pytest.param(
            TRIGGER + "  policyRefs:\n  - {name: x, kind: ConfigMap, nmespace: y}\n",
            [
                (
                    "line 9, spec.policyRefs[0].nmespace: unknown field 'nmespace'; "
                    "did you mean 'namespace'?"
                )
            ],
            id="a misspelt field in a list",
        ),
        pytest.param(
            TRIGGER + "  policyRefs:\n  - name: x\n    kind: Configmap\n",
            [
                (
                    "line 10, spec.policyRefs[0].kind: 'Configmap' is not one of "
                    "ConfigMap, Secret, "
                    "GitRepository, OCIRepository, Bucket; did you mean 'ConfigMap'?"
                )
            ],
            id="a misspelt word of a list of words",
        ),
        pytest.param(
            TRIGGER + "  policyRefs:\n  - name: x\n    kind: 3\n",
            [
                (
                    "line 10, spec.policyRefs[0].kind: this must be a string, not a number; "
                    "put it in quotes"
                )
            ],
            id="a number where a word should be",
        ),
        pytest.param(
            TRIGGER + "  policyRefs: [{kind: Secret}, {name: x}, x, {}]\n",
            [
                "line 8, spec.policyRefs[0]: name is missing",
                "line 8, spec.policyRefs[1]: kind is missing",
                "line 8, spec.policyRefs[2]: this must be a mapping, not a string",
                "line 8, spec.policyRefs[3]: name is missing",
            ],
            id="policyRefs that name nothing",
        ),
        pytest.param(
            TRIGGER + "  policyRefs: [{kind: Secret, name: A_b, namespace: c.d}]\n",
            [
                (
                    "line 8, spec.policyRefs[0].namespace: 'c.d' is not a namespace: "
                    "it takes lower-case letters, digits and '-'"
                ),
                (
                    "line 8, spec.policyRefs[0].name: 'A_b' is not a name: "
                    "it takes lower-case letters, digits, '-' and '.'"
                ),
            ],
            id="names that cannot be",
        ),
        pytest.param(
            TRIGGER + "  policyRefs: {name: x}\n  oneForEvent: 'true'\n  tier: '3'\n",
            [
                "line 8, spec.policyRefs: this must be a list, not a mapping",
                (
                    "line 9, spec.oneForEvent: this must be true or false, not a string; "
                    "take the quotes away"
                ),
                (
                    "line 10, spec.tier: this must be a whole number, not a string; "
                    "take the quotes away"
                ),
            ],
            id="types",
        ),
        pytest.param(
            TRIGGER + "  tier: 0\n",
            ["line 8, spec.tier: this must be at least 1"],
            id="a number that is too small",
        ),
        pytest.param(
            TRIGGER + "  tier: 2147483648\n",
            ["line 8, spec.tier: this must be at most 2147483647"],
            id="a number that is too large",
        ),
        pytest.param(
            TRIGGER + "  tier: 1.5\n  oneForEvent: 1\n",
            [
                "line 8, spec.tier: this must be a whole number, not a fraction",
                "line 9, spec.oneForEvent: this must be true or false, not a number",
            ],
            id="other numbers",
        ),
        pytest.param(
            TRIGGER + "  tier: true\n",
            ["line 8, spec.tier: this must be a whole number, not a boolean"],
            id="a boolean is no number",
        ),
        pytest.param(
            TRIGGER + "  clusterSelector: env=fv\n",
            [
                (
                    "line 5, spec: clusterSelector and sourceClusterSelector are the same field; "
                    "keep the latter"
                )
            ],
            id="both names of the selector",
        ),
        pytest.param(
            TRIGGER + "  cloudEventAction: Destroy\n",
            [
                "line 5, spec: cloudEventAction is 'Destroy'; it is Create, Delete or a template",
            ],
            id="an action that is none",
        ),
        pytest.param(
            TRIGGER.replace("{matchLabels: {env: fv}}", "{matchLabel: {env: fv}}"),
            [
                (
                    "line 6, spec.sourceClusterSelector.matchLabel: unknown field 'matchLabel'; "
                    "did you mean 'matchLabels'?"
                )
            ],
            id="a misspelt part of a selector",
        ),
        pytest.param(
            TRIGGER.replace("{matchLabels: {env: fv}}", "{matchLabels: {env: 1, no: x}}"),
            [
                (
                    "line 6, spec.sourceClusterSelector.matchLabels.env: "
                    "this must be a string, not a number; put it in quotes"
                )
            ],
            id="a label that is a number",
        ),
        pytest.param(
            TRIGGER.replace(
                "{matchLabels: {env: fv}}",
                "{matchExpressions: [{key: a, operator: In}, {key: b, operator: Exists, "
                "values: [c]}, {key: d, operator: in}]}",
            ),
            [
                (
                    "line 6, spec.sourceClusterSelector.matchExpressions[0]: "
                    "operator In needs at least one value"
                ),
                (
                    "line 6, spec.sourceClusterSelector.matchExpressions[1]: "
                    "operator Exists takes no values"
                ),
                (
                    "line 6, spec.sourceClusterSelector.matchExpressions[2].operator: 'in' "
                    "is not one "
                    "of In, NotIn, Exists, DoesNotExist; did you mean 'In'?"
                ),
            ],
            id="expressions",
        ),
        pytest.param(
            TRIGGER.replace("{matchLabels: {env: fv}}", "env in ("),
            [
                (
                    "line 6, spec.sourceClusterSelector: the selector 'env in (' has the end where "
                    "a label's value should be"
                )
            ],
            id="a selector string",
        ),
        pytest.param(
            TRIGGER.replace("{matchLabels: {env: fv}}", "[env]"),
            ["line 6, spec.sourceClusterSelector: this must be a mapping, not a list"],
            id="a selector that is a list",
        ),
        pytest.param(
            SOURCE + "  resourceSelectors: [{version: v1, kind: Pod}]\n",
            ["line 6, spec.resourceSelectors[0].group: the field 'group' is missing"],
            id="a selector without its group",
        ),
        pytest.param(
            SOURCE + "  resourceSelectors: [{group: '', version: v1, kind: ''}]\n",
            ["line 6, spec.resourceSelectors[0].kind: this must not be empty"],
            id="a selector with an empty kind",
        ),
        pytest.param(
            SOURCE + "  resourceSelectors:\n  - {group: '', version: v1, kind: Pod}\n"
            "  evaluate: function evaluate() end\n",
            [
                (
                    "line 5, spec: 'evaluate' stands beside resourceSelectors, where it selects "
                    "nothing; move it into an entry of resourceSelectors"
                )
            ],
            id="a script at the wrong place",
        ),
        pytest.param(
            SOURCE + "  group: ''\n  kind: Pod\n",
            [
                (
                    "line 5, spec: no resource is named: version is missing; "
                    "or list the resources in resourceSelectors"
                )
            ],
            id="a flat source without its version",
        ),
        pytest.param(
            SOURCE + "  group: ''\n  version: v1\n  kind: Pod\n  script: a\n  evaluate: b\n",
            ["line 5, spec: script and evaluate are the same field; keep one of them"],
            id="two scripts",
        ),
        pytest.param(
            SOURCE + "  group: ''\n  version: v1\n  kind: Pod\n"
            "  labelFilters: []\n  labelsFilters: []\n",
            ["line 5, spec: labelsFilters and labelFilters are the same field; keep the latter"],
            id="both spellings",
        ),
        pytest.param(
            SOURCE + "  group: ''\n  version: v1\n  kind: Pod\n"
            "  labelFilters: [{key: a, operation: equals}, {key: ' ', operation: Has}]\n",
            [
                (
                    "line 9, spec.labelFilters[0].operation: 'equals' is not one of Equal, "
                    "Different, "
                    "Has, DoesNotHave; did you mean 'Equal'?"
                ),
                (
                    "line 9, spec.labelFilters[1]: ' ' is not a key: "
                    "it takes letters, digits, '-', '_' and '.'"
                ),
            ],
            id="filters",
        ),
        pytest.param(
            SOURCE.replace(
                "metadata:\n  name: s\nspec:\n", "metadata:\nname: s\nspec:\ngroup: x\n"
            ),
            [
                "line 3, metadata: the field 'metadata' is missing",
                "line 4, name: unknown field 'name'; it belongs under 'metadata': indent it",
                "line 6, group: unknown field 'group'; it belongs under 'spec': indent it",
            ],
            id="lost indentation",
        ),
        pytest.param(
            CONFIG_MAP.replace("{name: c}", "{name: C, labels: {a b: c}, annotations: {x: 1}}"),
            [
                (
                    "line 3, metadata.name: 'C' is not a name: "
                    "it takes lower-case letters, digits, '-' and '.'"
                ),
                (
                    "line 3, metadata.labels: 'a b' is not a key: "
                    "it takes letters, digits, '-', '_' and '.'"
                ),
                (
                    "line 3, metadata.annotations.x: this must be a string, not a number; "
                    "put it in quotes"
                ),
            ],
            id="metadata",
        ),
        pytest.param(
            CONFIG_MAP.replace("{name: c}", f"{{name: {'c' * 254}, namespace: {'n' * 64}}}"),
            [
                "line 3, metadata.name: a name has at most 253 characters, this one has 254",
                (
                    "line 3, metadata.namespace: "
                    "a namespace has at most 63 characters, this one has 64"
                ),
            ],
            id="long names",
        ),
        pytest.param(
            CONFIG_MAP.replace("{name: c}", "{generateName: c-}"),
            [
                "line 3, metadata.name: the field 'name' is missing",
                "line 3, metadata.generateName: unknown field 'generateName'",
            ],
            id="a name that is to be generated",
        ),
        pytest.param(
            CONFIG_MAP + "data: {a: 1, b: {c: d}}\n",
            [
                "line 4, data.a: this must be a string, not a number; put it in quotes",
                "line 4, data.b: this must be a string, not a mapping",
            ],
            id="data that are no texts",
        ),
        pytest.param(
            CONFIG_MAP + "data: {a/b: c}\n",
            ["line 4, data: 'a/b' is not a data key: it takes letters, digits, '-', '_' and '.'"],
            id="a data key",
        ),
        pytest.param(
            CONFIG_MAP + "data: {a: c}\nbinaryData: {a: aGk=}\n",
            ["line 1: the key 'a' is in data and in binaryData; keep one of them"],
            id="a key twice",
        ),
        pytest.param(
            CONFIG_MAP + "spec: {}\n", ["line 4, spec: unknown field 'spec'"], id="a spec"
        ),
        pytest.param(
            CONFIG_MAP + f"data: {{a: {'x' * (1024 * 1024 + 1)}}}\n",
            ["line 1: the data have 1,048,577 bytes and at most 1,048,576 are taken"],
            id="too much data",
        ),
        pytest.param(
            SECRET + "data: {a: hush!}\n",
            [
                (
                    "line 4, data: the value of 'a' is not base64; "
                    "encode it, or write it under stringData"
                )
            ],
            id="a secret in clear, which is not repeated",
        ),
        pytest.param(
            SECRET + "stringData: {a: 1}\n",
            ["line 4, stringData.a: this must be a string, not a number; put it in quotes"],
            id="stringData that are no texts",
        ),
        pytest.param(
            PROFILE + "spec: {clusterRefs: [{name: x}], maxConsecutiveFailures: -1}\n",
            [
                "line 4, spec.clusterRefs[0].namespace: the field 'namespace' is missing",
                "line 4, spec.maxConsecutiveFailures: this must be at least 1",
            ],
            id="a profile",
        ),
        pytest.param(
            TRIGGER
            + "  helmCharts: [{repositoryURL: 'https://a.example', repositoryName: a, chartName: a,"
            + " releaseName: a, releaseNamespace: a, options: {postRenderStrategy: nohooks},"
            + " nonsense: 1}]\n",
            [
                (
                    "line 8, spec.helmCharts[0].options.postRenderStrategy: hooks are patched as"
                    " all else of a chart is; leave the field out"
                ),
                "line 8, spec.helmCharts[0].nonsense: unknown field 'nonsense'",
            ],
            id="mistakes in what is not built",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Configmap\n",
            ["line 2, kind: the kind 'Configmap' is not known; did you mean 'ConfigMap'?"],
            id="a misspelt kind",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\n",
            [
                (
                    "line 2, kind: the kind 'Deployment' is not known; what goes to the "
                    "clusters is "
                    "put into a ConfigMap or Secret that policyRefs name"
                )
            ],
            id="a kind for the clusters",
        ),
        pytest.param(
            "apiVersion: lib.projectsveltos.io/v1beta11\nkind: EventSource\n",
            [
                (
                    "line 1, apiVersion: EventSource has no apiVersion "
                    "'lib.projectsveltos.io/v1beta11'; did you mean "
                    "'lib.projectsveltos.io/v1beta1'?"
                )
            ],
            id="a misspelt version",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: Secret\n",
            ["line 1, apiVersion: Secret has no apiVersion 'apps/v1'; it has v1"],
            id="another group",
        ),
        pytest.param(
            "kind: Secret\n",
            ["line 1, apiVersion: this is not a manifest: apiVersion must be a string"],
            id="no version",
        ),
        pytest.param(
            "a: b\n",
            ["line 1, apiVersion: this is not a manifest: apiVersion and kind must be a string"],
            id="no manifest",
        ),
        pytest.param(
            PROFILE.replace("ClusterProfile", "ClusterPromotion"),
            [
                (
                    "line 2, kind: ClusterPromotion is known and not built yet; write a"
                    " ClusterProfile for each stage"
                )
            ],
            id="a kind of Sveltos that is not built yet",
        ),
        pytest.param(
            "apiVersion: lib.projectsveltos.io/v1beta1\nkind: ClusterSet\nmetadata: {name: x}\n"
            "spec: {maxReplicas: -1, clusterRefs: [{name: b}], replicas: 1}\n",
            [
                "line 4, spec.clusterRefs[0].namespace: the field 'namespace' is missing",
                "line 4, spec.maxReplicas: this must be at least 0",
                "line 4, spec.replicas: unknown field 'replicas'; did you mean 'maxReplicas'?",
            ],
            id="a set of clusters",
        ),
        pytest.param(
            "apiVersion: config.projectsveltos.io/v1beta1\nkind: Profile\nmetadata: {name: x}\n"
            "spec: {clusterRefs: [{namespace: B}], setRefs: ['']}\n",
            [
                (
                    "line 4, spec.clusterRefs[0].namespace: 'B' is not a namespace: it takes"
                    " lower-case letters, digits and '-'"
                ),
                "line 4, spec.clusterRefs[0].name: the field 'name' is missing",
                "line 4, spec.setRefs[0]: this must not be empty",
            ],
            id="a profile of a namespace",
        ),
        pytest.param(
            SOURCE.replace("EventSource", "SveltosCluster"),
            [
                (
                    "line 2, kind: SveltosCluster is not applied; 'bellhop register cluster -f'"
                    " registers what it declares, and a cluster is paused with 'bellhop pause"
                    " cluster', or outside of an activeWindow with 'bellhop set maintenance-window'"
                )
            ],
            id="a kind that is not applied",
        ),
        pytest.param(
            "- a\n", ["line 1: a manifest must be a mapping with apiVersion and kind"], id="a list"
        ),
        pytest.param(
            "apiVersion: lib.projectsveltos.io/v1beta1\nkind: EventReport\n",
            [
                (
                    "line 1: EventReports are written by Bellhop; "
                    "read them and apply EventSources instead"
                )
            ],
            id="a report",
        ),
    ],
)
def test_tells_every_mistake(text: str, told: list[str]) -> None:
    """The sentences are exact, in the order of the lines."""
    assert problems(text) == told


@pytest.mark.parametrize(
    ("metadata", "told"),
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
def test_holds_metadata_to_the_rules(metadata: dict[str, Any], told: str) -> None:
    """Labels and annotations are what an API server would take."""
    with pytest.raises(InvalidDocuments) as raised:
        of(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}},
            source="f",
        )

    assert str(raised.value) == told


def test_bounds_data_keys() -> None:
    """A data key is a file name of at most 253 characters."""
    assert problems(f"{CONFIG_MAP}data: {{{'k' * 254}: x}}\n") == [
        "line 4, data: a data key has at most 253 characters, this one has 254"
    ]
    assert problems(f"{CONFIG_MAP}data: {{..: x}}\n") == [
        "line 4, data: '..' is not a data key: it takes letters, digits, '-', '_' and '.'"
    ]


def test_tells_of_all_documents() -> None:
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
    """OneForEvent decides what exists; whoever changes it must delete first."""
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
    """A kind that Sveltos has is not called unknown; one of that name elsewhere is."""
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
