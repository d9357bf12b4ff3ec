"""What a kustomization reads, found without kustomize, and what is refused of it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from bellhop.adapters.kustomize.sources import LARGEST, collect, normalise
from bellhop.errors import InvalidError, MissingError, TooLargeError


def folder(plan: str, **more: str) -> Mapping[str, bytes]:
    """Return a source with a plan in the folder `app`, and some files."""
    files = {
        "app/kustomization.yaml": plan,
        "app/a.yaml": "a",
        "app/more/Kustomization": "resources: [b.yaml]",
        "app/more/b.yaml": "b",
        "base/kustomization.yml": "{}",
        "nothing/c.yaml": "c",
        **more,
    }
    return {path: text.encode() for path, text in files.items()}


def test_it_gets_what_it_reads_and_nothing_else() -> None:
    plan = "resources: [a.yaml, ./more/, ../base]\nconfigMapGenerator: [{name: x, envs: [a.yaml]}]"
    assert set(collect(folder(plan), "app")) == {
        "app/kustomization.yaml",
        "app/a.yaml",
        "app/more/Kustomization",
        "app/more/b.yaml",
        "base/kustomization.yml",
    }


def test_plans_come_as_they_were_read() -> None:
    """Two parsers may differ about YAML, and hardly about JSON."""
    plan = "namespace: &n web\nresources: [gone]\nresources: !!seq [a.yaml]\nnamePrefix: *n\n"
    found = collect(folder(plan), "app", ["../base"], "other")
    assert json.loads(found["app/kustomization.yaml"]) == {
        "namespace": "other",
        "resources": ["a.yaml"],
        "namePrefix": "web",
        "components": ["../base"],
    }


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ("resources: [gone.yaml]", "resources[0] 'gone.yaml' is not there; name a file"),
        ("resources: [example/org/repo]", "resources[0] 'example/org/repo' is not there"),
        ("resources: [/etc]", "resources[0] '/etc' leads out of the source"),
        ("resources: [../../tmp]", "resources[0] '../../tmp' leads out of the source"),
        ("components: [a.yaml, ../..]", "components[1] '../..' leads out of the source"),
        ("resources: [git@example.com:a/b]", "is remote"),
        ("resources: ['ssh://git@example.com/a']", "is remote"),
        ("resources: [github.com/org/repo]", "is remote"),
        ("resources: ['example.com/org/repo//path']", "is remote"),
        ("resources: ['org/repo?ref=main']", "is remote"),
        ("resources: ['HTTPS://example.com/a']", "resources[0] 'HTTPS://example.com/a' is remote"),
        ("resources: ['https://me:hunter2@example.com/a']", "'https://…@example.com/a' is remote"),
        ('resources: ["a\\nb"]', "resources[0] 'a\\nb' is not there"),
        ("resources: ['file:///etc/passwd']", "is remote"),
        ("resources: [a.yaml, '']", "resources[1] must be a string"),
        ("resources: [1]", "resources[0] must be a string"),
        ("resources: [!!binary aHR0cA==]", "has no meaning in a manifest"),
        ("crds: [more]", "crds[0] 'more' is a folder; name a file of the source"),
        ("configMapGenerator: [{files: ['k=a.yaml=a.yaml']}]", "files[0] 'a.yaml=a.yaml' is not"),
        ("configMapGenerator: [{files: ['k=/etc/passwd']}]", "configMapGenerator: files[0] '/etc"),
        ("secretGenerator: [{env: gone}]", "secretGenerator: env 'gone' is not there"),
        ("secretGenerator: [{envs: [gone]}]", "secretGenerator: envs[0] 'gone' is not there"),
        ("patches: [{path: gone}]", "patches: path 'gone' is not there"),
        ("openapi: {path: gone}", "openapi: path 'gone' is not there"),
        ("replacements: [{path: gone}]", "replacements: path 'gone' is not there"),
        ("patchesStrategicMerge: [gone]", "patchesStrategicMerge[0] 'gone' is not there"),
        ("resources: [../nothing]", "the folder 'nothing' has no kustomization.yaml; write one"),
        ("helmCharts: [{name: x}]", "'helmCharts' is not inflated; deploy a chart by"),
        ("helmChartInflationGenerator: [{a: b}]", "'helmChartInflationGenerator' is not inflated"),
        ("Resources: [a.yaml]", "'Resources' is not a field; write 'resources'"),
        ("configMapGenerator: [{ENVS: [a.yaml]}]", "'ENVS' is not a field; write 'envs'"),
        ("[]", "must hold one mapping, and holds something else"),
        ("", "must hold one mapping, and holds 0 documents"),
        ("a: 1\n---\nb: 2\n", "must hold one mapping, and holds 2 documents"),
        ("a: [", "app/kustomization.yaml, document 1, line 2: this is not YAML"),
        ("a: &a [*a]", "contains an alias of itself"),
        ("a: " + "[" * 200, "nests deeper than 100 levels"),
    ],
)
def test_what_is_refused(plan: str, sentence: str) -> None:
    with pytest.raises(InvalidError) as caught:
        collect(folder(plan), "app")
    assert sentence in str(caught.value)
    assert "app/kustomization.yaml" in str(caught.value) or "'nothing'" in sentence


RUN = (
    "apiVersion: example.com/v1\nkind: X\nmetadata: {name: x, annotations: "
    "{config.kubernetes.io/function: 'exec: {path: ./x}'}}\n"
)


@pytest.mark.parametrize(
    "plugin",
    [
        RUN,
        RUN.replace("example.com/v1", "builtin"),
        RUN.replace("exec: {path: ./x}", "container: {image: x}").replace("kubernetes", "k8s"),
        "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\n",
        "apiVersion: builtin\nkind: PrefixTransformer\n",
        "kind: List\napiVersion: v1\nitems: []\n",
        "just\ntext",
    ],
)
@pytest.mark.parametrize("field", ["generators", "transformers", "validators"])
def test_no_program_and_no_function_is_run(field: str, plugin: str) -> None:
    for source in (
        folder(json.dumps({field: [plugin]})),
        folder(f"{field}: [x.yaml]", **{"app/x.yaml": plugin}),
    ):
        with pytest.raises(InvalidError, match="is not a builtin plugin that is run; programs"):
            collect(source, "app")


@pytest.mark.parametrize(
    ("plugin", "sentence"),
    [
        ("kind: ConfigMapGenerator\nfiles: [gone]", "files[0] 'gone' is not there"),
        ("kind: PatchTransformer\npath: /etc/passwd", "path '/etc/passwd' leads out"),
        ("kind: PatchStrategicMergeTransformer\npaths: [gone]", "paths[0] 'gone' is not there"),
        ("kind: ReplacementTransformer\nreplacements: [{path: gone}]", "path 'gone' is not there"),
        ("kind: PatchTransformer\nPath: gone", "'Path' is not a field"),
    ],
)
def test_a_plugin_reads_no_more_than_a_kustomization(plugin: str, sentence: str) -> None:
    text = f"apiVersion: builtin\nmetadata: {{name: x}}\n{plugin}\n"
    source = folder("transformers: [x.yaml]", **{"app/x.yaml": text})
    with pytest.raises(InvalidError) as caught:
        collect(source, "app")
    assert f"app/x.yaml: {sentence}" in str(caught.value) or sentence in str(caught.value)


def test_a_folder_of_plugins_is_refused() -> None:
    """What is in it could be changed by patches before it is run."""
    with pytest.raises(InvalidError, match=r"transformers\[0\] 'more' is a folder"):
        collect(folder("transformers: [more]"), "app")


def test_two_kustomizations_in_a_folder_are_refused() -> None:
    source = folder("{}", **{"app/Kustomization": "{}"})
    with pytest.raises(InvalidError, match=r"there are both .* keep one of them"):
        collect(source, "app")


@pytest.mark.parametrize(
    ("place", "sentence"),
    [("gone", "in the source it is not there"), ("app/a.yaml", "in the source it is a file")],
)
def test_a_path_that_is_no_folder_is_missing(place: str, sentence: str) -> None:
    with pytest.raises(MissingError, match=sentence):
        collect(folder("{}"), place)


@pytest.mark.parametrize("components", [["../gone"], ["https://example.com/a"], ["/etc"]])
def test_components_are_checked_like_written_ones(components: list[str]) -> None:
    with pytest.raises(InvalidError, match=r"components\[0\]"):
        collect(folder("{}"), "app", components)


def test_components_of_a_wrong_type_are_left_to_kustomize() -> None:
    found = collect(folder("components: none"), "app", ["../base"])
    assert json.loads(found["app/kustomization.yaml"]) == {"components": "none"}


@pytest.mark.parametrize("plan", ["#" * LARGEST, f"a: &a {'x' * 1000}\nb: [{'*a, ' * 900}]"])
def test_large_plans_are_refused(plan: str) -> None:
    """Of many that aliases enlarge, too, what is written counts."""
    many = {f"{n}/kustomization.yaml": plan for n in range(12)}
    source = folder(f"resources: {[f'../{n}' for n in range(12)]}", **many)
    with pytest.raises(TooLargeError, match="more than the 4,194,304 bytes that are read"):
        collect(source, "app")


@pytest.mark.parametrize(
    ("path", "expected"), [("", ""), (".", ""), ("./a//b/", "a/b"), ("a/../b", "b"), ("a/..", "")]
)
def test_paths_are_from_the_top(path: str, expected: str) -> None:
    assert normalise(path) == expected


@pytest.mark.parametrize("path", ["/", "/a", "..", "../a", "a/../../b", "//a"])
def test_no_path_leads_out(path: str) -> None:
    with pytest.raises(InvalidError, match="leads out of the source"):
        normalise(path)
