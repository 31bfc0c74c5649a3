"""The grammar of `${...}`: a template's text as a row of texts and variables.

Operators: `#NAME` (length); after the name `^ ^^ , ,,` (case), `:OFFSET` and `:OFFSET:LENGTH`, `# ## % %%` (cut a
pattern off), `/A/B //A/B /#A/B /%A/B` (replace), `= := :- :? :+` (default). An operand is one text or one variable;
a default may be a row of them.

Source: drone/envsubst: parse/parse.go, parse/scan.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ironbell.base.errors import IronbellError, Retry

_DEFAULTS = "=-?+"
MOST_NESTED = 64


class SubstitutionError(IronbellError):
    """A template that is malformed; the message has the line."""

    reason = "InvalidTemplate"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Variable:
    """`${name}`, with an operator and its operands."""

    name: str
    operator: str = ""
    operands: tuple[Node, ...] = ()


Node: TypeAlias = "str | Variable"


def parse(text: str) -> tuple[Node, ...]:
    """The parts of a template, in order.

    Raises:
        SubstitutionError: with the line.
    """
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def parse(self) -> tuple[Node, ...]:
        nodes: list[Node] = []
        while self._at < len(self._text):
            if self._take("${"):
                nodes.append(self._variable())
            else:
                nodes.append(self._words(lambda char: True, escapes="$"))
        return tuple(nodes)

    def _variable(self) -> Variable:
        start = self._at
        if self._take("#"):
            return self._closed(Variable(self._name(start), "#"), start)
        name = self._name(start)
        char = self._peek()
        if char and char in ",^":
            return self._closed(Variable(name, self._up_to_two(char, ",^")), start)
        if char == "=" or (char == ":" and self._peek(1) and self._peek(1) in _DEFAULTS):
            return self._default(name, 1 if char == "=" else 2, start)
        if char == ":":
            return self._substring(name, start)
        if char == "/":
            return self._replacement(name, start)
        if char and char in "#%":
            operator = self._up_to_two(char, char)
            return self._closed(Variable(name, operator, (self._operand(_not("}"), start),)), start)
        return self._closed(Variable(name), start)

    def _default(self, name: str, length: int, start: int) -> Variable:
        operator = self._text[self._at : self._at + length]
        self._at += length
        operands: list[Node] = []
        while self._peek() != "}":
            operands.append(self._operand(_not("}"), start))
        return self._closed(Variable(name, operator, tuple(operands)), start)

    def _substring(self, name: str, start: int) -> Variable:
        self._at += 1
        operands = [self._operand(_not(":}"), start)]
        if self._peek() == ":":
            self._run(":")
            operands.append(self._operand(_not("}"), start))
        return self._closed(Variable(name, ":", tuple(operands)), start)

    def _replacement(self, name: str, start: int) -> Variable:
        operator = self._up_to_two("/", "/#%")
        operands = [self._operand(_not("/"), start, escapes="$\\")]
        if self._peek() != "/":
            raise self._error(start, "a replacement needs a second /")
        self._run("/")
        if self._peek() != "}":
            operands.append(self._operand(_not("}"), start, escapes="$\\"))
        return self._closed(Variable(name, operator, tuple(operands)), start)

    def _operand(self, accept: Callable[[str], bool], start: int, *, escapes: str = "") -> Node:
        """One text or one variable."""
        if self._take("${"):
            if self._depth == MOST_NESTED:
                raise self._error(start, f"variables are nested more than {MOST_NESTED} deep")
            self._depth += 1
            nested = self._variable()
            self._depth -= 1
            return nested
        text = self._words(accept, escapes=escapes)
        if not text:
            raise self._error(start, "an operand is missing")
        return text

    def _words(self, accept: Callable[[str], bool], *, escapes: str = "") -> str:
        """Text up to a variable or what is not accepted."""
        parts: list[str] = []
        while char := self._peek():
            follows = self._peek(1)
            if char == "$" and follows == "{":
                break
            escaped = char in escapes and follows != "" and follows in ("$" if char == "$" else "/\\")
            if not escaped and not accept(char):
                break
            parts.append(follows if escaped else char)
            self._at += 2 if escaped else 1
        return "".join(parts)

    def _name(self, start: int) -> str:
        first = self._at
        while (char := self._peek()) and (char.isalpha() or char.isdecimal() or char == "_"):
            self._at += 1
        if self._at == first:
            raise self._error(start, "a variable's name is missing; write $$ for a dollar that begins none")
        return self._text[first : self._at]

    def _up_to_two(self, first: str, second: str) -> str:
        operator = first + (self._peek(1) if self._peek(1) and self._peek(1) in second else "")
        self._at += len(operator)
        return operator

    def _run(self, char: str) -> None:
        while self._peek() == char:
            self._at += 1

    def _closed(self, variable: Variable, start: int) -> Variable:
        if not self._take("}"):
            raise self._error(start, f"${{{variable.name} is not closed by }} where it should end")
        return variable

    def _take(self, word: str) -> bool:
        taken = self._text.startswith(word, self._at)
        self._at += len(word) * taken
        return taken

    def _peek(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _error(self, start: int, problem: str) -> SubstitutionError:
        return SubstitutionError(f"line {self._text.count(chr(10), 0, start) + 1}: {problem}")


def _not(chars: str) -> Callable[[str], bool]:
    return lambda char: char not in chars
