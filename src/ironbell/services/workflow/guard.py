"""What keeps a machine from getting an action although its Workflow has one: a person's will, or doubt about which
machine is meant.

Pure. DHCP and the boot scripts do not serve such machines either; but one that was booted before the doubt arose is
still there and asks, and what it would be told may erase its disks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import Clock, SystemClock
from ironbell.contract.servers import boot_token, identity
from ironbell.contract.servers.boot_token import Identity
from ironbell.contract.servers.directory import KEEP_DISKS, Ambiguous, Attribute, HardwareDirectory, Match
from ironbell.contract.servers.identity import Caller, Network, Way
from ironbell.contract.servers.restored import hold_reason
from ironbell.provisioner.disks import kept_disks
from ironbell.provisioner.permission import hold_objection, workflow_objection

_ACTIVE = {WorkflowState.PREPARING, WorkflowState.PENDING, WorkflowState.RUNNING}
_IDENTITY = {Attribute.MAC, Attribute.AGENT_ID, Attribute.MACHINE_UUID, Attribute.DISK_SERIAL}


def objection(
    workflow: Workflow, agent_id: str, directory: HardwareDirectory, *, honours_keeping: bool = True
) -> str | None:
    """Why the agent gets nothing of this Workflow now, or None. An agent that is not ours does not honour disks to
    keep."""
    found = directory.by_agent_id(agent_id)
    if isinstance(found, Ambiguous):
        return found.message
    name = workflow.spec.hardware_ref
    if not name:
        return None
    hardware = directory.get(workflow.metadata.namespace, name)
    if hardware is None:
        return f"Hardware {name} of the Workflow does not exist, so nobody knows which machine is meant"
    if ANNOTATION_DISABLED in hardware.metadata.annotations:
        return f"Hardware {name} is disabled by annotation {ANNOTATION_DISABLED}"
    if (held := hold_reason(hardware)) is not None:
        return held
    if (held := hold_objection(hardware, workflow)) is not None:
        return held
    own = machine_of(workflow, agent_id, directory)
    if own != name and (another := directory.get(workflow.metadata.namespace, own)) is not None:
        hardware, name = another, own
        if ANNOTATION_DISABLED in hardware.metadata.annotations:
            return f"Hardware {name} is disabled by annotation {ANNOTATION_DISABLED}"
        if (held := hold_reason(hardware)) is not None:
            return held
    if workflow.status.state != WorkflowState.RUNNING and (why := workflow_objection(hardware, [agent_id])) is not None:
        return why
    if not honours_keeping and kept_disks(hardware, workflow):
        return (
            f"Hardware {name} has disks to keep (annotation {KEEP_DISKS}), and the agent that asks would write to "
            "them: boot Ironbell's in-memory OS, or remove the annotation"
        )
    conflicts = (conflict for conflict in directory.conflicts_of(hardware) if conflict.attribute in _IDENTITY)
    return next((conflict.message for conflict in conflicts), None)


def machine_of(workflow: Workflow, agent_id: str, directory: HardwareDirectory | None) -> str:
    """The name of the Hardware that the agent must be on; empty where nothing says so.

    It is the Workflow's own, except where tasks name several agents: then each may be on a Hardware of its own. A
    Workflow of one agent is held to its Hardware, so that a wrong agent id in it erases nobody else's disks.
    """
    name = workflow.spec.hardware_ref
    agents = {task.agent_id for task in workflow.status.tasks}
    if directory is None or len(agents) < 2 or agents.isdisjoint(directory.agent_ids(agent_id)):
        return name
    found = directory.by_agent_id(agent_id)
    if isinstance(found, Match) and found.hardware.metadata.namespace == workflow.metadata.namespace:
        return found.hardware.metadata.name
    return name


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
