"""The tree a template becomes. Nodes declare fields, and `str` writes them as Go does in errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bellhop.gotemplate.literals import quote

if TYPE_CHECKING:
    from bellhop.gotemplate.literals import Number


@dataclass(slots=True)
class Node:
    """A part of a template and the position, in characters, where it starts."""

    position: int


@dataclass(slots=True)
class Text(Node):
    """What is written as it stands."""

    text: str


@dataclass(slots=True)
class Dot(Node):
    """The cursor."""

    def __str__(self) -> str:
        return "."


@dataclass(slots=True)
class Nil(Node):
    """The untyped nil constant."""

    def __str__(self) -> str:
        return "nil"


@dataclass(slots=True)
class Bool(Node):
    """A boolean constant."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(slots=True)
class NumberConstant(Node):
    """A number, under every type that can hold it."""

    literal: str
    number: Number

    def __str__(self) -> str:
        return self.literal


@dataclass(slots=True)
class String(Node):
    """A string constant, as written and as meant."""

    literal: str
    value: str

    def __str__(self) -> str:
        return self.literal


@dataclass(slots=True)
class Identifier(Node):
    """A function's name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True)
class Field(Node):
    """A chain of fields of the cursor."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(f".{name}" for name in self.names)


@dataclass(slots=True)
class Variable(Node):
    """A variable, perhaps with fields; the slot is where the frame keeps it."""

    name: str
    slot: int
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.name, *self.names))


@dataclass(slots=True)
class Chain(Node):
    """Fields of what a term gives."""

    term: Operand
    names: tuple[str, ...]

    def __str__(self) -> str:
        inner = f"({self.term})" if isinstance(self.term, Pipeline) else str(self.term)
        return inner + "".join(f".{name}" for name in self.names)


@dataclass(slots=True)
class Command(Node):
    """A function with its arguments, or a value alone."""

    arguments: list[Operand] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join(
            f"({argument})" if isinstance(argument, Pipeline) else str(argument)
            for argument in self.arguments
        )


@dataclass(slots=True)
class Pipeline(Node):
    """Commands, each handing its value to the next, and the variables that take the last one."""

    variables: list[Variable] = field(default_factory=list)
    assigns: bool = False
    commands: list[Command] = field(default_factory=list)

    def __str__(self) -> str:
        commands = " | ".join(str(command) for command in self.commands)
        if not self.variables:
            return commands
        names = ", ".join(str(variable) for variable in self.variables)
        return f"{names} {'=' if self.assigns else ':='} {commands}"


Operand = (
    Dot | Nil | Bool | NumberConstant | String | Identifier | Field | Variable | Chain | Pipeline
)


@dataclass(slots=True)
class Action(Node):
    """A pipeline whose value is written."""

    pipeline: Pipeline

    def __str__(self) -> str:
        return f"{{{{{self.pipeline}}}}}"


@dataclass(slots=True)
class Branch(Node):
    """What `if`, `with` and `range` have in common."""

    pipeline: Pipeline
    body: list[Node]
    otherwise: list[Node] | None


@dataclass(slots=True)
class If(Branch):
    """One of two bodies."""


@dataclass(slots=True)
class With(Branch):
    """One of two bodies, the first with the cursor moved."""


@dataclass(slots=True)
class Range(Branch):
    """A body for each item, or another for none."""


@dataclass(slots=True)
class Break(Node):
    """Leave the innermost range."""

    def __str__(self) -> str:
        return "{{break}}"


@dataclass(slots=True)
class Continue(Node):
    """Go on with the innermost range's next item."""

    def __str__(self) -> str:
        return "{{continue}}"


@dataclass(slots=True)
class Template(Node):
    """A call of another template."""

    name: str
    pipeline: Pipeline | None

    def __str__(self) -> str:
        argument = f" {self.pipeline}" if self.pipeline is not None else ""
        return f"{{{{template {quote(self.name)}{argument}}}}}"


@dataclass(slots=True)
class End(Node):
    """Ends a list; never part of the tree."""

    def __str__(self) -> str:
        return "{{end}}"


@dataclass(slots=True)
class Else(Node):
    """Ends a list's first half; never part of the tree."""

    def __str__(self) -> str:
        return "{{else}}"


@dataclass(slots=True)
class Body:
    """A whole template: its nodes and how many variables its frame holds."""

    name: str
    nodes: list[Node]
    slots: int
    position: int = 0

    def is_empty(self) -> bool:
        """Tell whether there is nothing but space."""
        return all(isinstance(node, Text) and not node.text.strip() for node in self.nodes)
