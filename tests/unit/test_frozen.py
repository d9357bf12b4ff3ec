"""Frozen classes: to whoever uses them they are the dataclasses that Python makes."""

from __future__ import annotations

import ast
import copy
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pytest

import bellhop
from bellhop.frozen import compile_all, frozen

LIBRARY = Path(bellhop.__file__).parent
ALONE = {"gotemplate", "luabox", "celbox"}


def _classes() -> Iterator[tuple[Path, ast.ClassDef, list[str]]]:
    """Yield the library's classes that are decorated, and by what."""
    for path in sorted(LIBRARY.rglob("*.py")):
        for each in ast.walk(ast.parse(path.read_text())):
            if isinstance(each, ast.ClassDef) and each.decorator_list:
                yield path, each, [ast.unparse(one) for one in each.decorator_list]


def _plainly(kind: type[Any]) -> type[Any]:
    return dataclass(frozen=True, slots=True)(kind)


def _made(decorate: Callable[[type[Any]], type[Any]]) -> type[Any]:
    class Letter:
        """A class with all that ours have."""

        limit: ClassVar[int] = 3

        to: str
        pages: int = 1
        words: Mapping[str, Any] = field(default_factory=dict, hash=False)
        secret: str = field(default="", repr=False)
        read: bool = field(default=False, compare=False)

    return decorate(Letter)


OURS, PYTHONS = _made(frozen), _made(_plainly)
CALLS = [
    pytest.param((), {"to": "a"}, id="by name"),
    pytest.param(("a",), {}, id="by place"),
    pytest.param(("a", 2, {"b": 1}), {"secret": "c", "read": True}, id="everything"),
]
WRONG = [
    pytest.param((), {}, id="one is missing"),
    pytest.param(("a",), {"too": 1}, id="an unknown one"),
    pytest.param(("a", 1, {}, "", True, 6), {}, id="too many"),
]


@pytest.mark.parametrize(("given", "named"), CALLS)
def test_has_the_fields_that_it_is_given_and_defaults(
    given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """An object is made, shown, hashed and read as one of a dataclass."""
    ours, pythons = OURS(*given, **named), PYTHONS(*given, **named)

    assert asdict(ours) == asdict(pythons)
    assert repr(ours) == repr(pythons)
    assert hash(ours) == hash(pythons)
    assert ours == OURS(*given, **named)


@pytest.mark.parametrize(("given", "named"), WRONG)
def test_refuses_what_is_no_call_of_it(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """A field that is missing or unknown is told in Python's words, the first time and later."""
    kind = _made(frozen)
    with pytest.raises(TypeError) as expected:
        PYTHONS(*given, **named)

    for _ in range(2):
        with pytest.raises(TypeError) as refused:
            kind(*given, **named)
        assert str(refused.value) == str(expected.value)


def test_compares_only_what_counts() -> None:
    """What is not compared makes no difference, and another class' object is no equal."""
    assert OURS("a", read=True) == OURS("a")
    assert OURS("a", secret="b") != OURS("a")
    assert OURS("a") != PYTHONS("a")
    assert OURS("a").__eq__("a") is NotImplemented


def test_stays_as_it_was_made() -> None:
    """No field can be set or deleted, and there is no place for another."""
    letter = OURS("a")

    for name in ("to", "other"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(letter, name, "b")
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'to'"):
        del letter.to
    assert not hasattr(letter, "__dict__")
    assert letter == OURS("a")


def test_is_a_dataclass_to_the_standard_library() -> None:
    """Fields, copies with a change, and patterns work as they do with any other."""
    letter = OURS("a", 2)

    assert [each.name for each in fields(OURS)] == [each.name for each in fields(PYTHONS)]
    assert replace(letter, pages=3) == OURS("a", 3)
    assert OURS.__match_args__ == PYTHONS.__match_args__
    assert OURS("a").words is not OURS("a").words
    assert OURS.limit == OURS("a").limit


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
def test_can_be_copied(again: Callable[[Any], Any]) -> None:
    """A copy is equal and as frozen, whether there are slots or not."""
    for each in (Crate("a", fragile=True), Sum((1, 2))):
        assert again(each) == each
        with pytest.raises(FrozenInstanceError):
            again(each).to = "b"


@frozen
class Parcel:
    """One that others are made of."""

    to: str
    weight: float = 1.0


@frozen
class Crate(Parcel):
    """One more field, and another default."""

    weight: float = 10.0
    fragile: bool = False


@frozen(kw_only=True)
class Form:
    """Fields that are named."""

    name: str = ""
    age: int


@frozen(slots=False)
class Sum:
    """One that remembers what was worked out."""

    numbers: tuple[int, ...]

    @cached_property
    def all(self) -> list[int]:
        """Add them up, in an object that is known again."""
        return [sum(self.numbers)]


@frozen
class Same:  # noqa: PLW1641 - its hash is made.
    """One that says itself what it equals."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same)

    def __repr__(self) -> str:
        return "the same"


@frozen
class Nothing:
    """One without fields."""


def test_inherits_fields() -> None:
    """A class has the fields of those above it first, and is no equal of theirs."""
    assert Crate("a", fragile=True) == Crate("a", 10.0, True)  # noqa: FBT003
    assert Parcel("a", 10.0) != Crate("a")
    assert Parcel("a").weight == 1.0


def test_takes_names_alone_where_it_is_to() -> None:
    """One whose fields are named may have defaults anywhere, and takes nothing by place."""
    assert Form(age=3).name == ""
    with pytest.raises(TypeError, match="positional"):
        Form("a", 3)  # type: ignore[call-arg, misc]


def test_without_slots_it_keeps_what_was_worked_out() -> None:
    """A cached property is worked out once, and is no field."""
    numbers = Sum((1, 2))

    assert numbers.all is numbers.all == [3]
    assert numbers == Sum((1, 2))
    with pytest.raises(FrozenInstanceError):
        numbers.numbers = ()  # type: ignore[misc]


def test_what_a_class_says_itself_counts() -> None:
    """Methods that are written stay; one that compares itself still has a hash."""
    assert Same("a") == Same("b")
    assert repr(Same("a")) == "the same"
    assert hash(Same("a")) == hash(Same("a"))


def test_may_have_no_fields() -> None:
    """All objects without fields are equal."""
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    assert repr(Nothing()) == "Nothing()"


def test_the_library_makes_no_frozen_class_otherwise() -> None:
    """A frozen dataclass costs each cold start half a millisecond; the boxes stand alone.

    It takes seconds: every module of the library is parsed.
    """
    otherwise = [
        f"{path}: {kind.name}"
        for path, kind, decorators in _classes()
        if path.relative_to(LIBRARY).parts[0] not in ALONE
        and any(re.match(r"dataclass\(.*frozen", each) for each in decorators)
    ]

    assert otherwise == []


def test_no_class_with_slots_calls_super() -> None:
    """Python makes a class with slots anew, and `super()` knows the first one alone.

    It takes seconds: every module of the library is parsed.
    """
    broken = [
        f"{path}: {kind.name}"
        for path, kind, decorators in _classes()
        if any(re.match(r"frozen(?!\(slots=False)", each) for each in decorators)
        and "super()" in ast.unparse(kind)
    ]

    assert broken == []


def test_threads_may_make_the_first_object_at_once() -> None:
    """Whoever comes first, each gets its own object, with its own fields."""
    for _ in range(20):
        kind = _made(frozen)
        together = threading.Barrier(4)
        made: dict[int, Any] = {}

        def make(number: int, kind: Any = kind, made: Any = made, gate: Any = together) -> None:
            gate.wait()
            made[number] = kind(str(number))

        threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

        assert {number: letter.to for number, letter in made.items()} == dict(
            zip(range(4), "0123", strict=True)
        )


def test_whoever_has_time_compiles_all_that_is_late() -> None:
    """Nothing is left for the first object; one that comes before it is what it would be."""
    early, late = _made(frozen), _made(frozen)
    early("first")
    before = late.__init__
    compile_all()

    assert late.__init__ is not before
    assert (early("a"), late("a", 2).pages, late("a").words) == (early("a"), 2, {})
    after = late.__init__
    compile_all()
    assert late.__init__ is after
