"""The base of all models: frozen, strict, camelCase outside, and unknown fields refused.

The models' modules have no `from __future__ import annotations`: each annotation would be a text
that pydantic compiles while a cold function waits.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, ClassVar, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

T = TypeVar("T")

_PLUGINS = "pydantic.plugin._loader"

# Strictness would refuse a list where a tuple is declared, and JSON has no tuples.
Many = Annotated[tuple[T, ...], Field(strict=False)]


def camel(name: str) -> str:
    """Spell a field's name as manifests do: `policy_refs` is `policyRefs`."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


class Model(BaseModel):
    """A part of a manifest; building its validator waits until the first is read."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        populate_by_name=True,
        alias_generator=camel,
        defer_build=True,
        hide_input_in_errors=True,
    )

    former_names: ClassVar[Mapping[str, str]] = {}
    """Other names by which manifests may write a field, and its own."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[BaseModel], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Build, and let nobody look for plugins meanwhile.

        pydantic would search all that is installed for some: 20 ms of a cold stage, and for code
        that nobody asked for.
        """
        if _PLUGINS not in sys.modules:
            loader = sys.modules[_PLUGINS] = ModuleType(_PLUGINS)
            vars(loader)["get_plugins"] = tuple
        return handler(source)

    @classmethod
    def write(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values of fields as a manifest has them: in their order, without the usual ones.

        A value without a field of its name is passed over.
        """
        return {
            field.alias or camel(name): value
            for name, value in values.items()
            if (field := cls.model_fields.get(name))
            and value not in (None, "", [], {}, field.get_default(call_default_factory=True))
        }

    @model_validator(mode="before")
    @classmethod
    def _read_as_meant(cls, data: Any) -> Any:
        """Read `field:` with nothing behind it as if the field were left out, and former names."""
        if not isinstance(data, dict):
            return data
        if None in data.values():
            data = {key: value for key, value in data.items() if value is not None}
        return data if cls.former_names.keys().isdisjoint(data) else cls._rename(data)

    @classmethod
    def _rename(cls, data: dict[str, Any]) -> dict[str, Any]:
        for former, name in cls.former_names.items():
            if former in data and name in data:
                raise mistake(f"{former} and {name} are the same field; keep the latter")
        return {cls.former_names.get(key, key): value for key, value in data.items()}


class Later:
    """A model of what few manifests need, loaded when one first asks for it."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    @property
    def model(self) -> type[Model]:
        module = import_module(f"bellhop.api.{self._module}")
        return cast("type[Model]", getattr(module, self._name))

    def __get_pydantic_core_schema__(
        self, _source: Any, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def read(value: Any, info: ValidationInfo) -> Any:
            return self.model.model_validate(value, context=info.context)

        return core_schema.with_info_plain_validator_function(read)

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        self.model.model_rebuild()
        return handler(self.model.__pydantic_core_schema__)


def mistake(sentence: str, *place: str | int) -> PydanticCustomError:
    """Make the error that a validator raises; the sentence reaches the user as it is.

    `place` is the path from the validated value to the part of it that is wrong.
    """
    return PydanticCustomError("mistake", "{sentence}", {"sentence": sentence, "place": place})
