"""An action as an agent gets it. Pure.

Agents of ours also get what the Hardware says about its machine, so that they refuse another one's disks; upstream's
get the environment exactly as upstream sends it.

Source: tinkerbell/tinkerbell: tink/server/internal/grpc/grpc.go (assembly of the response).
"""

from __future__ import annotations

from collections.abc import Mapping

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowAction, WorkflowTask
from ironbell.codec.proto import workflow_pb2
from ironbell.contract import boot_token
from ironbell.contract.directory import DISK_SERIAL, MACHINE_UUID

_UUID_VARIABLE = "IRONBELL_MACHINE_UUID"
_MAC_VARIABLE = "IRONBELL_MACHINE_MAC"
_SERIAL_VARIABLE = "IRONBELL_DISK_SERIAL"


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


def assemble(
    workflow: Workflow, task: WorkflowTask, action: WorkflowAction, *, expected: Mapping[str, str], token: str = ""
) -> workflow_pb2.ActionResponse:
    """The answer to GetAction. What the Hardware says about its machine wins over what a template sets: a check that
    the text under check can switch off is none. `token` is the one that the agent has shown: what stands for the
    installed system's in a template is filled in here, so that it is in no object."""
    environment = {**boot_token.filled({**task.environment, **action.environment}, token), **expected}
    namespaces = action.namespaces
    return workflow_pb2.ActionResponse(
        workflow_id=f"{workflow.metadata.namespace}/{workflow.metadata.name}",
        task_id=task.id,
        agent_id=task.agent_id,
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
