"""Errors of expressions."""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry


class CelError(IronbellError, ValueError):
    """An expression cannot be evaluated for these values."""

    reason, retry = "InvalidExpressionValue", Retry.NEVER


class MissingError(CelError):
    """A field, key or element is not there: what optional access forgives."""


class CelSyntaxError(CelError):
    """A text is no expression; `offset` is where it stops being one."""

    reason = "InvalidExpression"

    def __init__(self, message: str, *, offset: int) -> None:
        super().__init__(f"{message} at offset {offset}")
        self.offset = offset
