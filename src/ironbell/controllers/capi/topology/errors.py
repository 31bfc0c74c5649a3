"""What keeps a topology from being computed. The text goes into the Cluster's condition."""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry


class TopologyError(IronbellError):
    """The class, the Cluster or what they refer to must be changed first."""

    reason = "ReconcileFailed"
    retry = Retry.NEVER
