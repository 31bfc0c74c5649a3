"""Template text to tokens.

Trim markers take white space off the neighbouring text here, so the parser never sees them; comments vanish.

Source: golang/go: src/text/template/parse/lex.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from ironbell.codec.gotemplate.errors import SyntaxFault
from ironbell.codec.gotemplate.meter import charge

_SPACE = " \t\r\n"
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*(?:\.[0-7_]*)?"
    r"|0[bB][01_]*(?:\.[01_]*)?|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)


class T(Enum):
    """Kinds of tokens."""

    TEXT = auto()
    LEFT = auto()
    RIGHT = auto()
    SPACE = auto()
    PIPE = auto()
    OPEN = auto()
    CLOSE = auto()
    ASSIGN = auto()
    DECLARE = auto()
    COMMA = auto()
    DOT = auto()
    FIELD = auto()
    VARIABLE = auto()
    IDENTIFIER = auto()
    KEYWORD = auto()
    BOOL = auto()
    NIL = auto()
    NUMBER = auto()
    STRING = auto()
    CHAR = auto()
    EOF = auto()


class Token(NamedTuple):
    """One token; `pos` is its offset, `line` counts from 1."""

    kind: T
    text: str
    pos: int
    line: int


KEYWORDS = frozenset(
    ("block", "break", "continue", "define", "else", "end", "if", "range", "template", "with")
)  # fmt: skip


def is_word(char: str) -> bool:
    """Return whether a character may be part of a name: letters, decimal digits, underscores."""
    return char == "_" or char.isalpha() or char.isdecimal()


def tokens(text: str) -> Iterator[Token]:
    """All tokens of a template, EOF last.

    Raises:
        SyntaxFault: while iterating, where the text is not a template.
    """
    return _Lexer(text).run()


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._line = 1
        self._counted = 0

    def _line_at(self, pos: int) -> int:
        self._line += self._text.count("\n", self._counted, pos)
        self._counted = pos
        return self._line

    def _token(self, kind: T, start: int, end: int) -> Token:
        self._pos = end
        charge(2 + (end - start) / (1000 if kind is T.TEXT else 8))
        return Token(kind, self._text[start:end], start, self._line_at(start))

    def _fault(self, problem: str, pos: int) -> SyntaxFault:
        return SyntaxFault(problem, self._line_at(pos))

    def run(self) -> Iterator[Token]:
        text = self._text
        while True:
            charge(1)
            start = self._pos
            opening = text.find("{{", start)
            if opening < 0:
                if start < len(text):
                    yield self._token(T.TEXT, start, len(text))
                yield Token(T.EOF, "", len(text), self._line_at(len(text)))
                return
            trims = text[opening + 2 : opening + 3] == "-" and text[opening + 3 : opening + 4] in tuple(_SPACE)
            end = opening
            if trims:
                end = start + len(text[start:opening].rstrip(_SPACE))
            if end > start:
                yield self._token(T.TEXT, start, end)
            inside = opening + (4 if trims else 2)
            if text.startswith("/*", inside):
                self._comment(inside)
                continue
            yield self._token(T.LEFT, opening, opening + 2)
            self._pos = inside
            yield from self._action()

    def _comment(self, start: int) -> None:
        end = self._text.find("*/", start + 2)
        if end < 0:
            raise self._fault("unclosed comment", start)
        self._pos = end + 2
        if not self._at_right(self._pos):
            raise self._fault("comment ends before closing delimiter", start)
        self._skip_right()

    def _at_right(self, pos: int) -> bool:
        return self._text.startswith("}}", pos) or self._trims_right(pos)

    def _trims_right(self, pos: int) -> bool:
        return self._text[pos : pos + 1] in tuple(_SPACE) and self._text.startswith("-}}", pos + 1)

    def _skip_right(self) -> None:
        """Step over a closing delimiter and the white space that it trims."""
        trims = self._trims_right(self._pos)
        self._pos += 4 if trims else 2
        behind = self._pos
        while trims and self._text[self._pos : self._pos + 1] in tuple(_SPACE):
            self._pos += 1
        charge((self._pos - behind) / 8)

    def _action(self) -> Iterator[Token]:
        """The tokens up to and with the closing delimiter."""
        text, depth = self._text, 0
        while True:
            start = self._pos
            if self._at_right(start):
                if depth:
                    raise self._fault("unclosed left paren", start)
                line = self._line_at(start)
                self._skip_right()
                yield Token(T.RIGHT, "}}", start, line)
                return
            char = text[start : start + 1]
            if not char:
                raise self._fault("unclosed action", start)
            if char in _SPACE:
                yield self._spaces(start)
                continue
            if char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth < 0:
                    raise self._fault("unexpected right paren", start)
            yield self._operator(char, start) or self._operand(char, start)

    def _spaces(self, start: int) -> Token:
        end = start
        while self._text[end : end + 1] in tuple(_SPACE):
            end += 1
        # The last space may belong to a trim marker.
        if end - start > 1 and self._trims_right(end - 1):
            end -= 1
        return self._token(T.SPACE, start, end)

    def _operator(self, char: str, start: int) -> Token | None:
        if char == ":":
            if not self._text.startswith(":=", start):
                raise self._fault("expected :=", start)
            return self._token(T.DECLARE, start, start + 2)
        kind = {"=": T.ASSIGN, "|": T.PIPE, "(": T.OPEN, ")": T.CLOSE, ",": T.COMMA}.get(char)
        return self._token(kind, start, start + 1) if kind is not None else None

    def _operand(self, char: str, start: int) -> Token:
        if char == '"' or char == "'":
            return self._quoted(char, start)
        if char == "`":
            end = self._text.find("`", start + 1)
            if end < 0:
                raise self._fault("unterminated raw quoted string", start)
            return self._token(T.STRING, start, end + 1)
        if char == "$":
            return self._named(T.VARIABLE, start)
        following = self._text[start + 1 : start + 2]
        # Not isdigit: only 0 to 9 begin a number.
        if char == "." and not ("0" <= following <= "9" and following):
            return self._named(T.FIELD, start)
        if char in "+-." or "0" <= char <= "9":
            return self._number(start)
        if is_word(char):
            return self._word(start)
        if " " < char <= "~":
            return self._token(T.CHAR, start, start + 1)
        raise self._fault(f"unrecognized character in action: U+{ord(char):04X}", start)

    def _quoted(self, quote: str, start: int) -> Token:
        name = "quoted string" if quote == '"' else "character constant"
        pos = start + 1
        while True:
            char = self._text[pos : pos + 1]
            if char == "\\":
                pos += 1
                char = self._text[pos : pos + 1]
                if char and char != "\n":
                    pos += 1
                    continue
            if char in ("", "\n"):
                raise self._fault(f"unterminated {name}", start)
            pos += 1
            if char == quote:
                return self._token(T.STRING if quote == '"' else T.NUMBER, start, pos)

    def _named(self, kind: T, start: int) -> Token:
        """`.name` and `$name`, or the dot and dollar alone."""
        end = self._word_end(start + 1)
        if not self._at_terminator(end):
            raise self._fault(f"bad character U+{ord(self._text[end]):04X}", start)
        if end == start + 1 and kind is T.FIELD:
            kind = T.DOT
        return self._token(kind, start, end)

    def _number(self, start: int) -> Token:
        match = _NUMBER.match(self._text, start)
        end = match.end() if match else start
        following = self._text[end : end + 1]
        if match is None or (following and is_word(following)) or following in ("+", "-"):
            raise self._fault(f"bad number syntax: {self._text[start : end + 1]}", start)
        if match.group().endswith("i"):
            raise self._fault("complex numbers are not supported", start)
        return self._token(T.NUMBER, start, end)

    def _word(self, start: int) -> Token:
        end = self._word_end(start)
        if not self._at_terminator(end):
            raise self._fault(f"bad character U+{ord(self._text[end]):04X}", start)
        word = self._text[start:end]
        if word in KEYWORDS:
            kind = T.KEYWORD
        elif word in ("true", "false"):
            kind = T.BOOL
        else:
            kind = T.NIL if word == "nil" else T.IDENTIFIER
        return self._token(kind, start, end)

    def _word_end(self, pos: int) -> int:
        text = self._text
        while pos < len(text) and is_word(text[pos]):
            pos += 1
        return pos

    def _at_terminator(self, pos: int) -> bool:
        return pos >= len(self._text) or self._text[pos] in " \t\r\n.,|:)(" or self._text.startswith("}}", pos)
