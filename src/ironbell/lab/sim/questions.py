"""What the simulated provider's controllers ask the cloud."""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.kube.decision import Key, Question
from ironbell.lab.sim.cluster import Endpoint
from ironbell.lab.sim.host import HostState


@dataclass(frozen=True, slots=True)
class HostQuestion(Question[HostState | None]):
    """How far the host of a DevMachine is; None for one that is not powered on."""

    uid: str


@dataclass(frozen=True, slots=True)
class EndpointQuestion(Question[Endpoint]):
    """Where the API of a cluster is, or will be."""

    cluster: Key
