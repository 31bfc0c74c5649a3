"""Tokens to a tree.

Source: google/cel-spec: doc/langdef.md, "Syntax" (grammar) and "Macros".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from ironbell.codec.cel.errors import CelSyntaxError
from ironbell.codec.cel.tokens import Token, TokenType, tokenize

MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    operand: Node
    field: str
    optional: bool = False
    """`a.?b`: an optional value, without an error where there is none."""


@dataclass(frozen=True, slots=True)
class Index:
    operand: Node
    index: Node
    optional: bool = False
    """`a[?i]`: an optional value, without an error where there is none."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function, an operator (by its symbol), or a method when `target` is there."""

    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    entries: tuple[tuple[Node, Node], ...]


Node: TypeAlias = Literal | Name | Select | Index | Call | ListOf | MapOf

_LEVELS = (("||",), ("&&",), ("<", "<=", ">=", ">", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))


def parse(text: str) -> Node:
    """The tree of an expression.

    Raises:
        CelSyntaxError: it is none, or it is nested too deeply.
    """
    parser = _Parser(tokenize(text))
    tree = parser.expression()
    parser.expect_end()
    return tree


class _Parser:
    """Recursive descent over the grammar; one instance reads one expression."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._depth = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def expect_end(self) -> None:
        if self._next.type is not TokenType.END:
            raise self._unexpected()

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CelSyntaxError(f"nested deeper than {MAX_DEPTH} levels", offset=self._next.offset)
        condition = self._binary(0)
        if self._take("?"):
            yes = self._binary(0)
            self._expect(":")
            condition = Call("?:", (condition, yes, self.expression()))
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (operator := self._operator(_LEVELS[level])) is not None:
            left = Call(operator, (left, self._binary(level + 1)))
        return left

    def _operator(self, wanted: tuple[str, ...]) -> str | None:
        token = self._next
        if token.type in {TokenType.SYMBOL, TokenType.IDENTIFIER} and token.text in wanted:
            self._position += 1
            return token.text
        return None

    def _unary(self) -> Node:
        signs = []
        while self._next.type is TokenType.SYMBOL and self._next.text in {"!", "-"}:
            signs.append(self._next.text)
            self._position += 1
        node = self._member()
        for sign in reversed(signs):
            if sign == "-" and isinstance(node, Literal) and type(node.value) in {int, float}:
                node = Literal(-node.value)
            else:
                node = Call(f"unary {sign}", (node,))
        return node

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if self._take("."):
                if self._take("?"):
                    node = Select(node, self._identifier(), optional=True)
                    continue
                field = self._identifier()
                node = Call(field, self._arguments(")"), node) if self._take("(") else Select(node, field)
            elif self._take("["):
                optional = self._take("?")
                node = Index(node, self.expression(), optional)
                self._expect("]")
            else:
                return node

    def _primary(self) -> Node:
        token = self._next
        if token.type is TokenType.LITERAL:
            self._position += 1
            return Literal(token.value)
        if self._take("("):
            inner = self.expression()
            self._expect(")")
            return inner
        if self._take("["):
            return ListOf(self._arguments("]"))
        if self._take("{"):
            return MapOf(self._entries())
        self._take(".")
        name = self._identifier()
        return Call(name, self._arguments(")")) if self._take("(") else Name(name)

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._take(closing):
            found.append(self.expression())
            if not self._take(","):
                self._expect(closing)
                break
        return tuple(found)

    def _entries(self) -> tuple[tuple[Node, Node], ...]:
        found: list[tuple[Node, Node]] = []
        while not self._take("}"):
            key = self.expression()
            self._expect(":")
            found.append((key, self.expression()))
            if not self._take(","):
                self._expect("}")
                break
        return tuple(found)

    def _identifier(self) -> str:
        token = self._next
        if token.type is not TokenType.IDENTIFIER or token.text == "in":
            raise self._unexpected()
        self._position += 1
        return token.text

    def _take(self, symbol: str) -> bool:
        if self._next.type is TokenType.SYMBOL and self._next.text == symbol:
            self._position += 1
            return True
        return False

    def _expect(self, symbol: str) -> None:
        if not self._take(symbol):
            raise self._unexpected(f", expected {symbol!r}")

    def _unexpected(self, wanted: str = "") -> CelSyntaxError:
        token = self._next
        found = token.type.value if token.type is TokenType.END else repr(token.text)
        return CelSyntaxError(f"unexpected {found}{wanted}", offset=token.offset)
