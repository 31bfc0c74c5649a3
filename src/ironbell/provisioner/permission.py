"""The permission of Workflows to run on a server: by `spec.interfaces[].netboot.allowWorkflow`, and by a hold.

Upstream does not read that field. Here an unset field allows Workflows, and `false` on the agent's interface forbids
them. If no interface is the agent's, `false` forbids them unless another interface has `true`, because servers have
interfaces that never boot.
"""

from __future__ import annotations

from collections.abc import Collection

from ironbell.api.capt.names import LABEL_MACHINE_NAME
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.contract.servers.claim import HELD, claim_of
from ironbell.contract.servers.directory import normal_mac
from ironbell.contract.servers.wipe_due import WIPE_RUN


def workflow_objection(hardware: Hardware, agents: Collection[str] = ()) -> str | None:
    """The reason why no Workflow may start on a server, with the remedy; None if it may.

    Args:
        hardware: the server.
        agents: ids of the agents that the Workflow is for, as far as they are known.
    """
    macs = {normal_mac(agent) for agent in agents} - {""}
    interfaces = [
        (number, interface.dhcp.mac if interface.dhcp is not None else "", interface.netboot.allow_workflow)
        for number, interface in enumerate(hardware.spec.interfaces)
        if interface.netboot is not None
    ]
    own = [interface for interface in interfaces if normal_mac(interface[1]) in macs]
    forbidding = next((number for number, _, allowed in own or interfaces if allowed is False), None)
    if forbidding is None or any(allowed for _, _, allowed in own or interfaces):
        return None
    field = f"spec.interfaces[{forbidding}].netboot.allowWorkflow"
    return (
        f'{field} of Hardware "{hardware.metadata.name}" is false; set it to true to let Workflows run on this server.'
    )


def hold_objection(hardware: Hardware, workflow: Workflow) -> str | None:
    """The reason why a controller's Workflow (an installation or a wipe) must not run on a held server; None if it may.

    A Workflow that a user wrote may run: users hold a server while they repair it.
    """
    metadata = workflow.metadata
    held = hardware.metadata.annotations.get(HELD)
    if held is None:
        return None
    claim = claim_of(hardware)
    is_of_owner = claim is not None and any(owner.uid == claim.uid for owner in metadata.owner_references)
    if not (is_of_owner or LABEL_MACHINE_NAME in metadata.labels or WIPE_RUN in metadata.annotations):
        return None
    name, reason = hardware.metadata.name, held or "no reason given"
    return f'Hardware "{name}" is held ({reason}); remove annotation {HELD} to let the Workflow go on.'
