"""Layer 6: assigns services and controllers to processes, and keeps the processes running."""

from ironbell.base import plainlogs as plainlogs  # before any process imports structlog
