"""Logs: structured events on standard error, for people on a terminal and as JSON otherwise.

Events quote what machines and strangers sent. So every value has a limit, and on a terminal a value is one line without
control sequences. Rejections are logged through `base.rejections`, once a minute per machine.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog

from ironbell.base.printable import escaped_json, one_line
from ironbell.base.terminal import guard_terminals

MAX_VALUE: Final = 2000
"""Number of characters of a value that are logged."""
MAX_EXCEPTION: Final = 20_000
_MAX_ITEMS: Final = 50
_MAX_DEPTH: Final = 4
_EXCEPTION: Final = "exception"


def configure_logging(*, process: str, level: int = logging.INFO) -> None:
    """Set up structlog for this process; every event has the process's name."""
    guard_terminals()
    fit: Callable[[str], str]
    renderer: structlog.typing.Processor
    if sys.stderr.isatty():
        fit, renderer = one_line, structlog.dev.ConsoleRenderer()
    else:
        fit, renderer = str, structlog.processors.JSONRenderer(serializer=_encode)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _limits(fit),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)


def _limits(fit: Callable[[str], str]) -> structlog.typing.Processor:
    """A processor that cuts long values, and passes texts through `fit`. Tracebacks keep their lines and their end."""

    def limited(value: Any, depth: int = 0) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, list | tuple | set | frozenset) and depth < _MAX_DEPTH:
            return [limited(item, depth + 1) for item in list(value)[:_MAX_ITEMS]]
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            return {limited(str(key)): limited(item, depth + 1) for key, item in list(value.items())[:_MAX_ITEMS]}
        text = value if isinstance(value, str) else repr(value)
        return fit(text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}… ({len(text)} characters)")

    def processor(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        return {
            name: value[-MAX_EXCEPTION:] if name == _EXCEPTION and isinstance(value, str) else limited(value)
            for name, value in event.items()
        }

    return processor


def _encode(event: structlog.typing.EventDict, **_: object) -> str:
    return escaped_json(msgspec.json.encode(event, enc_hook=repr).decode())
