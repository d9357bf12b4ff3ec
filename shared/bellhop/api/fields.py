"""The fields of a model as manifests spell them: for errors, for refusals, for the reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bellhop.core import suggestion
from bellhop.core.base import Later
from bellhop.documents.document import Path


def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Give the fields of a model by the names that manifests use."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def model_in(annotation: Any) -> type[BaseModel] | None:
    """Find the model inside an annotation such as `tuple[PolicyRefSpec, ...] | None`."""
    if isinstance(annotation, Later):
        return annotation.model
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_in(part))), None)


def is_list(annotation: Any) -> bool:
    """Return whether a field takes a list."""
    return get_origin(annotation) is tuple or any(is_list(part) for part in get_args(annotation))


def choices_of(annotation: Any) -> tuple[str, ...]:
    """List the words of an enumeration inside an annotation."""
    if get_origin(annotation) is Literal:
        return tuple(get_args(annotation))
    return next((found for part in get_args(annotation) if (found := choices_of(part))), ())


def field_at(model: type[BaseModel], path: Path) -> FieldInfo | None:
    """Find the field that a path leads to; None for what is no field of a model."""
    info: FieldInfo | None = None
    current: type[BaseModel] | None = model
    for step in path:
        if isinstance(step, int):
            continue
        if current is None:
            return None
        info = fields_of(current).get(step)
        if info is None:
            return None
        current = model_in(info.annotation)
    return info


def paths_of(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """List the path of every field, with `[]` for the entries of a list."""
    for alias, info in fields_of(model).items():
        path = f"{prefix}{alias}"
        yield path
        inner = model_in(info.annotation)
        if inner is not None:
            yield from paths_of(inner, f"{path}[]." if is_list(info.annotation) else f"{path}.")


def closest(word: str, known: Iterable[str]) -> str:
    """Find the known word that was probably meant; empty when none is close."""
    by_lower = {name.lower(): name for name in known}
    found = suggestion.closest(word.lower(), by_lower)
    return by_lower[found] if found else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggest the known word that was probably meant, as the end of a sentence."""
    found = closest(word, known)
    return f"; did you mean '{found}'?" if found else ""
