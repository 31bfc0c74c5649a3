"""What the simulated provider's controllers ask the cloud."""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.kube.decision import Question
from ironbell.lab.sim.host import HostState


@dataclass(frozen=True, slots=True)
class HostQuestion(Question[HostState | None]):
    """How far the host of a DevMachine is; None for one that is not powered on."""

    uid: str
