"""The controllers of BMC Machines, Jobs and Tasks, and what each may do with the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.client import Api
from ironbell.api.core import SECRET
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.clock import Clock
from ironbell.contract.access import Permissions, may, may_read, policy_rules
from ironbell.contract.crossing import USE
from ironbell.contract.system import Runtime
from ironbell.controllers.rufio.bmc_access import AT_ONCE, BmcAccess
from ironbell.controllers.rufio.connect import connect
from ironbell.controllers.rufio.inventory import InventoryReconciler
from ironbell.controllers.rufio.job import JobReconciler
from ironbell.controllers.rufio.machine import POWER_INTERVAL_S, MachineReconciler
from ironbell.controllers.rufio.performers import performers, resolvers
from ironbell.controllers.rufio.task import TaskReconciler
from ironbell.kube.manager.controller import Controller

ACCESS: Final = "rufio-access"
"""The identity that reads the credentials of BMCs."""
PERMISSIONS: Final = Permissions(
    reads=policy_rules(may_read(JOB, MACHINE, TASK, HARDWARE, SECRET)),
    writes={
        MachineReconciler.name: policy_rules(
            [
                may(MACHINE, "patch", status=True),
                may(SECRET, USE),  # the address that a Secret is used with
            ]
        ),
        JobReconciler.name: policy_rules(
            [
                may(JOB, "patch", subresource="status"),
                may(MACHINE, "patch"),
                may(JOB, "update", subresource="finalizers"),  # for owner references that block deletion
                may(TASK, "create", "delete"),
                # a Task names the Secret of its Machine, which may be in another namespace than the Job
                may(SECRET, USE),
            ]
        ),
        InventoryReconciler.name: policy_rules([may(HARDWARE, "patch", subresource="status"), may(MACHINE, "patch")]),
        TaskReconciler.name: policy_rules([may(TASK, "patch", status=True)]),
    },
    identities={ACCESS: policy_rules([may(SECRET, "get")])},
)


def create_controllers(runtime: Runtime) -> list[Controller]:
    """Create the system's controllers for a process."""
    return controllers(runtime.shared(_bmc_access), runtime.clock, runtime.api_of)


def _bmc_access(runtime: Runtime) -> BmcAccess:
    return BmcAccess(runtime.own_api(ACCESS), connect)


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
        Controller(machine, resolvers=resolvers(access), api=api_of(machine.name)),
        Controller(InventoryReconciler(), resolvers=resolvers(access), workers=8, api=api_of(InventoryReconciler.name)),
        Controller(JobReconciler(), api=api_of(JobReconciler.name)),
        Controller(
            TaskReconciler(),
            performers=performers(access, clock),
            resolvers=resolvers(access),
            workers=AT_ONCE,
            api=api_of(TaskReconciler.name),
        ),
    ]
