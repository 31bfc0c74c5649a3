"""Problems inside the HTTP server for machines: malformed requests are counted, our own defects are logged.

aiohttp reports both to a standard logger, with a traceback each; machines may send anything, so malformed requests must
not fill the log.
"""

from __future__ import annotations

import logging

import structlog
from aiohttp.http_exceptions import HttpProcessingError
from prometheus_client import Counter

_log = structlog.get_logger()

MALFORMED = Counter("ironbell_http_malformed", "Input on the HTTP port that is not a valid request.")
DEFECTS = Counter("ironbell_http_defects", "Requests that failed because of a defect.")


class _Problems(logging.Handler):
    """Handles aiohttp's report about one request."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            MALFORMED.inc()
            _log.debug("malformed http request", error=error.message)
        elif record.levelno >= logging.ERROR:
            DEFECTS.inc()
            _log.error("http request failed", what=record.getMessage(), error=repr(error))


def problem_logger() -> logging.Logger:
    """The logger for `web.AppRunner`."""
    logger = logging.getLogger("ironbell.http")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.handlers = [_Problems()]
    return logger
