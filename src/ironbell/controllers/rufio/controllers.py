"""The controllers of this group, ready to be added to a manager, and what each must be allowed to write.

Reading is the manager's identity's business: machines, jobs, tasks and (without their contents) secrets, everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ironbell.api.client import Api
from ironbell.base.clock import Clock
from ironbell.contract.crossing import USE
from ironbell.controllers.rufio.bmc_access import AT_ONCE, BmcAccess
from ironbell.controllers.rufio.inventory import InventoryReconciler
from ironbell.controllers.rufio.job import JobReconciler
from ironbell.controllers.rufio.machine import POWER_INTERVAL_S, MachineReconciler
from ironbell.controllers.rufio.performers import askers, performers
from ironbell.controllers.rufio.task import TaskReconciler
from ironbell.kube.controller import Controller

_BMC = ["bmc.tinkerbell.org"]

WRITES: Final[Mapping[str, Sequence[Mapping[str, Sequence[str]]]]] = {
    MachineReconciler.name: [
        {"apiGroups": _BMC, "resources": ["machines", "machines/status"], "verbs": ["patch"]},
        # the address that a Secret is used with
        {"apiGroups": [""], "resources": ["secrets"], "verbs": [USE]},
    ],
    JobReconciler.name: [
        {"apiGroups": _BMC, "resources": ["jobs/status", "machines"], "verbs": ["patch"]},
        {"apiGroups": _BMC, "resources": ["jobs/finalizers"], "verbs": ["update"]},
        {"apiGroups": _BMC, "resources": ["tasks"], "verbs": ["create", "delete"]},
        # a Task names the Secret of its Machine, which may be in another namespace than the Job
        {"apiGroups": [""], "resources": ["secrets"], "verbs": [USE]},
    ],
    InventoryReconciler.name: [
        {"apiGroups": ["tinkerbell.org"], "resources": ["hardware/status"], "verbs": ["patch"]},
        {"apiGroups": _BMC, "resources": ["machines"], "verbs": ["patch"]},
    ],
    TaskReconciler.name: [
        {"apiGroups": _BMC, "resources": ["tasks", "tasks/status"], "verbs": ["patch"]},
    ],
}
"""PolicyRules by the controller's name. `jobs/finalizers` is for owner references that block deletion."""

_READ: Final = ["get", "list", "watch"]
READS: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {"apiGroups": _BMC, "resources": ["jobs", "machines", "tasks"], "verbs": _READ},
    {"apiGroups": ["tinkerbell.org"], "resources": ["hardware"], "verbs": _READ},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": _READ},
]
"""PolicyRules for what all of them watch: of Secrets, that one has changed."""

ACCESS_READS: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
]
"""PolicyRules of the identity that `BmcAccess` reads credentials under."""


def controllers(
    access: BmcAccess,
    clock: Clock,
    api_of: Callable[[str], Api | None],
    *,
    power_interval_s: float = POWER_INTERVAL_S,
) -> list[Controller]:
    """The controllers. The caller closes `access` after the manager has ended.

    Args:
        access: the sessions with BMCs, shared by all.
        clock: for the moments at which BMCs accepted something.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
        power_interval_s: how often the power state of a quiet machine is asked.
    """
    machine = MachineReconciler(power_interval_s=power_interval_s)
    return [
        Controller(machine, askers=askers(access), api=api_of(machine.name)),
        Controller(InventoryReconciler(), askers=askers(access), workers=8, api=api_of(InventoryReconciler.name)),
        Controller(JobReconciler(), api=api_of(JobReconciler.name)),
        Controller(
            TaskReconciler(),
            performers=performers(access, clock),
            askers=askers(access),
            workers=AT_ONCE,
            api=api_of(TaskReconciler.name),
        ),
    ]
