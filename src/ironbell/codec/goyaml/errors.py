"""The one error of the YAML codec."""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry


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
