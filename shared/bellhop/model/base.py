"""What all models share: frozen, strict, camelCase outside, and nothing unknown let through."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

T = TypeVar("T")

# Strictness would refuse a list where a tuple is declared, and JSON has no tuples.
Many = Annotated[tuple[T, ...], Field(strict=False)]


class Model(BaseModel):
    """A part of a manifest; building its validator waits until the first is read."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        populate_by_name=True,
        alias_generator=to_camel,
        defer_build=True,
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, data: Any) -> Any:
        """Read `field:` with nothing behind it as if the field were left out."""
        if isinstance(data, dict) and None in data.values():
            return {key: value for key, value in data.items() if value is not None}
        return data


def mistake(sentence: str) -> PydanticCustomError:
    """Make the error that a validator raises; the sentence reaches the user as it is."""
    return PydanticCustomError("mistake", "{sentence}", {"sentence": sentence})
