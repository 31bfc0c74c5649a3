"""Who may speak for a machine: whoever shows the token of the boot for that Workflow, or whoever has its address.

`contract.servers.identity` says which of the two counts. Pure over what the directory knows. A stranger with the
machine's agent id finds no Workflow, and cannot make one fail by a made-up reboot or report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import Clock, SystemClock
from ironbell.contract.servers import boot_token, identity
from ironbell.contract.servers.boot_token import Identity
from ironbell.contract.servers.directory import HardwareDirectory, Match
from ironbell.contract.servers.identity import Caller, Network, Way
from ironbell.services.workflow.guard import machine_of

_ACTIVE = {WorkflowState.PREPARING, WorkflowState.PENDING, WorkflowState.RUNNING}


@dataclass(frozen=True, slots=True)
class Refused:
    """A Workflow that waits or runs, and is not this agent's to know of."""

    workflow: Workflow
    why: str


@dataclass(frozen=True)
class Gate:
    """The check. `directory` must be there where it is strict."""

    identity: Identity = Identity.COMPAT
    directory: HardwareDirectory | None = None
    clock: Clock = field(default_factory=SystemClock)
    proxies: Sequence[Network] = ()
    """Peers that speak for others: their addresses are not compared."""

    def agent_ids(self, agent_id: str) -> tuple[str, ...]:
        """All ids that mean the same agent as `agent_id`, which comes first."""
        return self.directory.agent_ids(agent_id) if self.directory is not None else (agent_id,)

    def needs_token(self, workflow: Workflow) -> bool:
        """Whether the token of its boot counts for this Workflow, and not the address."""
        return identity.needs_token(workflow, self.identity)

    def admitted(
        self, workflows: Sequence[Workflow], agent_id: str, caller: Caller
    ) -> tuple[Sequence[Workflow], Refused | None]:
        """The Workflows that this agent may know of, and the first of the others that wait or run."""
        if self.identity is Identity.COMPAT:
            return workflows, None
        judged = [(workflow, self.objection(workflow, agent_id, caller)) for workflow in workflows]
        refused = (
            Refused(workflow, why) for workflow, why in judged if why is not None and workflow.status.state in _ACTIVE
        )
        return [workflow for workflow, why in judged if why is None], next(refused, None)

    def objection(
        self, workflow: Workflow, agent_id: str, caller: Caller, *, stored: Hardware | None = None
    ) -> str | None:
        """Why this agent may not speak for this Workflow; `stored` is its Hardware, where that was just read."""
        if self.identity is Identity.COMPAT:
            return None
        hardware = stored or self._machine(workflow, agent_id)
        if not self.needs_token(workflow):
            return identity.address_objection(hardware or self._named(agent_id), caller.peer, self.proxies)
        if hardware is None:
            return "strict identity: the Workflow names no Hardware that exists in spec.hardwareRef"
        return boot_token.agent_objection(hardware, workflow.metadata.uid, caller.token, self.clock.now())

    def way(self, workflow: Workflow, agent_id: str, caller: Caller) -> Way:
        """By what the agent was known that was admitted."""
        if self.identity is Identity.COMPAT:
            return Way.AGENT_ID
        if self.needs_token(workflow):
            return Way.TOKEN
        return identity.way(self._machine(workflow, agent_id) or self._named(agent_id), caller.peer, self.proxies)

    def _machine(self, workflow: Workflow, agent_id: str) -> Hardware | None:
        """The Hardware that the Workflow names."""
        name = machine_of(workflow, agent_id, self.directory)
        return self.directory.get(workflow.metadata.namespace, name) if name and self.directory is not None else None

    def _named(self, agent_id: str) -> Hardware | None:
        """The Hardware of the agent, for Workflows that name none."""
        found = self.directory.by_agent_id(agent_id) if self.directory is not None else None
        return found.hardware if isinstance(found, Match) else None
