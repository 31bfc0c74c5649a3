"""The pods of a node, as draining needs them.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/drain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod."""

    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    of_daemon_set: bool = False
    """Its controller is a DaemonSet that exists."""
    finished: bool = False
    mirror: bool = False
    """A static pod, which the API only mirrors."""
    deletion: datetime | None = None
    claims: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims that it uses."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodsOfNode:
    """All pods of a node, and the labels of their namespaces."""

    pods: tuple[PodView, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one pod's eviction request."""

    uid: str
    at: datetime
    error: str = ""
    """Reason why it was rejected; empty if it was accepted."""


EVICTION_BUDGET_S = 10.0
"""Time for evicting pods in one pass."""
NOT_REACHED = f"eviction timeout of {EVICTION_BUDGET_S:g}s reached, eviction will be retried"
"""The error of pods that did not get their turn within the budget."""
TERMINATING_NAMESPACE = (
    "Cannot evict pod from terminating namespace: unable to create eviction"
    " (kube-controller-manager should set deletionTimestamp)"
)
