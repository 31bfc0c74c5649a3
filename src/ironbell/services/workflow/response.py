"""The response that hands an action to an agent. Pure.

Our own agents also get the identity of the machine from its Hardware, so that they do not write to the disks of another
one; upstream's agents get the same environment as from upstream.

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
"""Actions that skip disks that are to be kept, so that our agent runs them."""


def expectations(hardware: Hardware) -> dict[str, str]:
    """Return the variables that identify the machine of the Hardware."""
    macs = [interface.dhcp.mac for interface in hardware.spec.interfaces if interface.dhcp and interface.dhcp.mac]
    annotations = hardware.metadata.annotations
    variables = {
        _MAC_VARIABLE: ",".join(macs),
        _UUID_VARIABLE: annotations.get(MACHINE_UUID, ""),
        _SERIAL_VARIABLE: annotations.get(DISK_SERIAL, ""),
    }
    return {key: value for key, value in variables.items() if value}


def keeping(workflow: Workflow, agent_ids: Sequence[str], hardware: Hardware | None) -> dict[str, str]:
    """Return the variables with the disks to keep, and with all devices that this agent's actions write to."""
    kept = kept_disks(hardware, workflow)
    if not kept:
        return {}
    tasks = [task for task in workflow.status.tasks if task.agent_id in agent_ids]
    targets = dict.fromkeys(target for task in tasks for action in task.actions for target in _targets(task, action))
    if any(image_name(action.image) == "rootio" for task in tasks for action in task.actions):
        targets |= dict.fromkeys(_layout_devices(hardware))
    return {KEEP_VARIABLE: ",".join(kept), _TARGETS_VARIABLE: ",".join(targets)}


def _targets(task: WorkflowTask, action: WorkflowAction) -> list[str]:
    if image_name(action.image) in _WIPES:
        return []
    environment = {**task.environment, **action.environment}
    values = [value for variable in _TARGETS for value in environment.get(variable, "").split(",")]
    return [value.strip() for value in values if value.strip().startswith("/")]


def _layout_devices(hardware: Hardware | None) -> list[str]:
    """Return the devices in the Hardware's disk layout, which the action `rootio` writes to."""
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
    """Return the response to GetAction.

    Args:
        workflow: the Workflow.
        task: the task of the action.
        action: the action.
        expected: variables from the Hardware. They take precedence over a template's, which must not disable the check.
        agent_id: id that the agent uses for itself, if the task names it by another: an agent rejects another id.
        token: the agent's boot token, which replaces the placeholder in a template, so that no object contains it.
    """
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
