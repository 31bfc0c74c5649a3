"""Layer 6: which services and controllers run in which process, and how the processes are kept alive."""

from ironbell.base import plainlogs as plainlogs  # before any process imports structlog
