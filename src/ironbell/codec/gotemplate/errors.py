"""Errors and limits of rendering.

A message names types, fields and places, never values of the data: it ends up in conditions and events, and the data
may hold secrets.
"""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry

OUTPUT_BYTES = 262_144
STEPS = 1_000_000
"""Evaluated nodes, and the work of functions; see `meter`."""
SECONDS = 8.0
"""Limit of processor time."""
BRIEF_STEPS, BRIEF_SECONDS = 40_000, 0.25
"""For templates that are rendered where other work waits for them, such as names and patches: plenty for what these do,
and no key and no password hash."""
KEY_BYTES, KEY_BITS = 16_384, 8_192
"""Limit for a private key or certificate in a template: operations on larger ones take minutes."""
ITEMS = 100_000
"""Elements of one list or map."""
TEXT_CHARS = 4 << 20
"""Characters of one string that a function returns."""
DEPTH = 60
"""Templates that call each other, and nested blocks and parentheses."""


def check_items(count: int) -> None:
    """Reject a list of more than ITEMS elements before it is created."""
    if count > ITEMS:
        raise CallError(f"more than {ITEMS} elements")


def check_chars(count: int) -> None:
    """Reject a string of more than TEXT_CHARS characters before it is created."""
    if count > TEXT_CHARS:
        raise CallError(f"a text of more than {TEXT_CHARS} characters")


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
