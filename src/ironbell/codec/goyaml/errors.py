"""The error of the YAML codec, and the limits of a text: a few lines with aliases otherwise grow to gigabytes."""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.base.errors import IronbellError, Retry


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one text. `aliased_nodes` are those that exist only because an alias repeats them."""

    size_bytes: int = 16 << 20
    depth: int = 100
    aliased_nodes: int = 100_000


DEFAULT_LIMITS = Limits()


class YamlError(IronbellError):
    """The text is no YAML, or none that has a JSON form, or it is beyond the limits.

    `line` counts from 1 and is 0 where no line is to blame. The message never quotes values, only words of the text
    that a tag or the syntax made wrong.
    """

    reason = "InvalidYAML"
    retry = Retry.NEVER

    def __init__(self, problem: str, *, line: int = 0) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.problem = problem
        self.line = line
