"""Patches do what kustomize does with them, but for differences that a case names."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from bellhop.errors import InvalidError
from bellhop.rendering.patches.patch import Manifest, Patch, patched, read_patches
from bellhop.state.content import Target
from tests.golden.patches.make import EXPECTED, Case, cases

CASES = {case["name"]: case for case in cases()}
KUSTOMIZED = json.loads(EXPECTED.read_text())
FIELDS = {"labelSelector": "labels", "annotationSelector": "annotations"}


def patches_of(case: Case) -> list[Patch]:
    found: list[Patch] = []
    for each in case["patches"]:
        given = each.get("target")
        target = None
        if given is not None:
            target = Target(**{FIELDS.get(name, name): text for name, text in given.items()})
        found += read_patches(each["patch"], target, source="patches[0]")
    return found


def named(objects: Any) -> dict[tuple[str, ...], Manifest]:
    """Return objects by their names: their order differs."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in objects
    }


@pytest.mark.parametrize("name", CASES)
def test_patches_do_what_kustomize_does(name: str) -> None:
    case = CASES[name]
    given = copy.deepcopy(case["objects"])
    if refusal := case.get("refusal"):
        with pytest.raises(InvalidError) as caught:
            patched(given, patches_of(case))
        assert refusal in str(caught.value)
        return

    made = patched(given, patches_of(case))

    assert given == case["objects"]
    if "ours" in case:
        found: Any = made[0]
        for step in case["ours"]["path"]:
            found = found[step]
        assert found == case["ours"]["value"]
    else:
        assert named(made) == named(KUSTOMIZED[name])


@pytest.mark.parametrize("name", [name for name in CASES if "refusal" in CASES[name]])
def test_what_is_refused_is_refused_by_kustomize_or_differs(name: str) -> None:
    assert KUSTOMIZED[name] is None or CASES[name]["differs"]


def test_each_case_is_written_down() -> None:
    assert list(KUSTOMIZED) == list(CASES)
