"""Bad patches, hostile ones and those that say nothing; what good ones do, kustomize is asked."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from bellhop.errors import InvalidError, TooLargeError
from bellhop.rendering.patches.patch import Manifest, patched, read_patches
from bellhop.state.content import Target

ALL = Target()


def config_map(**data: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "patches[0]: the patch is empty"),
        ("---\n---\n", "patches[0]: the patch is empty"),
        ("text", "a patch is a mapping to merge, or a list of operations"),
        ("- text", "operation 0 must be a map"),
        ("- {op: add, path: /a}", "operation 0 (add) has no value"),
        ("- {op: add, value: 1}", "operation 0 (add) has no path"),
        ("- {op: move, path: /a}", "operation 0 (move) has no from"),
        ("- {op: add, path: a, value: 1}", "operation 0 has the path 'a'; begin it with /"),
        ("- {path: /a, value: 1}", "operation 0 has the op None"),
        ("- {op: [add], path: /a}", "operation 0 has the op ['add']"),
        ("a: [", "patches[0]"),
    ],
)
def test_what_is_no_patch_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InvalidError) as caught:
        read_patches(text, ALL, source="patches[0]")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "{data: {}}",
        "{kind: ConfigMap}",
        "{kind: ConfigMap, metadata: {namespace: a}}",
        "{kind: ConfigMap, metadata: text}",
    ],
)
def test_a_patch_without_a_target_names_its_object(text: str) -> None:
    with pytest.raises(InvalidError, match=r"must say the kind and metadata\.name"):
        read_patches(text, None, source="patches[0]")
    assert read_patches(text, ALL, source="patches[0]")


def test_the_sentence_names_the_object_the_path_and_the_patch() -> None:
    (patch,) = read_patches("{data: {a: {b: c}}}", ALL, source="patches[3]")
    with pytest.raises(InvalidError) as caught:
        patched([config_map(a="text")], [patch])
    assert str(caught.value) == (
        "patches[3]: cannot patch ConfigMap 'a': data.a is a single value in the object, and a"
        " mapping in the patch"
    )


@pytest.mark.parametrize(
    "text",
    [
        "- {op: remove, path: /nothing/at/all}",
        "- {op: remove, path: /data/9}",
        "- {op: remove, path: /data/a/b}",
        "{data: {nothing: null}, nothing: {$patch: delete}}",
        "{}",
    ],
)
def test_deleting_what_is_not_there_has_no_effect(text: str) -> None:
    assert patched([config_map(a="1")], read_patches(text, ALL, source="")) == (config_map(a="1"),)


@pytest.mark.parametrize(
    "text",
    [
        "- {op: replace, path: /apiVersion, value: v2}",
        "- {op: replace, path: /metadata/name, value: b}",
        "- {op: add, path: /metadata/namespace, value: b}",
        "- {op: remove, path: /metadata}",
        "- {op: remove, path: /kind}",
        "- {op: replace, path: /metadata, value: text}",
        "{kind: Secret, metadata: {name: b, namespace: b}}",
        "{apiVersion: null, kind: null, metadata: null}",
        "{metadata: {$patch: replace}}",
    ],
)
def test_no_patch_makes_another_object(text: str) -> None:
    """A tenant's patch would reach what its profile may not, and an owned object would be lost."""
    assert patched([config_map(a="1")], read_patches(text, ALL, source="")) == (config_map(a="1"),)


def test_copies_do_not_grow_without_end() -> None:
    """Each copy doubles the object: forty of them would be a trillion values."""
    text = "\n".join(f"- {{op: copy, from: /data, path: /data/c{number}}}" for number in range(40))
    with pytest.raises(TooLargeError, match="copies too much"):
        patched([config_map(a="1")], read_patches(text, ALL, source=""))


def test_a_patch_of_many_values_is_refused() -> None:
    text = "{data: {" + ", ".join(f"k{number}: a" for number in range(30_000)) + "}}"
    with pytest.raises(InvalidError):
        read_patches(text, ALL, source="")


def test_objects_that_nothing_fits_are_the_same_ones() -> None:
    one, other = config_map(a="1"), config_map(b="2")
    patches = read_patches("{data: {a: '2'}}", Target(kind="Secret"), source="")

    made = patched([one, other], patches)
    assert made[0] is one
    assert made[1] is other


def test_an_object_that_is_deleted_is_not_patched_on() -> None:
    patches = [
        *read_patches("{$patch: delete}", ALL, source=""),
        *read_patches("- {op: test, path: /data/a, value: 'no'}", ALL, source=""),
    ]
    assert patched([config_map(a="1")], patches) == ()


PATHS = [
    "/data/a/b",
    "/data/a/0",
    "/data/a/-1",
    "/l/\u00b2",
    "/l/-9",
    "/l/99999999999",
    "/l/x/y",
    "/",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("op", ["add", "replace", "remove", "test", "move", "copy"])
def test_no_path_is_an_error_of_ours(op: str, path: str) -> None:
    """A place in a text, in another script's digits or far away: refused, or without effect."""
    given = {**config_map(a="text"), "l": [1, 2]}
    text = json.dumps([{"op": op, "path": path, "from": path, "value": 1}])
    with suppress(InvalidError):
        patched([given], read_patches(text, ALL, source=""))


def test_finalizers_that_are_no_texts_are_refused() -> None:
    patches = read_patches("{metadata: {finalizers: [{a: b}]}}", ALL, source="")
    with pytest.raises(InvalidError, match=r"metadata\.finalizers must have only strings"):
        patched([config_map()], patches)


def test_lists_that_are_too_long_to_be_merged_are_refused() -> None:
    """Each entry is looked for among the others: two long lists would take minutes."""
    env = [{"name": f"n{number}"} for number in range(5_000)]
    spec = {"containers": [{"name": "a", "env": env}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    patches = read_patches(json.dumps({"spec": spec}), ALL, source="")
    with pytest.raises(TooLargeError, match="env is too long to be merged"):
        patched([pod], patches)
