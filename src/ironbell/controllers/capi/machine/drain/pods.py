"""What runs on a node, as draining it sees it.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/drain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod."""

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
    """PersistentVolumeClaims that it uses, by name."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodsOfNode:
    """All pods of a node, and the labels of the namespaces they are in."""

    pods: tuple[PodView, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of asking for one pod's eviction."""

    uid: str
    at: datetime
    error: str = ""
    """Why it was refused; empty if it was not."""


EVICTION_BUDGET_S = 10.0
"""For how long pods are evicted in one go."""
NOT_REACHED = f"eviction timeout of {EVICTION_BUDGET_S:g}s reached, eviction will be retried"
"""The error of pods that did not get their turn within the budget."""
TERMINATING_NAMESPACE = (
    "Cannot evict pod from terminating namespace: unable to create eviction"
    " (kube-controller-manager should set deletionTimestamp)"
)


def shortened(items: Sequence[object], most: int = 5) -> str:
    """The first of a list, by `str`, and the number of the others.

    Source: kubernetes-sigs/cluster-api: util/log/log.go.
    """
    shown = [str(item) for item in items[:most]]
    if len(items) > most:
        shown.append(f"... ({len(items) - most} more)")
    return ", ".join(shown)
