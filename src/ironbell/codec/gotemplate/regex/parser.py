"""RE2 syntax to a tree.

Source: golang/go: src/regexp/syntax/parse.go (flags Perl).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ironbell.codec.gotemplate.regex.charclass import CATEGORIES, PERL, POSIX, CharClass

_MAX_REPEAT = 1000
_MAX_DEPTH = 200
_REPEAT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_GROUP_NAME = re.compile(r"\(\?P?<([^>]*)>")
_NAME = re.compile(r"[0-9A-Za-z_]+")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:(-)([imsU]+))?([:)])")
_SIMPLE_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class RegexError(Exception):
    """The expression is none that Go accepts."""


@dataclass(slots=True)
class Empty:
    """Matches nothing, of zero width, or asserts a place: ^ $ (of the text or, as Ml and Mr, of a line), b, B."""

    assertion: str = ""


@dataclass(slots=True)
class Chars:
    chars: CharClass


@dataclass(slots=True)
class Group:
    """A sub-expression; `index` is that of its capture, 0 for none."""

    body: Tree
    index: int
    name: str = ""


@dataclass(slots=True)
class Concat:
    parts: list[Tree] = field(default_factory=list)


@dataclass(slots=True)
class Alternate:
    choices: list[Tree]


@dataclass(slots=True)
class Repeat:
    """At least `low` and at most `high` times (None: any number)."""

    body: Tree
    low: int
    high: int | None
    greedy: bool


Tree = Empty | Chars | Group | Concat | Alternate | Repeat


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    multi_line: bool = False
    dot_newline: bool = False
    ungreedy: bool = False


def parse(text: str) -> tuple[Tree, list[str]]:
    """The tree and the names of its groups, by index; the whole is group 0.

    Raises:
        RegexError: Go would not compile it, or it uses Unicode scripts.
    """
    parser = _Parser(text)
    tree = parser.alternation(0)
    if not parser.at_end():
        raise RegexError("unexpected )")
    return tree, parser.names


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._flags = _Flags()
        self.names = [""]

    def at_end(self) -> bool:
        return self._pos >= len(self._text)

    def _peek(self) -> str:
        return self._text[self._pos : self._pos + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise RegexError("trailing backslash at end of expression")
        self._pos += 1
        return char

    def alternation(self, depth: int) -> Tree:
        """Everything up to a closing parenthesis or the end."""
        if depth > _MAX_DEPTH:
            raise RegexError("expression nests too deeply")
        choices: list[Tree] = [self._concat(depth)]
        while self._peek() == "|":
            self._pos += 1
            choices.append(self._concat(depth))
        return choices[0] if len(choices) == 1 else Alternate(choices)

    def _concat(self, depth: int) -> Tree:
        parts: list[Tree] = []
        just_repeated = False
        while (char := self._peek()) not in ("", "|", ")"):
            repeat = self._repetition(char)
            if repeat is not None:
                if just_repeated:
                    raise RegexError("invalid nested repetition operator")
                if not parts:
                    raise RegexError("missing argument to repetition operator")
                low, high = repeat
                greedy = not self._flags.ungreedy
                if self._peek() == "?":
                    self._pos += 1
                    greedy = not greedy
                parts[-1] = Repeat(parts[-1], low, high, greedy)
                if (low > 1 or (high or 0) > 1) and repeat_size(parts[-1]) > _MAX_REPEAT:
                    raise RegexError("invalid repeat count")
                just_repeated = True
                continue
            just_repeated = False
            parts += self._atoms(char, depth)
        return parts[0] if len(parts) == 1 else Concat(parts)

    def _repetition(self, char: str) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if char in simple:
            self._pos += 1
            return simple[char]
        match = _REPEAT.match(self._text, self._pos) if char == "{" else None
        if match is None or any(len(digits or "") > 1 and (digits or "")[0] == "0" for digits in match.group(1, 3)):
            return None
        low = int(match[1][:6])
        high = low if match[2] is None else int(match[3][:6]) if match[3] else None
        if low > _MAX_REPEAT or (high is not None and (high > _MAX_REPEAT or low > high)):
            raise RegexError("invalid repeat count")
        self._pos = match.end()
        return low, high

    def _atoms(self, char: str, depth: int) -> list[Tree]:
        """The next atom; none for flags, several for quoted text."""
        match char:
            case "(":
                return self._group(depth)
            case "[":
                return [Chars(self._bracket())]
            case "\\":
                return self._escape()
        self._pos += 1
        flags = self._flags
        match char:
            case ".":
                newline = [] if flags.dot_newline else [("\n", "\n")]
                return [Chars(CharClass(ranges=newline, negated=True))]
            case "^":
                return [Empty("Ml" if flags.multi_line else "^")]
            case "$":
                return [Empty("Mr" if flags.multi_line else "$")]
        return [self._literal(char)]

    def _literal(self, char: str) -> Tree:
        return Chars(CharClass(ranges=[(char, char)], fold=self._flags.fold))

    def _group(self, depth: int) -> list[Tree]:
        outer, name = self._flags, ""
        capture = True
        if self._text.startswith("(?", self._pos):
            named = _GROUP_NAME.match(self._text, self._pos)
            if named is not None:
                name = named[1]
                if not _NAME.fullmatch(name):
                    raise RegexError("invalid named capture")
                self._pos = named.end()
            else:
                capture = False
                if self._set_flags() == ")":
                    return []
        else:
            self._pos += 1
        index = 0
        if capture:
            index = len(self.names)
            self.names.append(name)
        body = self.alternation(depth + 1)
        if self._peek() != ")":
            raise RegexError("missing closing )")
        self._pos += 1
        self._flags = outer
        return [Group(body, index, name)]

    def _set_flags(self) -> str:
        match = _FLAGS.match(self._text, self._pos)
        if match is None:
            raise RegexError("invalid or unsupported Perl syntax")
        self._pos = match.end()
        names = {"i": "fold", "m": "multi_line", "s": "dot_newline", "U": "ungreedy"}
        changes = {names[flag]: True for flag in match[1]} | {names[flag]: False for flag in match[3] or ""}
        self._flags = replace(self._flags, **changes)
        return match[4]

    def _escape(self) -> list[Tree]:
        following = self._text[self._pos + 1 : self._pos + 2]
        places = {"A": "^", "z": "$", "b": "b", "B": "B"}
        if following in places and following:
            self._pos += 2
            return [Empty(places[following])]
        if following == "Q":
            end = self._text.find("\\E", self._pos + 2)
            quoted = self._text[self._pos + 2 : end if end >= 0 else len(self._text)]
            self._pos = end + 2 if end >= 0 else len(self._text)
            return [self._literal(char) for char in quoted]
        chars = CharClass(fold=self._flags.fold)
        if self._named_class(chars):
            return [Chars(chars)]
        return [self._literal(self._escaped_char())]

    def _named_class(self, chars: CharClass) -> bool:
        """Add \\d and the like or \\p{..} to a class, if that is what comes next."""
        kind = self._text[self._pos + 1 : self._pos + 2]
        if not kind or kind not in "dDsSwWpP":
            return False
        self._pos += 2
        if kind in "pP":
            name, negated = self._category(), kind == "P"
            if name.startswith("^"):
                name, negated = name[1:], not negated
            if name not in CATEGORIES:
                raise RegexError("invalid or unsupported character class range")
            chars.categories.append((name, negated))
        elif kind.isupper():
            chars.without.append(PERL[kind.lower()])
        else:
            chars.ranges += PERL[kind]
        return True

    def _category(self) -> str:
        if self._peek() != "{":
            return self._take()
        end = self._text.find("}", self._pos)
        if end < 0:
            raise RegexError("invalid character class range")
        name = self._text[self._pos + 1 : end]
        self._pos = end + 1
        return name

    def _escaped_char(self) -> str:
        self._pos += 1
        char = self._take()
        if char in "01234567":
            digits = re.compile("[0-7]{0,2}").match(self._text, self._pos)
            more = digits.group() if digits else ""
            if char != "0" and not more:
                raise RegexError("invalid escape sequence")
            self._pos += len(more)
            return chr(int(char + more, 8))
        if char == "x":
            match = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2})").match(self._text, self._pos)
            code = int((match[1] or match[2])[-8:], 16) if match else -1
            if match is None or code > 0x10FFFF or len((match[1] or "").lstrip("0")) > 6:
                raise RegexError("invalid escape sequence")
            self._pos = match.end()
            return chr(code)
        if char in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[char]
        if char < "\x80" and not char.isalnum():
            return char
        raise RegexError("invalid escape sequence")

    def _bracket(self) -> CharClass:
        self._pos += 1
        chars = CharClass(fold=self._flags.fold)
        if self._peek() == "^":
            self._pos += 1
            chars.negated = True
        first = True
        while self._peek() != "]" or first:
            if self.at_end():
                raise RegexError("missing closing ]")
            following = self._text[self._pos + 1 : self._pos + 2]
            if self._peek() == "-" and not first and following != "]":
                raise RegexError("invalid character class range")
            first = False
            if not (self._posix(chars) or (self._peek() == "\\" and self._named_class(chars))):
                self._range(chars)
        self._pos += 1
        return chars

    def _posix(self, chars: CharClass) -> bool:
        if not self._text.startswith("[:", self._pos):
            return False
        end = self._text.find(":]", self._pos + 2)
        if end < 0:
            return False
        name = self._text[self._pos + 2 : end]
        negated = name.startswith("^")
        ranges = POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise RegexError("invalid character class range")
        self._pos = end + 2
        if negated:
            chars.without.append(ranges)
        else:
            chars.ranges += ranges
        return True

    def _range(self, chars: CharClass) -> None:
        low = high = self._class_char()
        if self._peek() == "-" and self._text[self._pos + 1 : self._pos + 2] not in ("", "]"):
            self._pos += 1
            high = self._class_char()
            if high < low:
                raise RegexError("invalid character class range")
        chars.ranges.append((low, high))

    def _class_char(self) -> str:
        if self.at_end():
            raise RegexError("missing closing ]")
        return self._escaped_char() if self._peek() == "\\" else self._take()


def repeat_size(tree: Tree) -> int:
    """How often nested repetitions multiply; Go refuses more than a thousand."""
    match tree:
        case Repeat():
            count = tree.high if tree.high is not None else tree.low
            return max(1, count) * repeat_size(tree.body)
        case Group():
            return repeat_size(tree.body)
        case Concat():
            return max(map(repeat_size, tree.parts), default=1)
        case Alternate():
            return max(map(repeat_size, tree.choices))
    return 1
