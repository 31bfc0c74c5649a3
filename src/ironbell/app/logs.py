"""Logs: structured events on standard error, for people on a terminal and as JSON otherwise."""

from __future__ import annotations

import logging
import sys

import msgspec
import structlog


def configure_logging(*, process: str, level: int = logging.INFO) -> None:
    """Set up structlog for this process; every event carries the process's name."""
    renderer: structlog.typing.Processor
    if sys.stderr.isatty():
        renderer = structlog.dev.ConsoleRenderer()
    else:
        renderer = structlog.processors.JSONRenderer(serializer=_encode)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)


def _encode(event: structlog.typing.EventDict, **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=repr).decode()
