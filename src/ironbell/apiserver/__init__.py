"""Layer 3: the embedded Kubernetes API: store, schemas, verbs, garbage collection, and its HTTP face."""

from ironbell.base import plainlogs as plainlogs  # before any module of this package imports structlog
