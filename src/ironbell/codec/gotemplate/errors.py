"""Errors of rendering.

A message names types, fields and places, never values of the data: it ends up in conditions and events, and the data
may hold secrets.
"""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry


class TemplateError(IronbellError):
    """The template does not parse, or does not execute with its data.

    `line` counts from 1, `column` from 0 as text/template counts it; `excerpt` is that line of the template, cut.
    """

    reason = "TemplateError"
    retry = Retry.NEVER

    def __init__(self, problem: str, *, line: int, column: int = 0, excerpt: str = "") -> None:
        super().__init__(f"template line {line}: {problem}")
        self.problem = problem
        self.line = line
        self.column = column
        self.excerpt = excerpt


class LimitError(TemplateError):
    """The template is one, but takes more work, time or memory than it may; the message names limit and remedy."""

    reason = "TemplateLimitExceeded"


class CallError(Exception):
    """A function rejects its arguments, or exceeds a bound; the evaluator adds the place."""


class SyntaxFault(Exception):  # noqa: N818 - internal, turned into TemplateError
    """The text is not a template; `line` counts from 1."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
