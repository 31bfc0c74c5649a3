"""What people see of a server: its phase and its power, from its Hardware and its BMC. Pure.

The API sends tables whose columns are fields of the object itself, so both are annotations of the Hardware: a claim
and a release change them in the write that they make anyway, and a move to another API takes them along.
"""

from __future__ import annotations

from ironbell.api.bmc.machine import Machine, PowerState
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.servers.claim import HELD, PHASE, ServerPhase, claim_of
from ironbell.contract.servers.wipe_due import wipe_due
from ironbell.kube.finalizers import is_deleting
from ironbell.provisioner.health import is_silent


def server_phase(hardware: Hardware, bmc: Machine | None) -> ServerPhase:
    """Return the phase of a server; the first that applies counts.

    Whoever has the server comes first, since that is what keeps it from others. A BMC that does not answer counts only
    where nobody has the server: an installed system runs without its BMC. That a server is being wiped is known to its
    owner alone, which says so in the annotation itself. A server that is reserved for a Cluster is in use by it
    until the complete wipe begins.
    """
    annotations = hardware.metadata.annotations
    claim, due = claim_of(hardware), wipe_due(hardware)
    if claim is not None and claim.is_reservation and due is not None:
        if HELD in annotations:
            return ServerPhase.HELD
        return ServerPhase.WIPING if due.ended else ServerPhase.IN_USE
    if claim is not None:
        return ServerPhase.WIPING if annotations.get(PHASE) == ServerPhase.WIPING else ServerPhase.IN_USE
    if HELD in annotations:
        return ServerPhase.HELD
    if is_deleting(hardware):
        return ServerPhase.DELETING
    return ServerPhase.UNREACHABLE if bmc is not None and is_silent(bmc) else ServerPhase.FREE


def server_power(bmc: Machine | None) -> str:
    """Return `on` or `off`, or "" if the power state is not known."""
    power = bmc.status.power_state if bmc is not None and not is_silent(bmc) else ""
    return power if power in (PowerState.ON, PowerState.OFF) else ""
