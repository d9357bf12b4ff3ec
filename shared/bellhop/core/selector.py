"""Label selectors, as both eras write them: a string, or matchLabels and matchExpressions."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from bellhop.core.base import Many, Model, mistake
from bellhop.core.names import Labels, label_key_problem, label_value_problem

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")


class Requirement(NamedTuple):
    """One condition on one label; `values` are sorted."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet the condition; NotIn is met by a missing label too."""
        if self.operator == "In":
            return labels.get(self.key) in self.values
        if self.operator == "NotIn":
            return labels.get(self.key) not in self.values
        return (self.key in labels) == (self.operator == "Exists")

    def __str__(self) -> str:
        if self.operator == "Exists":
            return self.key
        if self.operator == "DoesNotExist":
            return f"!{self.key}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == 'In' else '!='}{self.values[0]}"
        word = "in" if self.operator == "In" else "notin"
        return f"{self.key} {word} ({','.join(self.values)})"


class Expression(Model):
    """One entry of matchExpressions."""

    key: str
    operator: Operator
    values: Many[str] = ()

    @model_validator(mode="after")
    def _is_a_requirement(self) -> Self:
        if problem := label_key_problem(self.key):
            raise mistake(problem)
        needs_values = self.operator in {"In", "NotIn"}
        if needs_values and not self.values:
            raise mistake(f"operator {self.operator} needs at least one value")
        if self.values and not needs_values:
            raise mistake(f"operator {self.operator} takes no values")
        for value in self.values:
            if problem := label_value_problem(value):
                raise mistake(problem)
        return self


class Selector(Model):
    """A selection of clusters or objects by their labels; all requirements must be met."""

    model_config = ConfigDict(json_schema_extra={"type": ["object", "string"]})

    match_labels: Labels = Field(default_factory=dict)
    match_expressions: Many[Expression] = ()

    @model_validator(mode="before")
    @classmethod
    def _read_string(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"matchExpressions": [_as_expression(found) for found in parse_string(data)]}
        return data

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read Kubernetes' selector syntax: `env=fv,tier in (a,b),!edge`.

        Raises:
            pydantic.ValidationError: with a sentence for what is wrong.
        """
        return cls.model_validate(text)

    @cached_property
    def requirements(self) -> tuple[Requirement, ...]:
        """List the conditions in one order, whichever way they were written."""
        found = {Requirement(key, "In", (value,)) for key, value in self.match_labels.items()}
        for entry in self.match_expressions:
            values = tuple(sorted(set(entry.values)))
            found.add(Requirement(entry.key, entry.operator, values))
        return tuple(sorted(found))

    @property
    def empty(self) -> bool:
        """Return whether there is no requirement, which selects nothing."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet every requirement; an empty selector matches nothing."""
        return not self.empty and self.admits(labels)

    def admits(self, labels: Mapping[str, str]) -> bool:
        """Return whether no requirement is broken; an empty selector admits everything."""
        return all(requirement.met_by(labels) for requirement in self.requirements)

    def broken(self, labels: Mapping[str, str]) -> tuple[Requirement, ...]:
        """List the requirements that labels do not meet, for who is to say why not."""
        return tuple(each for each in self.requirements if not each.met_by(labels))

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)


def parse_string(text: str) -> list[Requirement]:
    """Read the requirements of a selector string.

    Raises:
        PydanticCustomError: with a sentence for what is wrong.
    """
    return _StringParser(text).parse()


def _as_expression(found: Requirement) -> dict[str, Any]:
    return {"key": found.key, "operator": found.operator, "values": list(found.values)}


class _StringParser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [match.group(1) for match in _TOKEN.finditer(text.rstrip())]
        self.position = 0

    def parse(self) -> list[Requirement]:
        if not self.tokens:
            return []
        found = [self.requirement()]
        while self.peek() == ",":
            self.take()
            found.append(self.requirement())
        if self.peek():
            raise self.unexpected(self.peek(), "a comma or the end")
        return found

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def word(self, expected: str) -> str:
        token = self.peek()
        if not token or token in {"==", "!=", *"=!(),<>"}:
            raise self.unexpected(token, expected)
        return self.take()

    def requirement(self) -> Requirement:
        if self.peek() == "!":
            self.take()
            return Requirement(self.word("a label's key"), "DoesNotExist")
        key = self.word("a label's key")
        operator = self.peek()
        if operator in {"", ","}:
            return Requirement(key, "Exists")
        self.take()
        if operator in {"=", "==", "!="}:
            return Requirement(key, "NotIn" if operator == "!=" else "In", (self.value(),))
        if operator in {"in", "notin"}:
            return Requirement(key, "In" if operator == "in" else "NotIn", self.values())
        if operator in {"<", ">", "gt", "lt"}:
            raise mistake(f"the selector {self.text!r} compares by size, which labels cannot")
        raise self.unexpected(operator, "one of = == != in notin")

    def value(self) -> str:
        return "" if self.peek() in {"", ","} else self.word("a label's value")

    def values(self) -> tuple[str, ...]:
        if self.take() != "(":
            self.position -= 1
            raise self.unexpected(self.peek(), "'('")
        found = [self.item()]
        while self.peek() == ",":
            self.take()
            found.append(self.item())
        if self.take() != ")":
            self.position -= 1
            raise self.unexpected(self.peek(), "',' or ')'")
        return tuple(sorted(set(found)))

    def item(self) -> str:
        return "" if self.peek() in {",", ")"} else self.word("a label's value")

    def unexpected(self, token: str, expected: str) -> PydanticCustomError:
        found = f"{token!r}" if token else "the end"
        return mistake(f"the selector {self.text!r} has {found} where {expected} should be")
