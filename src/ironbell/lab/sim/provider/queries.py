"""Queries of the simulated provider's controllers to the cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ironbell.kube.decision import Query
from ironbell.lab.sim.cluster.cluster import Endpoint
from ironbell.lab.sim.cluster.host import HostState
from ironbell.workload.clusterkey import ClusterKey


@dataclass(frozen=True, slots=True)
class HostQuery(Query[HostState | None]):
    """Query for the state of a DevMachine's host; the answer is None for one that is not powered on."""

    subject: ClassVar[str] = "the state of the simulated host"

    uid: str


@dataclass(frozen=True, slots=True)
class Place:
    """Address of a cluster's API, also before it serves."""

    endpoint: Endpoint
    down: bool = False
    """Whether it cannot be reached, by a fault."""


@dataclass(frozen=True, slots=True)
class PlaceQuery(Query[Place]):
    """Query for the address of a cluster's API."""

    subject: ClassVar[str] = "the simulated cluster"

    cluster: ClusterKey
