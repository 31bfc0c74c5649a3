"""Errors of expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ironbell.base.errors import IronbellError, Retry


class CelError(IronbellError, ValueError):
    """An expression cannot be evaluated for these values."""

    reason, retry = "InvalidExpressionValue", Retry.NEVER


class NoOverloadError(CelError):
    """No operator or function takes values of these types."""

    def __init__(self, message: str) -> None:
        super().__init__(f"no such overload: {message}")


class MissingError(CelError):
    """A field, key or element is absent: optional access tolerates it."""


class Fault(NamedTuple):
    """A problem at a place of a text."""

    offset: int
    message: str


class CelSyntaxError(CelError):
    """A text is not an expression, or an expression that can never work."""

    reason = "InvalidExpression"

    def __init__(self, message: str, *, offset: int = 0, faults: Sequence[Fault] = ()) -> None:
        """`faults` are all that there are, if there are several."""
        super().__init__(message)
        self.faults = tuple(faults) or (Fault(offset, message),)


class CelResultError(CelSyntaxError):
    """An expression is sound, and its value is of another type than is needed, or there can be none."""


@contextmanager
def placing_faults(text: str) -> Iterator[None]:
    """Show in what goes wrong with a text where it is in the text, as cel-go does.

    Source: google/cel-go: common/error.go (ToDisplayString), common/source.go.

    Raises:
        CelSyntaxError: one was raised inside; with the place of each fault in its message.
    """
    try:
        yield
    except CelResultError:
        raise  # it is the whole text
    except CelSyntaxError as error:
        faults = sorted(error.faults, key=lambda fault: fault.offset)
        raise CelSyntaxError("\n".join(_marked(text, fault) for fault in faults), faults=faults) from error
    except RecursionError:  # a chain of thousands of operators
        raise CelSyntaxError("the expression is too long a chain") from None


def _marked(text: str, fault: Fault) -> str:
    preceding = text[: fault.offset]
    line, column = preceding.count("\n") + 1, fault.offset - (preceding.rfind("\n") + 1)
    whole = text.split("\n")[line - 1].replace("\t", " ")
    dots = "".join("." if character.isascii() else "\uff0e" for character in whole[:column])
    mark = "^" if whole[column : column + 1].isascii() else "\uff3e"
    return f"ERROR: <input>:{line}:{column + 1}: {fault.message}\n | {whole}\n | {dots}{mark}"
