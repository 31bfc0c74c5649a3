"""Machines that will never become Nodes unless somebody replaces them."""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.machine import Machine
from ironbell.kube.conditions import find_condition
from ironbell.kube.finalizers import is_deleting

INSTALLATION_FAILED: Final = "InstallationFailed"
"""Reason of an infrastructure machine's Ready once no attempt to install the server is left."""
BOOTSTRAP_FAILED: Final = "BootstrapFailed"
"""Reason of BootstrapSucceeded once the host has reported that it failed."""
_TERMINAL: Final = {"InfrastructureReady": INSTALLATION_FAILED, "BootstrapSucceeded": BOOTSTRAP_FAILED}


def terminal_failure(machine: Machine) -> str:
    """Return why a Machine failed for good, as its providers report it; "" if it has not."""
    if machine.status.node_ref.name or is_deleting(machine):
        return ""
    for type_, reason in _TERMINAL.items():
        condition = find_condition(machine.status.conditions, type_)
        if condition is not None and (condition.status, condition.reason) == ("False", reason):
            return condition.message or reason
    return ""


def is_health_checked(machine: Machine) -> bool:
    """Return whether a MachineHealthCheck selects the Machine, so that it will be replaced."""
    return find_condition(machine.status.conditions, "HealthCheckSucceeded") is not None
