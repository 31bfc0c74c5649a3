"""Texts to tokens.

Source: google/cel-spec: doc/langdef.md, "Syntax".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ironbell.codec.cel.errors import CelSyntaxError, Fault

MAX_LENGTH = 100_000


class TokenType(Enum):
    """Type of a token."""

    IDENTIFIER = "identifier"
    LITERAL = "literal"
    SYMBOL = "symbol"
    END = "end of the expression"


@dataclass(frozen=True, slots=True)
class Uint:
    """An unsigned integer, which CEL keeps apart from signed ones."""

    value: int


@dataclass(frozen=True, slots=True)
class Token:
    """A token; `value` is the literal's value, `text` what was written."""

    type: TokenType
    text: str
    offset: int
    value: Any = None


_PATTERN = re.compile(
    r"""(?P<space>[\s]+|//[^\n]*)
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<integer>0[xX][0-9a-fA-F]+|\d+)(?P<unsigned>[uU])?
    |(?P<string>[bBrR]{0,2}(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
    |(?P<identifier>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<symbol>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_RAW_STRING = re.compile(r"[rR][bB]?('''.*?'''|\"\"\".*?\"\"\"|'[^'\n]*'|\"[^\"\n]*\")", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_QUOTES = re.compile(r"""[bB]?(?P<quotes>'''|\"\"\"|['"])""")
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {c: c for c in "\\?\"'`"}
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}


def tokenize(text: str) -> tuple[list[Token], list[Fault]]:
    """Return all tokens, with an END at the end, and the faults between them.

    Raises:
        CelSyntaxError: the text is too long.
    """
    if len(text) > MAX_LENGTH:
        raise CelSyntaxError(f"the expression is longer than {MAX_LENGTH} characters", offset=MAX_LENGTH)
    tokens: list[Token] = []
    faults: list[Fault] = []
    offset = 0
    while offset < len(text):
        match = _RAW_STRING.match(text, offset) or _PATTERN.match(text, offset)
        end = match.end() if match is not None else _end_of_fault(text, offset)
        if match is not None and match.re is not _RAW_STRING and match.lastgroup == "space":
            offset = end
            continue
        token = _token(match, offset) if match is not None else None
        if token is None:
            end = _end_of_fault(text, offset)
            faults.append(Fault(offset, f"Syntax error: token recognition error at: '{text[offset:end]}'"))
        else:
            tokens.append(token)
        offset = end
    tokens.append(Token(TokenType.END, "<EOF>", len(text)))
    return tokens, faults


def _end_of_fault(text: str, offset: int) -> int:
    """Behind the character that makes a token of what begins here impossible."""
    first = text[offset]
    if first in "=&|":
        return min(offset + 2, len(text))  # each could have become an operator of two characters
    opening = _QUOTES.match(text, offset)
    if opening is None:
        return offset + 1
    place = opening.end()
    while place < len(text):
        escape = _ESCAPE.match(text, place)
        if escape is not None and escape.group(5) is not None and escape.group(5) not in _SIMPLE:
            return place + 2
        if text[place] == "\n" and len(opening["quotes"]) == 1:
            return place + 1
        place = escape.end() if escape is not None else place + 1
    return len(text)


def _token(match: re.Match[str], offset: int) -> Token | None:
    """The token, or None for a text with an unknown escape."""
    text = match.group()
    if match.re is _RAW_STRING:
        return _text_token(text, offset)
    groups = match.groupdict()
    if groups["float"] is not None:
        return Token(TokenType.LITERAL, text, offset, float(text))
    if groups["integer"] is not None:
        number = int(groups["integer"], 16 if groups["integer"][:2].lower() == "0x" else 10)
        return Token(TokenType.LITERAL, text, offset, Uint(number) if groups["unsigned"] else number)
    if groups["string"] is not None:
        return _text_token(text, offset)
    if groups["identifier"] is not None:
        if text in _CONSTANTS:
            return Token(TokenType.LITERAL, text, offset, _CONSTANTS[text])
        return Token(TokenType.IDENTIFIER, text, offset)
    return Token(TokenType.SYMBOL, text, offset)


def _text_token(text: str, offset: int) -> Token | None:
    prefix = text[: len(text) - len(text.lstrip("bBrR"))].lower()
    body = text[len(prefix) :]
    quotes = 3 if body[:3] in {"'''", '"""'} else 1
    body = body[quotes:-quotes]
    if "r" not in prefix:
        try:
            body = _ESCAPE.sub(_unescape, body)
        except ValueError:
            return None
    value: str | bytes = body.encode("latin-1", "replace") if "b" in prefix else body
    return Token(TokenType.LITERAL, text, offset, value)


def _unescape(escape: re.Match[str]) -> str:
    for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
        if escape.group(group):
            number = int(escape.group(group), base)
            if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
                break
            return chr(number)
    simple = _SIMPLE.get(escape.group(5) or "")
    if simple is None:
        raise ValueError(escape.group())
    return simple
