"""Kustomizations built by the real kubectl: as it does by itself, of nothing but their files."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.adapters.kustomize.kustomizations import KubectlKustomizations
from bellhop.adapters.programs import box
from bellhop.adapters.programs.box import Limits, cut_off
from bellhop.errors import (
    InvalidError,
    MissingError,
    TemporaryError,
    TooLargeError,
)
from tests.unit.adapters.kustomize.conftest import Uncalled

WEB = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "nginx:1.0", env: [{name: A, value: "1"}]}]
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {a: '1'}\n"
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
PREFIX = "{apiVersion: builtin, kind: PrefixTransformer, metadata: {name: %s}, prefix: %s-, \
fieldSpecs: [{path: metadata/name}]}"

BASE = {
    "base/kustomization.yaml": "resources: [web.yaml, more/]\nlabels: [{pairs: {team: a}}]\n",
    "base/web.yaml": WEB,
    "base/more/kustomization.yml": "resources: [config.yaml]\nnamePrefix: more-\n",
    "base/more/config.yaml": CONFIG,
    "unused.yaml": "not: [yaml",
}
GENERATED = """configMapGenerator:
- {name: made, files: [page.html, other=data/raw.bin], envs: [one.env], literals: [url=https://a]}
secretGenerator:
- {name: kept, env: one.env, type: Opaque}
generatorOptions: {labels: {made: "yes"}}
"""
PATCHED = """resources: [../base]
namespace: prod
images: [{name: nginx, newTag: "2.0"}]
replicas: [{name: web, count: 3}]
patches:
- path: patch.yaml
- target: {kind: ConfigMap}
  patch: |
    - {op: add, path: /data/b, value: "2"}
patchesJson6902:
- {target: {group: apps, version: v1, kind: Deployment, name: web}, path: six.json}
patchesStrategicMerge:
- strategic.yaml
- |
  {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {inline: "1"}}}
replacements:
- path: replacement.yaml
"""
CHANGED = f"""resources: [web.yaml]
components: [../component]
transformers:
- prefix.yaml
- "{PREFIX % ("inline", "inline")}"
generators:
- |
  apiVersion: builtin
  kind: ConfigMapGenerator
  metadata: {{name: generated}}
  files: [data.txt]
configurations: [configuration.yaml]
crds: [crd.json]
openapi: {{path: schema.json}}
"""

UNUSUAL = (
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: config},"
    ' data: {b: "\\U0001f600 \U0001f600 \u00fc \\u2028\\x85\\t", c: "1.10"}}'
)
REPLACEMENT = """source: {kind: ConfigMap, name: more-config, fieldPath: data.a}
targets:
- {select: {kind: Deployment}, fieldPaths: [spec.template.spec.containers.0.env.0.value]}
"""
LOADING = "{{apiVersion: builtin, kind: PatchTransformer, metadata: {{name: x}}, path: '{url}'}}"

SAMPLES: dict[str, tuple[str, Mapping[str, str | bytes]]] = {
    "plain": ("base", BASE),
    "topmost folder": ("", {"Kustomization": "resources: [web.yaml]\n", "web.yaml": WEB}),
    "overlay": (
        "prod",
        {
            **BASE,
            "prod/kustomization.yaml": PATCHED,
            "prod/patch.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web},"
            " spec: {minReadySeconds: 5}}",
            "prod/strategic.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web},"
            " spec: {paused: true}}",
            "prod/six.json": '[{"op": "add", "path": "/metadata/annotations", "value": {}}]',
            "prod/replacement.yaml": REPLACEMENT,
        },
    ),
    "generators": (
        "",
        {
            "kustomization.yaml": GENERATED,
            "page.html": "<a>",
            "data/raw.bin": b"\0\xff\x80",
            "one.env": "A=1\n",
        },
    ),
    "components and plugins": (
        "app",
        {
            "app/kustomization.yaml": CHANGED,
            "app/web.yaml": WEB,
            "app/data.txt": "data",
            "app/prefix.yaml": PREFIX % ("file", "file"),
            "app/configuration.yaml": "namePrefix: [{path: metadata/name}]\n",
            "app/crd.json": '{"v1alpha1.Bee": {"Schema": {"properties": {}}, "Dependencies": []}}',
            "app/schema.json": '{"definitions": {}}',
            "component/kustomization.yaml": COMPONENT + "resources: [config.yaml]\n",
            "component/config.yaml": CONFIG,
        },
    ),
    "repeated, aliased and of several types": (
        "",
        {
            "kustomization.yaml": "resources: [none.yaml]\nresources: [web.yaml, config.yaml]\n"
            f"patches: [{{patch: '{UNUSUAL}'}}]\n"
            "commonLabels: &a {'on': 'yes', v: '1.10'}\ncommonAnnotations: *a\nnamespace: ü\n"
            "buildMetadata: [originAnnotations]\n",
            "web.yaml": WEB,
            "config.yaml": CONFIG,
        },
    ),
}


def folder_of(files: Mapping[str, str | bytes]) -> dict[str, bytes]:
    return {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}


def plain(kubectl: Path, root: Path, path: str, files: Mapping[str, str | bytes]) -> str:
    """Build a folder by kubectl only."""
    for name, content in folder_of(files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return subprocess.check_output([kubectl, "kustomize", root / path], text=True)


def objects(text: str) -> dict[str, Any]:
    found = list(yaml.safe_load_all(text))
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


@pytest.fixture
def build(kubectl: Path) -> Any:
    """Build text files by kubectl."""

    def building(files: Mapping[str, str | bytes], path: str = "", **how: Any) -> str:
        return KubectlKustomizations(kubectl).build(folder_of(files), path, **how)

    return building


@pytest.mark.parametrize("sample", SAMPLES)
def test_it_builds_as_kubectl_by_itself(
    build: Any, kubectl: Path, tmp_path: Path, sample: str
) -> None:
    path, files = SAMPLES[sample]
    expected = plain(kubectl, tmp_path, path, files)
    assert expected
    assert build(files, path) == expected


def test_a_namespace_counts_before_the_one_that_is_written(build: Any) -> None:
    path, files = SAMPLES["overlay"]
    found = objects(build(files, path, namespace="other"))
    assert {each["metadata"]["namespace"] for each in found.values()} == {"other"}


def test_components_are_added_after_those_that_are_written(
    build: Any, kubectl: Path, tmp_path: Path
) -> None:
    """They are the same as if somebody had written them there."""
    path, files = SAMPLES["components and plugins"]
    more = {
        "app/more/kustomization.yaml": COMPONENT + "namePrefix: more-\n",
        "last/kustomization.yaml": COMPONENT + "nameSuffix: -last\n",
    }
    written = CHANGED.replace("[../component]", "[../component, more, ../last]")
    expected = plain(kubectl, tmp_path, path, {**files, **more, "app/kustomization.yaml": written})

    made = build({**files, **more}, path, components=["more", "../last"])
    assert made == expected
    assert "name: file-inline-more-web-last" in made


def test_components_may_be_the_only_ones(build: Any) -> None:
    files = {
        "kustomization.yaml": "resources: [web.yaml]\n",
        "web.yaml": WEB,
        "c/kustomization.yaml": COMPONENT + "namePrefix: c-\n",
    }
    assert list(objects(build(files, "./", components=["c"]))) == ["Deployment/c-web"]


def test_much_output_comes_whole(build: Any) -> None:
    large = CONFIG.replace("1", "x" * 20_000)
    many = "---\n".join(large.replace("config", f"config-{n}") for n in range(100))
    found = build({"kustomization.yaml": "resources: [many.yaml]\n", "many.yaml": many})
    assert found.count("kind: ConfigMap") == 100
    assert len(found) > 2_000_000


def test_more_output_than_is_taken_is_refused(kubectl: Path) -> None:
    small = KubectlKustomizations(kubectl, Limits(output=100))
    with pytest.raises(TooLargeError, match=r"cannot build the kustomization '\.': it wrote more"):
        small.build(folder_of({"kustomization.yaml": "resources: [a]\n", "a": WEB}))


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ("resources: [web.yaml, a]\n", "expected kind != 'Component'"),
        ("unknown: 1\nresources: [web.yaml]\n", 'unknown field "unknown"'),
        ("resources: web.yaml\n", "cannot unmarshal string"),
        ("{}\n", "kustomization.yaml is empty"),
        ("resources: [.]\n", "cycle detected: candidate root 'a' contains visited root 'a'"),
        ("resources: [../b]\n", "cycle detected"),
        ("resources: [broken.yaml]\n", "broken.yaml"),
        ("configMapGenerator: [{name: x, files: [../web.yaml]}]\n", "is not in or below 'a'"),
        ("patches: [{path: web.yaml, target: {kind: '('}}]\n", "error parsing regexp"),
    ],
)
def test_kustomize_says_what_is_wrong_in_one_line(build: Any, plan: str, sentence: str) -> None:
    """Its words come without the folder that nobody else knows."""
    files = {
        "a/kustomization.yaml": plan,
        "b/kustomization.yaml": "resources: [../a]\n",
        "a/web.yaml": WEB,
        "web.yaml": WEB,
        "a/config.yaml": CONFIG,
        "a/a/kustomization.yaml": COMPONENT + "namePrefix: a-\n",
        "a/broken.yaml": "a: [",
    }
    with pytest.raises(InvalidError) as caught:
        build(files, "a")
    said = str(caught.value)
    assert said.startswith("cannot build the kustomization 'a': ")
    assert sentence in said
    assert "\n" not in said
    assert "bellhop-kustomize" not in said


def test_a_chain_of_hundreds_of_folders_is_built(build: Any) -> None:
    chain = {f"{n}/kustomization.yaml": f"resources: [../{n + 1}]\n" for n in range(300)}
    files = {**chain, "300/kustomization.yaml": "resources: [a]\n", "300/a": CONFIG}
    assert list(objects(build(files, "0"))) == ["ConfigMap/config"]


REMOTE = (
    "resources: [{url}]",
    "bases: [{url}]",
    "components: [{url}]",
    "crds: [{url}]",
    "configurations: [{url}]",
    "openapi: {{path: {url}}}",
    "configMapGenerator: [{{name: x, files: [{url}]}}]",
    "configMapGenerator: [{{name: x, files: ['a={url}']}}]",
    "configMapGenerator: [{{name: x, envs: [{url}]}}]",
    "configMapGenerator: [{{name: x, env: {url}}}]",
    "secretGenerator: [{{name: x, files: [{url}]}}]",
    "patches: [{{path: {url}}}]",
    "patchesJson6902: [{{path: {url}, target: {{kind: ConfigMap, name: a}}}}]",
    "patchesStrategicMerge: [{url}]",
    "replacements: [{{path: {url}}}]",
    "generators: [{url}]",
    "transformers: [{url}]",
    "validators: [{url}]",
    f'transformers: ["{LOADING}"]',
    "Resources: [{url}]",
    "resources: [a]\nresource\u017f: [{url}]",
    "configMapGenerator: [{{name: x, Files: [{url}]}}]",
)


@pytest.mark.parametrize("plan", REMOTE)
def test_nothing_remote_is_fetched(build: Any, uncalled: Uncalled, plan: str) -> None:
    """Each field that kustomize fetches is refused before it runs, in whatever case."""
    files = {"kustomization.yaml": plan.format(url=f"{uncalled.url}/a"), "a": CONFIG}
    with pytest.raises(
        InvalidError, match=r"is remote, and nothing is fetched|is not a field; write"
    ):
        build(files)
    assert not uncalled.was_called()


@pytest.mark.skipif(not cut_off(), reason="the kernel lets nobody take the network away")
@pytest.mark.parametrize("plan", REMOTE)
def test_nothing_remote_could_be_fetched(
    kubectl: Path, tmp_path: Path, uncalled: Uncalled, plan: str
) -> None:
    """Had the check missed it, kustomize would find no network."""
    (tmp_path / "kustomization.yaml").write_text(plan.format(url=f"{uncalled.url}/a"))
    (tmp_path / "a").write_text(CONFIG)
    ended = KubectlKustomizations().run(kubectl, tmp_path, "try")
    assert ended.code
    assert not uncalled.was_called()


def test_the_server_notices_who_calls(kubectl: Path, tmp_path: Path, uncalled: Uncalled) -> None:
    """The two tests above would fail: without a box kustomize does call it."""
    (tmp_path / "kustomization.yaml").write_text(f"resources: [{uncalled.url}/a]\n")
    calling = subprocess.Popen([kubectl, "kustomize", tmp_path], stderr=subprocess.DEVNULL)
    try:
        uncalled.wait()
        assert uncalled.was_called()
    finally:
        calling.kill()
        calling.wait()


def test_git_is_not_found(kubectl: Path, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: ['file:///a.git//b?ref=c']\n")
    ended = KubectlKustomizations().run(kubectl, tmp_path, "try")
    assert "no 'git' program on path" in ended.errors


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/self/environ", "../../etc/passwd"])
def test_no_file_of_the_machine_is_read(
    build: Any, kubectl: Path, tmp_path: Path, path: str
) -> None:
    """Neither is it asked for, nor would kustomize read it."""
    plan = f"configMapGenerator: [{{name: x, files: [{path}]}}]\n"
    with pytest.raises(InvalidError, match=f"files.0. '{path}' leads out of the source"):
        build({"kustomization.yaml": plan})

    (tmp_path / "kustomization.yaml").write_text(plan)
    ended = KubectlKustomizations().run(kubectl, tmp_path, "try")
    assert "is not in or below" in ended.errors or "no such file" in ended.errors
    assert not ended.output


def test_no_link_is_followed(kubectl: Path, tmp_path: Path) -> None:
    """A source has none; kustomize would refuse one, too."""
    (tmp_path / "kustomization.yaml").write_text("configMapGenerator: [{name: x, files: [l]}]\n")
    (tmp_path / "l").symlink_to("/etc/passwd")
    ended = KubectlKustomizations().run(kubectl, tmp_path, "try")
    assert "is not in or below" in ended.errors


def standing_in(folder: Path, script: str) -> Path:
    """Write a program that stands in for a kubectl of which something goes wrong."""
    made = folder / "kubectl"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)
    return made


def test_who_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "GRACE_SECONDS", 0.2)
    slow = KubectlKustomizations(standing_in(tmp_path, "exec /bin/sleep 60"), Limits(seconds=0.3))
    with pytest.raises(box.OvertimeError, match=r"cannot build the kustomization 'a': it took"):
        slow.build(folder_of({"a/kustomization.yaml": "resources: [b]\n", "a/b": CONFIG}), "a")


def test_who_gets_no_namespace_is_tried_again(tmp_path: Path) -> None:
    said = "echo 'unshare: unshare failed: No space left on device' >&2; exit 1"
    with pytest.raises(TemporaryError, match="no namespace of its own now"):
        KubectlKustomizations(standing_in(tmp_path, said)).build(
            folder_of({"kustomization.yaml": "resources: [b]\n", "b": CONFIG})
        )


def test_who_takes_too_much_memory_is_refused(kubectl: Path) -> None:
    tight = KubectlKustomizations(kubectl, Limits(memory=256 << 20))
    with pytest.raises(TooLargeError, match="it takes more memory than it may"):
        tight.build(folder_of({"kustomization.yaml": "resources: [b]\n", "b": CONFIG}))


def test_nothing_is_left_behind(
    kubectl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = folder_of({"kustomization.yaml": "resources: [b]\n", "b": CONFIG})
    KubectlKustomizations(kubectl).build(files)
    with pytest.raises(InvalidError):
        KubectlKustomizations(kubectl).build({**files, "b": b"a: ["})
    assert list(tmp_path.iterdir()) == []


def test_several_are_built_at_once(build: Any) -> None:
    made: dict[str, str] = {}

    def building(prefix: str) -> None:
        plan = f"resources: [web.yaml]\nnamePrefix: {prefix}-\n"
        made[prefix] = build({"kustomization.yaml": plan, "web.yaml": WEB})

    threads = [threading.Thread(target=building, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"name: {letter}-web\n" in made[letter] for letter in "abcd")


def test_without_the_program_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "PATH", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(MissingError, match="there is no program 'kubectl'; install"):
        KubectlKustomizations().build(folder_of({"kustomization.yaml": "resources: []\n"}))
