"""An action as an agent gets it. Pure.

Agents of ours also get what the Hardware says about its machine, so that they refuse another one's disks; upstream's
get the environment exactly as upstream sends it.

Source: tinkerbell/tinkerbell: tink/server/internal/grpc/grpc.go (assembly of the response).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowAction, WorkflowTask
from ironbell.codec.actionimage import image_name
from ironbell.codec.proto import workflow_pb2
from ironbell.contract.servers import boot_token
from ironbell.contract.servers.directory import DISK_SERIAL, KEEP_VARIABLE, MACHINE_UUID
from ironbell.provisioner.disks import kept_disks

_UUID_VARIABLE = "IRONBELL_MACHINE_UUID"
_MAC_VARIABLE = "IRONBELL_MACHINE_MAC"
_SERIAL_VARIABLE = "IRONBELL_DISK_SERIAL"
_TARGETS_VARIABLE = "IRONBELL_WORKFLOW_DISKS"
_TARGETS = ("DEST_DISK", "BLOCK_DEVICE", "GRUB_DISK", "GRUB_INSTALL_PATH")
"""Variables in which actions name the devices that they write to."""
_WIPES = frozenset({"wipe", "wipedisk"})
"""Actions that leave disks alone which are to be kept, and need not be refused."""


def expectations(hardware: Hardware) -> dict[str, str]:
    """Variables that name the machine which the Hardware means."""
    macs = [interface.dhcp.mac for interface in hardware.spec.interfaces if interface.dhcp and interface.dhcp.mac]
    annotations = hardware.metadata.annotations
    found = {
        _MAC_VARIABLE: ",".join(macs),
        _UUID_VARIABLE: annotations.get(MACHINE_UUID, ""),
        _SERIAL_VARIABLE: annotations.get(DISK_SERIAL, ""),
    }
    return {key: value for key, value in found.items() if value}


def keeping(workflow: Workflow, agent_ids: Sequence[str], hardware: Hardware | None) -> dict[str, str]:
    """Variables that name the disks to keep, and everything that this agent's actions in the Workflow write to."""
    kept = kept_disks(hardware, workflow)
    if not kept:
        return {}
    tasks = [task for task in workflow.status.tasks if task.agent_id in agent_ids]
    targets = dict.fromkeys(target for task in tasks for action in task.actions for target in _targets(task, action))
    if any(image_name(action.image) == "rootio" for task in tasks for action in task.actions):
        targets |= dict.fromkeys(_laid_out(hardware))
    return {KEEP_VARIABLE: ",".join(kept), _TARGETS_VARIABLE: ",".join(targets)}


def _targets(task: WorkflowTask, action: WorkflowAction) -> list[str]:
    if image_name(action.image) in _WIPES:
        return []
    environment = {**task.environment, **action.environment}
    values = [value for variable in _TARGETS for value in environment.get(variable, "").split(",")]
    return [value.strip() for value in values if value.strip().startswith("/")]


def _laid_out(hardware: Hardware | None) -> list[str]:
    """The devices in the Hardware's disk layout, which the action `rootio` writes."""
    metadata = hardware.spec.metadata if hardware is not None else None
    storage = metadata.instance.storage if metadata is not None and metadata.instance is not None else None
    if storage is None:
        return []
    mounts = [filesystem.mount.device for filesystem in storage.filesystems or [] if filesystem.mount is not None]
    return [device for device in [*(disk.device for disk in storage.disks or []), *mounts] if device]


def assemble(
    workflow: Workflow,
    task: WorkflowTask,
    action: WorkflowAction,
    *,
    expected: Mapping[str, str],
    agent_id: str = "",
    token: str = "",
) -> workflow_pb2.ActionResponse:
    """The answer to GetAction. What the Hardware says about its machine wins over what a template sets: a check that
    the text under check can switch off is none. `token` is the one that the agent has shown: what stands for the
    installed system's in a template is filled in here, so that it is in no object. `agent_id` is the id that the agent
    goes by, where the task names it by another one: an agent rejects what is for others."""
    environment = {**boot_token.filled({**task.environment, **action.environment}, token), **expected}
    namespaces = action.namespaces
    return workflow_pb2.ActionResponse(
        workflow_id=f"{workflow.metadata.namespace}/{workflow.metadata.name}",
        task_id=task.id,
        agent_id=agent_id or task.agent_id,
        action_id=action.id,
        name=action.name,
        image=action.image,
        timeout=action.timeout,
        command=action.command,
        volumes=[*task.volumes, *action.volumes],
        environment=sorted(f"{key}={value}" for key, value in environment.items()),
        pid=(namespaces.pid if namespaces else "") or action.pid,
        namespaces=workflow_pb2.Namespaces(network=namespaces.network, pid=namespaces.pid) if namespaces else None,
    )
