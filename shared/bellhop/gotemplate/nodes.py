"""The tree a template becomes. Nodes have only fields, and `str` writes them as Go does in errors.

Plain classes rather than dataclasses: making twenty of those costs more than loading all else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellhop.gotemplate.literals import quote

if TYPE_CHECKING:
    from bellhop.gotemplate.literals import Number


class Node:
    """A part of a template and the position, in characters, where it starts."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position


class Text(Node):
    """Text that is written as it stands."""

    __slots__ = ("text",)

    def __init__(self, position: int, text: str) -> None:
        super().__init__(position)
        self.text = text


class Dot(Node):
    """The cursor."""

    __slots__ = ()

    def __str__(self) -> str:
        return "."


class Nil(Node):
    """The untyped nil constant."""

    __slots__ = ()

    def __str__(self) -> str:
        return "nil"


class Bool(Node):
    """A boolean constant."""

    __slots__ = ("value",)

    def __init__(self, position: int, *, value: bool) -> None:
        super().__init__(position)
        self.value = value

    def __str__(self) -> str:
        return "true" if self.value else "false"


class NumberConstant(Node):
    """A number, under every type that can hold it."""

    __slots__ = ("literal", "number")

    def __init__(self, position: int, literal: str, number: Number) -> None:
        super().__init__(position)
        self.literal = literal
        self.number = number

    def __str__(self) -> str:
        return self.literal


class String(Node):
    """A string constant, as written and as meant."""

    __slots__ = ("literal", "value")

    def __init__(self, position: int, literal: str, value: str) -> None:
        super().__init__(position)
        self.literal = literal
        self.value = value

    def __str__(self) -> str:
        return self.literal


class Identifier(Node):
    """A function's name."""

    __slots__ = ("name",)

    def __init__(self, position: int, name: str) -> None:
        super().__init__(position)
        self.name = name

    def __str__(self) -> str:
        return self.name


class Field(Node):
    """A chain of fields of the cursor."""

    __slots__ = ("names",)

    def __init__(self, position: int, names: tuple[str, ...]) -> None:
        super().__init__(position)
        self.names = names

    def __str__(self) -> str:
        return "".join(f".{name}" for name in self.names)


class Variable(Node):
    """A variable, perhaps with fields; the slot is where the frame keeps it."""

    __slots__ = ("name", "names", "slot")

    def __init__(self, position: int, name: str, slot: int, names: tuple[str, ...] = ()) -> None:
        super().__init__(position)
        self.name = name
        self.slot = slot
        self.names = names

    def __str__(self) -> str:
        return ".".join((self.name, *self.names))


class Chain(Node):
    """Fields of what a term gives."""

    __slots__ = ("names", "term")

    def __init__(self, position: int, term: Operand, names: tuple[str, ...]) -> None:
        super().__init__(position)
        self.term = term
        self.names = names

    def __str__(self) -> str:
        inner = f"({self.term})" if isinstance(self.term, Pipeline) else str(self.term)
        return inner + "".join(f".{name}" for name in self.names)


class Command(Node):
    """A function with its arguments, or only a value."""

    __slots__ = ("arguments",)

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.arguments: list[Operand] = []

    def __str__(self) -> str:
        return " ".join(
            f"({argument})" if isinstance(argument, Pipeline) else str(argument)
            for argument in self.arguments
        )


class Pipeline(Node):
    """Commands, each handing its value to the next, and the variables that take the last one."""

    __slots__ = ("assigns", "commands", "variables")

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.variables: list[Variable] = []
        self.assigns = False
        self.commands: list[Command] = []

    def __str__(self) -> str:
        commands = " | ".join(str(command) for command in self.commands)
        if not self.variables:
            return commands
        names = ", ".join(str(variable) for variable in self.variables)
        return f"{names} {'=' if self.assigns else ':='} {commands}"


Operand = (
    Dot | Nil | Bool | NumberConstant | String | Identifier | Field | Variable | Chain | Pipeline
)


class Action(Node):
    """A pipeline whose value is written."""

    __slots__ = ("pipeline",)

    def __init__(self, position: int, pipeline: Pipeline) -> None:
        super().__init__(position)
        self.pipeline = pipeline

    def __str__(self) -> str:
        return f"{{{{{self.pipeline}}}}}"


class Branch(Node):
    """The common part of `if`, `with` and `range`."""

    __slots__ = ("body", "otherwise", "pipeline")

    def __init__(
        self, position: int, pipeline: Pipeline, body: list[Node], otherwise: list[Node] | None
    ) -> None:
        super().__init__(position)
        self.pipeline = pipeline
        self.body = body
        self.otherwise = otherwise


class If(Branch):
    """One of two bodies."""

    __slots__ = ()


class With(Branch):
    """One of two bodies, the first with the cursor moved."""

    __slots__ = ()


class Range(Branch):
    """A body for each item, or another for none."""

    __slots__ = ()


class Break(Node):
    """Leave the innermost range."""

    __slots__ = ()

    def __str__(self) -> str:
        return "{{break}}"


class Continue(Node):
    """Go on with the innermost range's next item."""

    __slots__ = ()

    def __str__(self) -> str:
        return "{{continue}}"


class TemplateCall(Node):
    """A call of another template."""

    __slots__ = ("name", "pipeline")

    def __init__(self, position: int, name: str, pipeline: Pipeline | None) -> None:
        super().__init__(position)
        self.name = name
        self.pipeline = pipeline

    def __str__(self) -> str:
        argument = f" {self.pipeline}" if self.pipeline is not None else ""
        return f"{{{{template {quote(self.name)}{argument}}}}}"


class End(Node):
    """Ends a list; never part of the tree."""

    __slots__ = ()

    def __str__(self) -> str:
        return "{{end}}"


class Else(Node):
    """Ends a list's first half; never part of the tree."""

    __slots__ = ()

    def __str__(self) -> str:
        return "{{else}}"


class Body:
    """A whole template: its nodes and how many variables its frame holds."""

    __slots__ = ("name", "nodes", "position", "slots")

    def __init__(self, name: str, nodes: list[Node], slots: int, position: int = 0) -> None:
        self.name = name
        self.nodes = nodes
        self.slots = slots
        self.position = position

    def is_empty(self) -> bool:
        """Return whether there is nothing but space."""
        return all(isinstance(node, Text) and not node.text.strip() for node in self.nodes)
