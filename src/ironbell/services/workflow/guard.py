"""Reasons not to hand an action to an agent: a user's hold, an ambiguous machine, or a caller that is not identified.

Pure, over the directory's Hardware. `objection` finds the first two. DHCP and the boot scripts do not serve such
machines either, but a machine may have booted before the doubt arose, and an action may erase its disks. `Gate` checks
the caller by its boot token or its address; `contract.servers.identity` decides which. A stranger with the machine's
agent id finds no Workflow, and cannot make one fail by a false reboot or report.
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
    """Return the reason not to hand out an action of this Workflow to the agent now, or None.

    `honours_keeping` is False for an agent that is not ours, which may write to disks that are to be kept.
    """
    match = directory.by_agent_id(agent_id)
    if isinstance(match, Ambiguous):
        return match.message
    name = workflow.spec.hardware_ref
    if not name:
        return None
    hardware = directory.get(workflow.metadata.namespace, name)
    if hardware is None:
        return f"Hardware {name} in the Workflow's spec.hardwareRef does not exist"
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
    is_running = workflow.status.state == WorkflowState.RUNNING
    if not is_running and (denied := workflow_objection(hardware, [agent_id])) is not None:
        return denied
    if not honours_keeping and kept_disks(hardware, workflow):
        return (
            f"Hardware {name} has disks to keep (annotation {KEEP_DISKS}), and this agent may overwrite them: boot "
            "Ironbell's in-memory OS, or remove the annotation"
        )
    conflicts = (conflict for conflict in directory.conflicts_of(hardware) if conflict.attribute in _IDENTITY)
    return next((conflict.message for conflict in conflicts), None)


def machine_of(workflow: Workflow, agent_id: str, directory: HardwareDirectory | None) -> str:
    """Return the name of the Hardware that the agent must be on; empty if none is set.

    It is the Workflow's Hardware, except if tasks name several agents: then each may be on a Hardware of its own. The
    agent of a Workflow of one agent must be on its Hardware, so that a wrong agent id erases no other server's disks.
    """
    name = workflow.spec.hardware_ref
    agents = {task.agent_id for task in workflow.status.tasks}
    if directory is None or len(agents) < 2 or agents.isdisjoint(directory.agent_ids(agent_id)):
        return name
    match = directory.by_agent_id(agent_id)
    if isinstance(match, Match) and match.hardware.metadata.namespace == workflow.metadata.namespace:
        return match.hardware.metadata.name
    return name


@dataclass(frozen=True, slots=True)
class Rejected:
    """A waiting or running Workflow that the caller may not read, with the reason."""

    workflow: Workflow
    reason: str


@dataclass(frozen=True)
class Gate:
    """The check of callers. Any identity but `compat` needs `directory`."""

    identity: Identity = Identity.COMPAT
    directory: HardwareDirectory | None = None
    clock: Clock = field(default_factory=SystemClock)
    proxies: Sequence[Network] = ()
    """Peers that forward calls of agents: their addresses are not compared."""

    def agent_ids(self, agent_id: str) -> tuple[str, ...]:
        """All ids of the agent with `agent_id`, which comes first."""
        return self.directory.agent_ids(agent_id) if self.directory is not None else (agent_id,)

    def needs_token(self, workflow: Workflow) -> bool:
        """Return whether agents of this Workflow are identified by the token of their boot, and not by address."""
        return identity.needs_token(workflow, self.identity)

    def admitted(
        self, workflows: Sequence[Workflow], agent_id: str, caller: Caller
    ) -> tuple[Sequence[Workflow], Rejected | None]:
        """Return the Workflows that the caller may read, and the first of the others that waits or runs."""
        if self.identity is Identity.COMPAT:
            return workflows, None
        objections = [(workflow, self.objection(workflow, agent_id, caller)) for workflow in workflows]
        rejected = (
            Rejected(workflow, reason) for workflow, reason in objections if reason and workflow.status.state in _ACTIVE
        )
        return [workflow for workflow, reason in objections if reason is None], next(rejected, None)

    def objection(
        self, workflow: Workflow, agent_id: str, caller: Caller, *, stored: Hardware | None = None
    ) -> str | None:
        """Return the reason to reject a call for this Workflow, or None. `stored` is its Hardware, if just read."""
        if self.identity is Identity.COMPAT:
            return None
        hardware = stored or self._machine(workflow, agent_id)
        if not self.needs_token(workflow):
            return identity.address_objection(hardware or self._named(agent_id), caller.peer, self.proxies)
        if hardware is None:
            return "strict identity: spec.hardwareRef of the Workflow does not name an existing Hardware"
        return boot_token.agent_objection(hardware, workflow.metadata.uid, caller.token, self.clock.now())

    def way(self, workflow: Workflow, agent_id: str, caller: Caller) -> Way:
        """Return the way by which an admitted agent was identified."""
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
        match = self.directory.by_agent_id(agent_id) if self.directory is not None else None
        return match.hardware if isinstance(match, Match) else None
