"""Regular expressions in Go's syntax, from any sender, in time linear in the text.

Python's own `re` has another syntax, and takes exponential time on expressions such as `(a+)+$`. RE2 does not; what
remains is that a large program over a long text is slow, which is limited twice: in the size of a program, and by
spending of the allowance in `effort`.

Source: github.com/google/re2: doc/syntax.txt, re2/re2.h (max_mem).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import re2

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import effort

MAX_PROGRAM = 5_000
"""Instructions; the largest in Cluster API's and Tinkerbell's definitions has a fifth of that."""
# Measured: no program takes longer for one instruction at one place of the text.
_WORST_S, _CALL_S = 20e-9, 3e-6


class PatternError(IronbellError, ValueError):
    """A text is not a regular expression, or too large a one; `in_go` is the message of Go's parser."""

    reason, retry = "InvalidPattern", Retry.NEVER

    def __init__(self, message: str, *, in_go: str) -> None:
        super().__init__(message)
        self.in_go = in_go


class Pattern:
    """A compiled expression; it is searched for, and not anchored by itself."""

    __slots__ = ("_search", "_size", "text")

    def __init__(self, text: str, compiled: Any) -> None:
        self.text = text
        self._search = compiled.search
        self._size: float = compiled.programsize * _WORST_S

    def matches(self, text: str) -> bool:
        """Return whether the expression matches in a text.

        Raises:
            TooMuchEffort: see `effort`.
        """
        return self._find(text.encode("utf-8", "surrogatepass"), 0) is not None

    def find_all(self, text: str) -> Iterator[str]:
        """Return the matches in a text, without overlap.

        Raises:
            TooMuchEffort: see `effort`.
        """
        encoded, position = text.encode("utf-8", "surrogatepass"), 0
        while position <= len(encoded):
            span = self._find(encoded, position)
            if span is None:
                return
            start, end = span
            yield encoded[start:end].decode("utf-8", "surrogatepass")
            position = end if end > start else end + _character_bytes(encoded, end)

    def _find(self, encoded: bytes, position: int) -> tuple[int, int] | None:
        started = time.perf_counter()
        match = self._search(encoded, position)
        # A pause of the whole process counts for no more than the match could have taken.
        worst = (len(encoded) - position) * self._size + _CALL_S
        effort.spend(max(_CALL_S, min(time.perf_counter() - started, worst)))
        return match.span() if match is not None else None


def _character_bytes(encoded: bytes, position: int) -> int:
    size = 1
    while position + size < len(encoded) and encoded[position + size] & 0xC0 == 0x80:
        size += 1
    return size


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern.

    Raises:
        PatternError: the text is not a regular expression, or is too large.
    """
    try:
        compiled = re2.compile(pattern, options=_options())
    except (re2.error, UnicodeEncodeError) as error:
        message = f"{pattern!r} is not a usable regular expression: {_cause(error)}"
        in_go = fault_in_go(error, quoting=True) if isinstance(error, re2.error) else "invalid UTF-8"
        raise PatternError(message, in_go=in_go) from error
    if compiled.programsize > MAX_PROGRAM:
        raise PatternError(
            f"{pattern!r} is not a usable regular expression: it is too large", in_go="expression too large"
        )
    return Pattern(pattern, compiled)


@lru_cache(maxsize=1)
def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # nobody asks for groups, and without them RE2 is faster
    return options


_IN_GO: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""Messages of Go's parser by those of RE2's for the same faults."""


def fault_in_go(error: Exception, *, quoting: bool) -> str:
    """Return an error of RE2's in Go's words; `quoting` the offending part of the expression.

    Source: golang/go: src/regexp/syntax/parse.go (ErrorCode); google/re2: re2/regexp.cc (kErrorStrings).
    """
    fault, colon, where = _cause(error).partition(": ")
    return f"{_IN_GO.get(fault, fault)}: `{where}`" if colon and quoting else _IN_GO.get(fault, fault)


def _cause(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return cause.decode(errors="replace") if isinstance(cause, bytes) else str(cause)
