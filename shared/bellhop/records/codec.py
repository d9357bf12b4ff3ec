"""Records as JSON and back, derived from their dataclasses: a field is declared in one place.

A field that is read and not known is ignored, one that is not there takes its default: versions
of Bellhop that are a field apart read each other's records.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from types import ModuleType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from bellhop.errors import TemporaryError
from bellhop.model.gvk import GVK, Identity, ObjectKey

T = TypeVar("T")


class _Coder(NamedTuple):
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def encode(record: Any, *, omit: Collection[str] = ()) -> dict[str, Any]:
    """Write a dataclass as JSON, without the fields that its key tells."""
    kind: Any = type(record)
    written = dict(zip(_fields(kind), _values(kind)(record), strict=True))
    for name, coder in _coded(kind).items():
        if name not in omit:
            written[name] = coder.encode(written[name])
    for name in omit:
        written.pop(name, None)
    return written


def decode(kind: type[T], value: Mapping[str, Any], **known: Any) -> T:
    """Read what `encode` wrote; `known` are the fields that the key told.

    Raises:
        TemporaryError: a field without a default is missing, or is of another type: the version
            that wrote it can read it.
    """
    try:
        of = cast("Hashable", kind)
        names = _fields(of)
        read = {name: each for name, each in value.items() if name in names}
        for name, coder in _coded(of).items():
            if name in read and name not in known:
                read[name] = coder.decode(read[name])
        return kind(**{**read, **known})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TemporaryError(
            f"cannot read a stored {kind.__name__}: it is of another version of Bellhop;"
            " let the version that wrote it read it"
        ) from error


def learn(room: ModuleType) -> None:
    """Find out how a module's records are written, for who has time before the first of them."""
    for kind in vars(room).values():
        if isinstance(kind, type) and is_dataclass(kind):
            _coded(kind)
            _values(kind)


@cache
def _fields(kind: Any) -> dict[str, _Coder]:
    # The hints are text until they are asked for; that costs, so each type is asked once.
    hints = get_type_hints(kind)
    return {field.name: _coder(hints[field.name]) for field in fields(kind)}


@cache
def _coded(kind: Any) -> dict[str, _Coder]:
    """Return the fields that JSON has in another form: of most records they are few."""
    return {name: coder for name, coder in _fields(kind).items() if coder is not _AS_IT_IS}


@cache
def _values(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Return what reads all fields of a record at once."""
    names = tuple(_fields(kind))
    if len(names) > 1:
        return cast("Callable[[Any], tuple[Any, ...]]", attrgetter(*names))
    return lambda record: tuple(getattr(record, name) for name in names)


@cache
def _coder(hint: Any) -> _Coder:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _optional(arguments)
    if origin is tuple:
        return _tuple(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(*arguments)
    if origin is Literal or hint in (str, int, bool, Any):
        return _AS_IT_IS
    if hint in _ATOMS:
        return _ATOMS[hint]
    if is_dataclass(hint):
        kind = cast("type", hint)
        return _Coder(encode, lambda value: decode(kind, value))
    raise TypeError(f"no record can have a field of the type {hint}")


def _optional(arguments: tuple[Any, ...]) -> _Coder:
    (inner,) = [_coder(each) for each in arguments if each is not type(None)]
    return _Coder(
        lambda value: None if value is None else inner.encode(value),
        lambda value: None if value is None else inner.decode(value),
    )


def _tuple(arguments: tuple[Any, ...]) -> _Coder:
    if arguments[-1] is Ellipsis:
        each = _coder(arguments[0])
        return _Coder(
            lambda value: [each.encode(one) for one in value],
            lambda value: tuple(each.decode(one) for one in value),
        )
    coders = [_coder(argument) for argument in arguments]
    return _Coder(
        lambda value: [c.encode(one) for c, one in zip(coders, value, strict=True)],
        lambda value: tuple(c.decode(one) for c, one in zip(coders, value, strict=True)),
    )


def _mapping(of_keys: Any, of_values: Any) -> _Coder:
    key, value = _coder(of_keys), _coder(of_values)
    if key is value is _AS_IT_IS:
        return _Coder(dict, dict)
    return _Coder(
        lambda rows: {key.encode(k): value.encode(v) for k, v in rows.items()},
        lambda rows: {key.decode(k): value.decode(v) for k, v in rows.items()},
    )


def _same(value: Any) -> Any:
    return value


_AS_IT_IS = _Coder(_same, _same)
_ATOMS = {
    float: _Coder(float, float),
    datetime: _Coder(datetime.isoformat, datetime.fromisoformat),
    timedelta: _Coder(timedelta.total_seconds, lambda seconds: timedelta(seconds=seconds)),
    GVK: _Coder(list, lambda row: GVK(*row)),
    ObjectKey: _Coder(str, ObjectKey.parse),
    Identity: _Coder(str, Identity.parse),
}
