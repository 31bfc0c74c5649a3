"""The syntax tree of a template. Positions are character offsets into the text."""

from __future__ import annotations

from dataclasses import dataclass, field

from ironbell.codec.gotemplate.literals import Number


@dataclass(slots=True)
class Dot:
    pos: int


@dataclass(slots=True)
class Nil:
    pos: int


@dataclass(slots=True)
class Bool:
    pos: int
    value: bool


@dataclass(slots=True)
class Num:
    pos: int
    number: Number


@dataclass(slots=True)
class Str:
    pos: int
    value: str


@dataclass(slots=True)
class FieldPath:
    """`.a.b`"""

    pos: int
    names: list[str]


@dataclass(slots=True)
class Variable:
    """`$x` or `$x.a.b`; the name has its dollar sign."""

    pos: int
    name: str
    names: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Identifier:
    """A function's name."""

    pos: int
    name: str


@dataclass(slots=True)
class Chain:
    """`(pipeline).a.b`, or a function's name followed by fields."""

    pos: int
    operand: Arg
    names: list[str]


@dataclass(slots=True)
class Command:
    pos: int
    args: list[Arg]


@dataclass(slots=True)
class Pipeline:
    """Commands joined by `|`, whose result may go into variables."""

    pos: int
    commands: list[Command]
    declared: list[str]
    assigns: bool = False


Arg = Dot | Nil | Bool | Num | Str | FieldPath | Variable | Identifier | Chain | Pipeline


@dataclass(slots=True)
class Text:
    pos: int
    text: str


@dataclass(slots=True)
class Action:
    pos: int
    pipe: Pipeline


@dataclass(slots=True)
class If:
    pos: int
    pipe: Pipeline
    body: list[Node]
    otherwise: list[Node] | None


@dataclass(slots=True)
class With:
    pos: int
    pipe: Pipeline
    body: list[Node]
    otherwise: list[Node] | None


@dataclass(slots=True)
class Range:
    pos: int
    pipe: Pipeline
    body: list[Node]
    otherwise: list[Node] | None


@dataclass(slots=True)
class Call:
    """`{{template "name" pipeline}}`, and what `{{block}}` leaves in its place."""

    pos: int
    name: str
    pipe: Pipeline | None


@dataclass(slots=True)
class Break:
    pos: int


@dataclass(slots=True)
class Continue:
    pos: int


Node = Text | Action | If | With | Range | Call | Break | Continue
