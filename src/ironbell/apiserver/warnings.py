"""Warnings and audit annotations of the request in progress.

Code that serves a request calls `warn` or `annotate`; the HTTP face sends the warnings with the response, and writes
the annotations to the audit log. Outside a request both are dropped.

Source: kubernetes/apiserver: pkg/warning/context.go, pkg/audit/context.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_WARNINGS: ContextVar[dict[str, None] | None] = ContextVar("warnings", default=None)
_ANNOTATIONS: ContextVar[dict[str, str] | None] = ContextVar("annotations", default=None)


@contextmanager
def collecting() -> Iterator[dict[str, None]]:
    """Collect the warnings of the block, each text once, in order."""
    warnings: dict[str, None] = {}
    token = _WARNINGS.set(warnings)
    try:
        yield warnings
    finally:
        _WARNINGS.reset(token)


def warn(text: str) -> None:
    """Add a warning to the response of the current request."""
    warnings = _WARNINGS.get()
    if warnings is not None:
        warnings[text] = None


def begin_annotations() -> dict[str, str]:
    """Start the audit annotations of the request that this task serves."""
    annotations: dict[str, str] = {}
    _ANNOTATIONS.set(annotations)
    return annotations


def annotate(key: str, value: str) -> None:
    """Add an annotation to the audit log's entry of the current request."""
    annotations = _ANNOTATIONS.get()
    if annotations is not None:
        annotations[key] = value
