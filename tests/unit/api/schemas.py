"""The JSON Schemas of all kinds, for tests that compare them with the models."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft7Validator

from bellhop.api.json_schema import json_schema
from bellhop.api.kinds import KINDS
from bellhop.api.sveltos_cluster import KIND, VERSIONS, SveltosCluster
from bellhop.core.base import Model

MODELS: dict[str, tuple[type[Model], tuple[str, ...]]] = {
    **KINDS,
    KIND: (SveltosCluster, VERSIONS),
}


def mistakes_of(manifest: dict[str, Any]) -> list[str]:
    """Return what the schema of a manifest's kind says against it."""
    validator = _validator(manifest["kind"], manifest["apiVersion"])
    return [f"{each.json_path}: {each.message}" for each in validator.iter_errors(manifest)]


@cache
def _validator(kind: str, api_version: str) -> Draft7Validator:
    schema = json_schema(MODELS[kind][0], [kind], api_version)
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)
