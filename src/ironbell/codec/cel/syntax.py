"""Tokens to a tree.

Source: google/cel-spec: doc/langdef.md, "Syntax" (grammar) and "Macros"; google/cel-go: parser/gen/CEL.g4;
antlr/antlr4: DefaultErrorStrategy (messages).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ironbell.codec.cel.errors import CelSyntaxError, Fault
from ironbell.codec.cel.tokens import Token, TokenType, Uint, tokenize

MAX_DEPTH = 40


def _place() -> int:
    """The place in the text of a node's mark: its operator, parenthesis or first character."""
    depth: int = field(default=0, compare=False)
    return depth


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any
    offset: int = _place()


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    offset: int = _place()


@dataclass(frozen=True, slots=True)
class Select:
    operand: Node
    field: str
    optional: bool = False
    """`a.?b`: an optional value, without an error where there is none."""
    offset: int = _place()


@dataclass(frozen=True, slots=True)
class Index:
    operand: Node
    index: Node
    optional: bool = False
    """`a[?i]`: an optional value, without an error where there is none."""
    offset: int = _place()


@dataclass(frozen=True, slots=True)
class Call:
    """A function, an operator (by its symbol), or a method when `target` is set."""

    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None
    offset: int = _place()


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Node, ...]
    offset: int = _place()


@dataclass(frozen=True, slots=True)
class MapOf:
    entries: tuple[tuple[Node, Node], ...]
    offset: int = _place()


@dataclass(frozen=True, slots=True)
class MessageField:
    name: str
    value: Node
    optional: bool = False
    """`?a: b`: left out where the optional value `b` holds nothing."""
    offset: int = _place()


@dataclass(frozen=True, slots=True)
class Message:
    """`Name{field: value}`."""

    name: str
    fields: tuple[MessageField, ...]
    offset: int = _place()


Node: TypeAlias = Literal | Name | Select | Index | Call | ListOf | MapOf | Message

_KINDS = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
_BEGINNINGS = f"{{'[', '{{', '(', '.', '-', '!', {_KINDS}"
_BEGINNINGS_OR_OPTIONAL = f"{{'[', '{{', '(', '.', '-', '!', '?', {_KINDS}"
_LIST_BEGINNINGS = f"{{'[', ']', '{{', '(', '.', ',', '-', '!', '?', {_KINDS}"
_MAP_BEGINNINGS = f"{{'[', '{{', '}}', '(', '.', ',', '-', '!', '?', {_KINDS}"
_RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
    "namespace", "return", "var", "void", "while",
})  # fmt: skip
_INTEGERS = 1 << 63
_LEVELS = (("||",), ("&&",), ("<", "<=", ">=", ">", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))


def parse(text: str) -> Node:
    """The tree of an expression.

    Raises:
        CelSyntaxError: the text is not an expression, or is nested too deeply; it has all problems.
    """
    tokens, faults = tokenize(text)
    parser = _Parser(text, tokens, faults)
    try:
        tree = parser.expression()
        parser.expect_end()
    except CelSyntaxError as error:
        raise CelSyntaxError(error.message, faults=[*faults, *error.faults]) from None
    if faults:
        raise CelSyntaxError(faults[0].message, faults=faults)
    return tree


class _Parser:
    """Recursive descent over the grammar; one instance reads one expression.

    Its messages about invalid texts are those of ANTLR's parsers.
    """

    def __init__(self, text: str, tokens: list[Token], faults: list[Fault]) -> None:
        self._text = text
        self._tokens = tokens
        self._faults = faults
        self._position = 0
        self._depth = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def expect_end(self) -> None:
        if self._next.type is not TokenType.END:
            raise self._unexpected("<EOF>")

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CelSyntaxError(f"nested deeper than {MAX_DEPTH} levels", offset=self._next.offset)
        condition = self._binary(0)
        mark = self._next.offset
        if self._take("?"):
            yes = self._binary(0)
            self._expect(":")
            condition = Call("?:", (condition, yes, self.expression()), offset=mark)
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (operator := self._operator(_LEVELS[level])) is not None:
            left = Call(operator.text, (left, self._binary(level + 1)), offset=operator.offset)
        return left

    def _operator(self, expected: tuple[str, ...]) -> Token | None:
        token = self._next
        if token.type in {TokenType.SYMBOL, TokenType.IDENTIFIER} and token.text in expected:
            self._position += 1
            return token
        return None

    def _unary(self) -> Node:
        signs = []
        while self._next.type is TokenType.SYMBOL and self._next.text in {"!", "-"}:
            signs.append(self._next)
            self._position += 1
        if signs and signs[-1].text == "-":
            self._require_operand(signs[-1])
        node = self._member(is_signed=bool(signs) and signs[-1].text == "-")
        for sign in reversed(signs):
            if sign.text == "-" and isinstance(node, Literal) and type(node.value) in {int, float}:
                node = Literal(-node.value, sign.offset)
            else:
                node = Call(f"unary {sign.text}", (node,), offset=sign.offset)
        return node

    def _require_operand(self, sign: Token) -> None:
        """Reject a minus that nothing follows: ANTLR looks two tokens ahead there, and reports two errors: that no way
        to read them exists, and which token is missing."""
        token = self._next
        if _begins_operand(token) or token.text == "!":
            return
        end = token.offset + (len(token.text) if token.type is not TokenType.END else 0)
        shown = self._text[sign.offset : end]
        self._faults.append(Fault(token.offset, f"Syntax error: no viable alternative at input '{shown}'"))
        raise _syntax_fault(token, f"mismatched input '{token.text}' expecting {_BEGINNINGS}")

    def _member(self, *, is_signed: bool) -> Node:
        node = self._primary(is_signed=is_signed)
        while True:
            mark = self._next.offset
            if self._take("."):
                if self._take("?"):
                    node = Select(node, self._identifier(), optional=True, offset=mark)
                    continue
                name, opening = self._identifier(), self._next.offset
                if self._take("("):
                    node = Call(name, self._arguments(")"), node, offset=opening)
                else:
                    node = Select(node, name, offset=mark)
            elif self._take("["):
                optional = self._take("?")
                if not optional:
                    self._require_beginning(_BEGINNINGS_OR_OPTIONAL)
                node = Index(node, self.expression(), optional, offset=mark)
                self._expect("]")
            else:
                return node

    def _primary(self, *, is_signed: bool) -> Node:
        token = self._next
        if token.type is TokenType.LITERAL:
            self._position += 1
            return Literal(self._in_range(token, is_signed=is_signed), token.offset)
        if self._take("("):
            inner = self.expression()
            self._expect(")")
            return inner
        if self._take("["):
            return ListOf(self._arguments("]"), token.offset)
        if self._take("{"):
            return MapOf(self._entries(), token.offset)
        if not self._take("."):
            self._require_beginning(_BEGINNINGS)
        if (message := self._message_name()) is not None:
            return Message(message, offset=self._tokens[self._position - 1].offset, fields=self._message_fields())
        name, opening = self._identifier(), self._next.offset
        if name in _RESERVED:
            self._faults.append(Fault(token.offset, f"reserved identifier: {name}"))
        if self._take("("):
            return Call(name, self._arguments(")"), offset=opening)
        return Name(name, token.offset)

    def _in_range(self, token: Token, *, is_signed: bool) -> Any:
        value = token.value
        if type(value) is int and value >= _INTEGERS + is_signed:
            self._faults.append(Fault(token.offset, "invalid int literal"))
        elif isinstance(value, Uint) and value.value >= 2 * _INTEGERS:
            self._faults.append(Fault(token.offset, "invalid uint literal"))
        return value

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        depth: list[Node] = []
        if closing == "]":
            self._require_beginning(_LIST_BEGINNINGS, or_symbol="]")
        while not self._take(closing):
            if depth and closing == "]" and not _begins_operand(self._next):
                raise self._unexpected("']'", follows="]")
            depth.append(self.expression())
            if not self._take(","):
                self._expect(closing, or_comma=closing != ")")
                break
        return tuple(depth)

    def _entries(self) -> tuple[tuple[Node, Node], ...]:
        depth: list[tuple[Node, Node]] = []
        self._require_beginning(_MAP_BEGINNINGS, or_symbol="}")
        while not self._take("}"):
            key = self.expression()
            self._expect(":")
            depth.append((key, self.expression()))
            if not self._take(","):
                self._expect("}", or_comma=True)
                break
        return tuple(depth)

    def _message_name(self) -> str | None:
        """The name before a brace, which is read with it; None where none is."""
        if self._next.type is not TokenType.IDENTIFIER:
            return None
        names, place = [self._next.text], self._position + 1
        while _is_symbol(self._tokens[place], ".") and self._tokens[place + 1].type is TokenType.IDENTIFIER:
            names.append(self._tokens[place + 1].text)
            place += 2
        if not _is_symbol(self._tokens[place], "{"):
            return None
        self._position = place + 1
        return ".".join(names)

    def _message_fields(self) -> tuple[MessageField, ...]:
        depth: list[MessageField] = []
        while not self._take("}"):
            is_optional = self._take("?")
            name, mark = self._identifier(), self._next.offset
            self._expect(":")
            depth.append(MessageField(name, self.expression(), is_optional, mark))
            if not self._take(","):
                self._expect("}", or_comma=True)
                break
        return tuple(depth)

    def _identifier(self) -> str:
        token = self._next
        if token.type is not TokenType.IDENTIFIER or token.text == "in":
            last = self._tokens[self._position - 1].text if self._position else ""
            shown = last + token.text if token.type is not TokenType.END else last
            raise _syntax_fault(token, f"no viable alternative at input '{shown}'")
        self._position += 1
        return token.text

    def _take(self, symbol: str) -> bool:
        if self._next.type is TokenType.SYMBOL and self._next.text == symbol:
            self._position += 1
            return True
        return False

    def _expect(self, symbol: str, *, or_comma: bool = False) -> None:
        if self._take(symbol):
            return
        if self._next.type is TokenType.END and symbol in ")]" and not or_comma:
            raise _syntax_fault(self._next, f"missing '{symbol}' at '<EOF>'")
        raise self._unexpected(f"{{'{symbol}', ','}}" if or_comma else f"'{symbol}'", follows=symbol)

    def _require_beginning(self, expected: str, *, or_symbol: str = "") -> None:
        """Reject a token that no operand begins with."""
        token = self._next
        if _begins_operand(token) or (or_symbol and token.text == or_symbol):
            return
        last = self._tokens[self._position - 1] if self._position else None
        if last is not None and last.type is TokenType.SYMBOL and last.text == "!" and last.offset < token.offset:
            raise _syntax_fault(token, f"extraneous input '{token.text}' expecting {expected}")
        raise self._unexpected(expected, follows="")

    def _unexpected(self, expected: str, *, follows: str | None = None) -> CelSyntaxError:
        """Return the error for the next token: too much by itself, or in the place of something else."""
        token = self._next
        after = self._tokens[min(self._position + 1, len(self._tokens) - 1)]
        if follows is None:
            is_extra = after.type is TokenType.END
        else:
            is_extra = after.text == follows if follows else _begins_operand(after)
        is_extra = is_extra and token.type is not TokenType.END
        return _syntax_fault(
            token, f"{'extraneous' if is_extra else 'mismatched'} input '{token.text}' expecting {expected}"
        )


def _is_symbol(token: Token, text: str) -> bool:
    return token.type is TokenType.SYMBOL and token.text == text


def _begins_operand(token: Token) -> bool:
    if token.type is TokenType.SYMBOL:
        return token.text in {"[", "{", "(", ".", "-", "!"}
    return token.type is TokenType.LITERAL or (token.type is TokenType.IDENTIFIER and token.text != "in")


def _syntax_fault(token: Token, message: str) -> CelSyntaxError:
    return CelSyntaxError(f"Syntax error: {message}", offset=token.offset)
