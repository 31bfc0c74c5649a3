"""What keeps a machine from getting an action although its Workflow has one: a person's will, or doubt about which
machine is meant.

Pure. DHCP and the boot scripts do not serve such machines either; but one that was booted before the doubt arose is
still there and asks, and what it would be told may erase its disks.
"""

from __future__ import annotations

from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.contract.servers.directory import KEEP_DISKS, Ambiguous, Attribute, HardwareDirectory, Match
from ironbell.contract.servers.restored import hold_reason
from ironbell.provisioner.disks import kept_disks
from ironbell.provisioner.permission import hold_objection, workflow_objection

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
