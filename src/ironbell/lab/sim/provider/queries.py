"""What the simulated provider's controllers ask the cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ironbell.kube.decision import Query
from ironbell.lab.sim.cluster.cluster import Endpoint
from ironbell.lab.sim.cluster.host import HostState
from ironbell.workload.clusterkey import ClusterKey


@dataclass(frozen=True, slots=True)
class HostQuery(Query[HostState | None]):
    """How far the host of a DevMachine is; None for one that is not powered on."""

    subject: ClassVar[str] = "the state of the simulated host"

    uid: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cluster's API is, or will be."""

    endpoint: Endpoint
    down: bool = False
    """Whether nobody reaches it, by a fault."""


@dataclass(frozen=True, slots=True)
class PlaceQuery(Query[Place]):
    """Where the API of a cluster is."""

    subject: ClassVar[str] = "the simulated cluster"

    cluster: ClusterKey
