"""snake_case, kebab-case and PascalCase, by the word rules of the library that sprig uses.

Source: huandu/xstrings v1.5.0: convert.go.
"""

from __future__ import annotations

import unicodedata
from enum import Enum, auto
from typing import Final

from ironbell.codec.gotemplate.sprig.runes import SPACE, to_lower, to_upper


class _Word(Enum):
    NONE = auto()
    NUMBER = auto()
    UPPER = auto()
    ALPHABET = auto()
    CONNECTOR = auto()
    PUNCTUATION = auto()
    OTHER = auto()


_GAPS: Final = (_Word.CONNECTOR, _Word.PUNCTUATION)
_JOINED: Final = (_Word.ALPHABET, _Word.NUMBER)


def _is_connector(char: str) -> bool:
    return char in "-_" or char in SPACE


def _is_upper(char: str) -> bool:
    return unicodedata.category(char) == "Lu"


def _is_alphabet(char: str) -> bool:
    if not char.isalpha():
        return False
    return not ("\u4e00" <= char <= "\u9fcc" or "\u3400" <= char <= "\u4d85" or "\U00020000" <= char <= "\U0002b81d")


def _kind(char: str) -> _Word:
    if _is_connector(char):
        return _Word.CONNECTOR
    category = unicodedata.category(char)
    if category[0] == "P":
        return _Word.PUNCTUATION
    if category == "Lu":
        return _Word.UPPER
    if _is_alphabet(char):
        return _Word.ALPHABET
    return _Word.NUMBER if category[0] == "N" else _Word.OTHER


def _words(text: str) -> list[tuple[_Word, str]]:
    words = []
    start = 0
    while start < len(text):
        kind = _kind(text[start])
        end = _upper_end(text, start) if kind is _Word.UPPER else _run_end(text, start, kind)
        words.append((kind, text[start:end]))
        start = end
    return words


def _run_end(text: str, start: int, kind: _Word) -> int:
    end = start + 1
    while end < len(text) and _continues(text[end], kind):
        end += 1
    return end


def _continues(char: str, kind: _Word) -> bool:
    """Return whether a word of this kind continues; punctuation takes in connectors that are punctuation too."""
    if kind is _Word.PUNCTUATION:
        return unicodedata.category(char)[0] == "P"
    if kind is _Word.ALPHABET:
        return _is_alphabet(char) and not _is_upper(char)
    return _kind(char) is kind


def _upper_end(text: str, start: int) -> int:
    """An upper-case letter with the lower-case ones behind it, or a run of upper-case ones that leaves such a word."""
    end = start + 1
    if end == len(text):
        return end
    if _is_upper(text[end]):
        while end < len(text) and _is_upper(text[end]):
            end += 1
        return end - 1 if end < len(text) and _is_alphabet(text[end]) else end
    while end < len(text) and _is_alphabet(text[end]) and not _is_upper(text[end]):
        end += 1
    return end


class _Joiner:
    def __init__(self, text: str, connector: str) -> None:
        self._words = _words(text)
        self._next = 0
        self._connector = connector
        self._out: list[str] = []

    def _take(self) -> tuple[_Word, str]:
        self._next += 1
        return self._words[self._next - 1] if self._next <= len(self._words) else (_Word.NONE, "")

    def _left(self) -> bool:
        return self._next < len(self._words)

    def _put(self, word: tuple[_Word, str]) -> None:
        kind, text = word
        if kind not in (_Word.UPPER, _Word.CONNECTOR):
            self._out.append(text)
            return
        for char in text:
            self._out.append(self._connector if _is_connector(char) else to_lower(char) if _is_upper(char) else char)

    def _put_joined(self, word: tuple[_Word, str]) -> tuple[_Word, str]:
        """Letters and digits stay together behind a number; gives the word after them, set apart if need be."""
        while word[0] in _JOINED:
            self._put(word)
            word = self._take()
        if word[0] is not _Word.NONE and word[0] not in _GAPS:
            self._out.append(self._connector)
        return word

    def run(self) -> str:
        word = self._take()
        while self._left():
            if word[0] is not _Word.CONNECTOR:
                self._put(word)
            previous, word = word, self._take()
            match previous[0]:
                case _Word.NUMBER:
                    word = self._put_joined(word)
                case _Word.CONNECTOR:
                    self._put(previous)
                case _Word.PUNCTUATION:
                    pass
                case _:
                    word = self._after_letters(word)
        self._put(word)
        return "".join(self._out)

    def _after_letters(self, word: tuple[_Word, str]) -> tuple[_Word, str]:
        if word[0] is not _Word.NUMBER:
            if word[0] not in _GAPS:
                self._out.append(self._connector)
            return word
        if not self._left():
            return word
        number, word = word, self._take()
        if word[0] is not _Word.ALPHABET:
            self._put(number)
            if word[0] not in _GAPS:
                self._out.append(self._connector)
            return word
        self._out.append(self._connector)
        self._put(number)
        return self._put_joined(word)


def lower_words(text: str, connector: str) -> str:
    """Words in lower case with a connector between them."""
    return _Joiner(text, connector).run() if text else ""


def pascal_case(text: str) -> str:
    """Words joined, each with its first letter in upper case; leading connectors stay."""
    body = text.lstrip("-_" + "".join(SPACE))
    leading = text[: len(text) - len(body)]
    if not body:
        return leading + leading[-1:] if leading else ""
    result = [leading]
    upper_run = _is_upper(body[0])
    current = to_upper(body[0])
    for char in body[1:]:
        previous, current = current, char
        if _is_connector(current) and _is_connector(previous):
            result.append(previous)
            continue
        if _is_connector(previous):
            upper_run = _is_upper(current)
            current = to_upper(current)
            continue
        if upper_run:
            if _is_upper(current):
                current = to_lower(current)
            else:
                upper_run = False
        result.append(previous)
    return "".join(result) + current
