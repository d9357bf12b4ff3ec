"""Make frozen dataclasses that cost little before they are used.

`dataclasses` writes six methods for each frozen class as text, and compiles them while its module
is imported: 0.6 ms a class, half of a cold start for a stage that loads a hundred of them and makes
objects of few. Here the methods that can be the same are closures, and `__init__`, which cannot, is
compiled when a class makes its first object. For `fields`, `replace`, `asdict`, patterns and type
checkers they are dataclasses like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from types import FunctionType, MemberDescriptorType
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform, overload

T = TypeVar("T")

_late: list[Any] = []
"""Classes of which nobody has made an object yet, or has only just."""


def compile_all() -> None:
    """Compile what is late, for who has time before the first event and none afterwards."""
    while _late:
        kind = _late.pop()
        kind.__init__ = _compiled(kind, fields(kind))


@overload
def frozen(kind: type[T], /) -> type[T]: ...
@overload
def frozen(*, slots: bool = ..., kw_only: bool = ...) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[T] | None = None, /, *, slots: bool = True, kw_only: bool = False) -> Any:
    """Make a class a dataclass whose objects stay as they were made.

    They are equal, and hash, by their fields. Without `slots` they can keep what a
    `cached_property` worked out, and call `super()`. No field is left out of `__init__`, and
    nothing runs after it.
    """

    def freeze(kind: type[T]) -> type[T]:
        own = kind.__dict__
        made = dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(kind)
        for name, method in _methods(made).items():
            if own.get(name) is None:  # Python sets __hash__ to None beside an __eq__.
                setattr(made, name, method)
        if own.get("__init__") is None:
            _late.append(made)
        return made

    return freeze if kind is None else freeze(kind)


def _methods(kind: Any) -> Mapping[str, Callable[..., Any]]:
    every = fields(kind)
    compared = _values(each.name for each in every if each.compare)
    hashed = _values(each.name for each in every if _is_hashed(each))

    def init(self: Any, *given: Any, **named: Any) -> None:
        # Two threads may both compile it, to the same end.
        kind.__init__ = _compiled(kind, every)
        kind.__init__(self, *given, **named)

    def equal(self: Any, other: object) -> bool:
        return compared(self) == compared(other) if type(other) is type(self) else NotImplemented

    def digest(self: Any) -> int:
        return hash(hashed(self))

    def show(self: Any) -> str:
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in every if each.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    return {
        "__init__": init,
        "__eq__": equal,
        "__hash__": digest,
        "__repr__": show,
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _state,
        "__setstate__": _restore,
    }


def _is_hashed(one: Field[Any]) -> bool:
    return one.compare if one.hash is None else one.hash


def _values(names: Iterable[str]) -> Callable[[Any], Any]:
    """Return what reads these attributes of an object at once."""
    several = tuple(names)
    return attrgetter(*several) if several else lambda _: ()


def _refuse_to_set(_self: Any, name: str, _value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """Return what a copy is made of, which cannot be done by setting fields."""
    return [getattr(self, each.name) for each in fields(self)]


def _restore(self: Any, state: Iterable[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _compiled(kind: Any, every: Iterable[Field[Any]]) -> Callable[..., None]:
    """Write the `__init__` of a class; its text holds names of fields, and no values.

    A slot is filled by its descriptor, in half of the time in which `object.__setattr__` finds it.
    """
    known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    given, named, lines = ["self"], ["*"], []
    for each in every:
        name = value = each.name
        if each.default_factory is not MISSING:
            known |= {f"_default_{name}": MISSING, f"_make_{name}": each.default_factory}
            value = f"_make_{name}() if {name} is _MISSING else {name}"
        elif each.default is not MISSING:
            known[f"_default_{name}"] = each.default
        parameter = f"{name}=_default_{name}" if f"_default_{name}" in known else name
        (named if each.kw_only else given).append(parameter)
        slot = getattr(kind, name, None)
        if isinstance(slot, MemberDescriptorType):
            known[f"_fill_{name}"] = slot.__set__
            lines.append(f"_fill_{name}(self, {value})")
        else:
            lines.append(f"_set(self, {name!r}, {value})")
    parameters = ", ".join(given + named if named[1:] else given)
    exec(f"def __init__({parameters}):\n " + ("\n ".join(lines) or "pass"), known)  # noqa: S102 - as dataclasses does.
    made = cast("FunctionType", known["__init__"])
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    return made
