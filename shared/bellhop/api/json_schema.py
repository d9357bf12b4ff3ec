"""JSON Schemas of the kinds, for editors and for validators such as kubeconform.

They are those of the models, so a field has its schema as soon as it has its type. A schema accepts
whatever the models accept, except unknown fields without a value; it does not refuse all that they
refuse, such as a malformed name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from bellhop.api.manifest import SERVER_METADATA, ObjectMeta
from bellhop.core.base import Model

_DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest that every editor reads."""


def json_schema(model: type[Model], kinds: Sequence[str], api_version: str) -> dict[str, Any]:
    """Return the schema of manifests of some kinds, which are read as one model, in a version."""
    found = model.model_json_schema(
        ref_template="#/definitions/{model}", schema_generator=_Generator
    )
    definitions = found.pop("$defs", {})
    own = {
        "apiVersion": {"type": "string", "enum": [api_version]},
        "kind": {"type": "string", "enum": list(kinds)},
        "status": {},
    }
    found |= {"type": "object", "properties": found["properties"] | own}
    return {"$schema": _DIALECT, **found, "definitions": definitions}


class _Generator(GenerateJsonSchema):
    """Adds what validators read beside the types: empty fields, and former names of fields."""

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        """Return the schema of one model, without pydantic's titles and this code's docstrings."""
        found = super().model_schema(schema)
        found.pop("title", None)
        found.pop("description", None)
        required = found.get("required", ())
        fields = {
            name: field if name in required else _or_null(field)
            for name, field in found.get("properties", {}).items()
        }
        model = schema["cls"]
        if issubclass(model, Model):
            former = model.former_names.items()
            fields |= {name: fields[new] for name, new in former}
        if model is ObjectMeta:
            fields |= {name: {} for name in SERVER_METADATA}
        return _or_null({**found, "properties": fields})

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        """Return one schema rather than two alternatives, of which validators name neither."""
        return _or_null(self.generate_inner(schema["schema"]))

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave out titles: they would repeat the names."""
        del schema
        return False


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Let a value, and the entries of a mapping, be null; every definition says so itself."""
    found, types = dict(schema), schema.get("type", ())
    entries = schema.get("additionalProperties")
    if isinstance(entries, dict):
        found["additionalProperties"] = _or_null(entries)
    if "enum" in schema and None not in schema["enum"]:
        found["enum"] = [*schema["enum"], None]
    if "anyOf" in schema:
        found["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if types and "null" not in types:
        found["type"] = [*([types] if isinstance(types, str) else types), "null"]
    return found
