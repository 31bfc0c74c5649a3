"""Who may speak for a machine: with strict identity only whoever shows the token of the boot for that Workflow.

Pure over what the directory knows. A stranger with the machine's address and agent id finds no Workflow, and cannot
make one fail by a made-up reboot or report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import Clock, SystemClock
from ironbell.contract import boot_token
from ironbell.contract.boot_token import Identity
from ironbell.contract.directory import HardwareDirectory
from ironbell.services.workflow.guard import machine_of

_ACTIVE = {WorkflowState.PREPARING, WorkflowState.PENDING, WorkflowState.RUNNING}


@dataclass(frozen=True)
class Gate:
    """The check. `directory` must be there where it is strict."""

    identity: Identity = Identity.COMPAT
    directory: HardwareDirectory | None = None
    clock: Clock = field(default_factory=SystemClock)

    @property
    def is_strict(self) -> bool:
        return self.identity is Identity.STRICT

    def admitted(
        self, workflows: Sequence[Workflow], agent_id: str, token: str
    ) -> tuple[Sequence[Workflow], str | None]:
        """The Workflows that this agent may know of, and why not the others that wait or run."""
        if not self.is_strict:
            return workflows, None
        judged = [(workflow, self.objection(workflow, agent_id, token)) for workflow in workflows]
        problems = [why for workflow, why in judged if why is not None and workflow.status.state in _ACTIVE]
        return [workflow for workflow, why in judged if why is None], next(iter(problems), None)

    def objection(self, workflow: Workflow, agent_id: str, token: str, *, stored: Hardware | None = None) -> str | None:
        """Why this agent may not speak for this Workflow; `stored` is its Hardware, where that was just read."""
        if not self.is_strict:
            return None
        hardware = stored
        if hardware is None and self.directory is not None:
            name = machine_of(workflow, agent_id, self.directory)
            hardware = self.directory.get(workflow.metadata.namespace, name) if name else None
        if hardware is None:
            return "strict identity: the Workflow names no Hardware that exists in spec.hardwareRef"
        return boot_token.agent_objection(hardware, workflow.metadata.uid, token, self.clock.now())
