"""Trees to programs, and programs against text: backtracking that never looks at one state in one place twice.

Leftmost, first alternative first, as Go's default.

Source: golang/go: src/regexp/syntax/compile.go, src/regexp/backtrack.go, src/regexp/regexp.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from ironbell.codec.gotemplate.regex.charclass import CharClass, is_word
from ironbell.codec.gotemplate.regex.parser import (
    Alternate,
    Chars,
    Concat,
    Empty,
    Group,
    RegexError,
    Repeat,
    Tree,
    parse,
)

_MAX_INSTRUCTIONS: Final = 20_000
_MAX_STATES: Final = 4_000_000
_REFERENCE = re.compile(r"\$(?:\$|([\w]+)|\{(\w+)\})")


class _Op(Enum):
    CHAR = auto()
    SPLIT = auto()
    JUMP = auto()
    SAVE = auto()
    ASSERT = auto()
    MATCH = auto()


_ANY: Final = CharClass(negated=True)


@dataclass(slots=True)
class _Instruction:
    """`to` is a jump's or split's first target or a slot; `other` a split's second target."""

    op: _Op
    to: int = 0
    other: int = 0
    chars: CharClass = field(default_factory=lambda: _ANY)
    assertion: str = ""


class _Compiler:
    def __init__(self) -> None:
        self.program: list[_Instruction] = []

    def _emit(self, op: _Op, to: int = 0, *, chars: CharClass = _ANY, assertion: str = "") -> int:
        if len(self.program) >= _MAX_INSTRUCTIONS:
            raise RegexError("expression too large")
        self.program.append(_Instruction(op, to, chars=chars, assertion=assertion))
        return len(self.program) - 1

    def _split(self, split: int, first: int, second: int) -> None:
        self.program[split].to, self.program[split].other = first, second

    def finish(self, tree: Tree) -> list[_Instruction]:
        self._emit(_Op.SAVE, 0)
        self._compile(tree)
        self._emit(_Op.SAVE, 1)
        self._emit(_Op.MATCH)
        return self.program

    def _compile(self, tree: Tree) -> None:
        match tree:
            case Empty():
                if tree.assertion:
                    self._emit(_Op.ASSERT, assertion=tree.assertion)
            case Chars():
                self._emit(_Op.CHAR, chars=tree.chars)
            case Group():
                if tree.index:
                    self._emit(_Op.SAVE, 2 * tree.index)
                self._compile(tree.body)
                if tree.index:
                    self._emit(_Op.SAVE, 2 * tree.index + 1)
            case Concat():
                for part in tree.parts:
                    self._compile(part)
            case Alternate():
                self._alternate(tree.choices)
            case Repeat():
                self._repeat(tree)

    def _alternate(self, choices: list[Tree]) -> None:
        jumps = []
        for choice in choices[:-1]:
            split = self._emit(_Op.SPLIT)
            self._compile(choice)
            jumps.append(self._emit(_Op.JUMP))
            self._split(split, split + 1, len(self.program))
        self._compile(choices[-1])
        for jump in jumps:
            self.program[jump].to = len(self.program)

    def _repeat(self, tree: Repeat) -> None:
        for _ in range(tree.low if tree.high is not None else max(0, tree.low - 1)):
            self._compile(tree.body)
        if tree.high is None:
            if tree.low:
                self._plus(tree)
            elif nullable(tree.body):
                # Go compiles x* of a body that may be empty as (x+)?, for the order of its alternatives.
                self._optional(tree, lambda: self._plus(tree))
            else:
                self._star(tree)
            return
        self._optionals(tree, tree.high - tree.low)

    def _optionals(self, tree: Repeat, count: int) -> None:
        splits = []
        for _ in range(count):
            splits.append(self._emit(_Op.SPLIT))
            self._compile(tree.body)
        for split in splits:
            self._target(split, len(self.program), greedy=tree.greedy)

    def _optional(self, tree: Repeat, body: Callable[[], None]) -> None:
        split = self._emit(_Op.SPLIT)
        body()
        self._target(split, len(self.program), greedy=tree.greedy)

    def _star(self, tree: Repeat) -> None:
        split = self._emit(_Op.SPLIT)
        self._compile(tree.body)
        self._emit(_Op.JUMP, split)
        self._target(split, len(self.program), greedy=tree.greedy)

    def _plus(self, tree: Repeat) -> None:
        start = len(self.program)
        self._compile(tree.body)
        split = self._emit(_Op.SPLIT)
        again, leave = start, split + 1
        self._split(split, *((again, leave) if tree.greedy else (leave, again)))

    def _target(self, split: int, end: int, *, greedy: bool) -> None:
        self._split(split, *((split + 1, end) if greedy else (end, split + 1)))


def nullable(tree: Tree) -> bool:
    """Whether a tree can match nothing."""
    match tree:
        case Empty():
            return True
        case Chars():
            return False
        case Group():
            return nullable(tree.body)
        case Concat():
            return all(map(nullable, tree.parts))
        case Alternate():
            return any(map(nullable, tree.choices))
        case Repeat():
            return tree.low == 0 or nullable(tree.body)


class Regex:
    """A compiled expression."""

    def __init__(self, expression: str) -> None:
        """Compile.

        Raises:
            RegexError: the expression is none.
        """
        tree, self._names = parse(expression)
        self._expression = expression
        self._program = _Compiler().finish(tree)

    def search(self, text: str, start: int = 0) -> list[int] | None:
        """The leftmost match at or behind `start`: positions of the whole and of each group, -1 for none."""
        visited: set[int] = set()
        for position in range(start, len(text) + 1):
            found = self._run(text, position, visited)
            if found is not None:
                return found
        return None

    def _run(self, text: str, start: int, visited: set[int]) -> list[int] | None:
        program, size = self._program, len(text) + 1
        slots = [-1] * (2 * len(self._names))
        stack: list[tuple[int, int]] = [(0, start)]
        while stack:
            state, position = stack.pop()
            if state < 0:
                slots[-state - 1] = position
                continue
            while True:
                key = state * size + position
                if key in visited:
                    break
                visited.add(key)
                if len(visited) > _MAX_STATES:
                    raise RegexError("matching takes too long")
                instruction = program[state]
                match instruction.op:
                    case _Op.CHAR:
                        if position >= len(text) or text[position] not in instruction.chars:
                            break
                        state, position = state + 1, position + 1
                    case _Op.SPLIT:
                        stack.append((instruction.other, position))
                        state = instruction.to
                    case _Op.JUMP:
                        state = instruction.to
                    case _Op.SAVE:
                        stack.append((-instruction.to - 1, slots[instruction.to]))
                        slots[instruction.to] = position
                        state += 1
                    case _Op.ASSERT:
                        if not _holds(instruction.assertion, text, position):
                            break
                        state += 1
                    case _Op.MATCH:
                        return slots
        return None

    def find_all(self, text: str, count: int) -> Iterator[list[int]]:
        """Matches that do not overlap; a negative count for all of them."""
        position, previous_end, given = 0, -1, 0
        while position <= len(text) and given != count:
            match = self.search(text, position)
            if match is None:
                return
            accept = True
            if match[1] == position:
                # No empty match right behind another match.
                accept = match[0] != previous_end
                position += 1
            else:
                position = match[1]
            previous_end = match[1]
            if accept:
                given += 1
                yield match

    def replace(self, text: str, replacement: Callable[[list[int]], str]) -> str:
        """The text with each match replaced."""
        parts: list[str] = []
        last_end = position = 0
        while position <= len(text):
            match = self.search(text, position)
            if match is None:
                break
            start, end = match[0], match[1]
            parts.append(text[last_end:start])
            if end > last_end or start == 0:
                parts.append(replacement(match))
            last_end = end
            position = max(position + 1, end)
        parts.append(text[last_end:])
        return "".join(parts)

    def expand(self, template: str, text: str, match: list[int]) -> str:
        """A replacement with its $1, ${1} and $name filled in; unknown ones are empty."""

        def value(reference: re.Match[str]) -> str:
            name = reference[1] or reference[2]
            if name is None:
                return "$"
            if name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and len(name) < 9:
                candidates = [int(name)]
            else:
                candidates = [index for index, known in enumerate(self._names) if known == name]
            for index in candidates:
                if 2 * index < len(match) and match[2 * index] >= 0:
                    return text[match[2 * index] : match[2 * index + 1]]
            return ""

        return _REFERENCE.sub(value, template)

    def split(self, text: str, count: int) -> list[str] | None:
        """The parts between matches; None for a count of 0."""
        if count == 0:
            return None
        if self._expression and not text:
            return [""]
        parts: list[str] = []
        begin = end = 0
        for match in self.find_all(text, count):
            if count > 0 and len(parts) == count - 1:
                break
            end = match[0]
            if match[1] != 0:
                parts.append(text[begin:end])
            begin = match[1]
        if end != len(text):
            parts.append(text[begin:])
        return parts


def _holds(assertion: str, text: str, position: int) -> bool:
    match assertion:
        case "^":
            return position == 0
        case "$":
            return position == len(text)
        case "Ml":
            return position == 0 or text[position - 1] == "\n"
        case "Mr":
            return position == len(text) or text[position] == "\n"
    before = position > 0 and is_word(text[position - 1])
    after = position < len(text) and is_word(text[position])
    return (before != after) == (assertion == "b")


def quote_meta(text: str) -> str:
    """The expression that matches exactly this text."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)
