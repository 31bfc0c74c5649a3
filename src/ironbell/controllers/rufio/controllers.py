"""The controllers of BMC Machines, Jobs and Tasks: their permissions, performers and probers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import structlog

from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.bmc.machine import PowerState
from ironbell.api.client import Api
from ironbell.api.core import SECRET
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.base.clock import Clock
from ironbell.bmc.driver import BmcError
from ironbell.contract.access import Permissions, may, may_read, policy_rules
from ironbell.contract.crossing import USE
from ironbell.contract.system import Runtime
from ironbell.controllers.rufio import attempt as attempts
from ironbell.controllers.rufio.bmc_access import AT_ONCE, BmcAccess
from ironbell.controllers.rufio.connect import connect
from ironbell.controllers.rufio.inventory import InventoryReconciler
from ironbell.controllers.rufio.job import JobReconciler
from ironbell.controllers.rufio.machine import POWER_INTERVAL_S, MachineReconciler
from ironbell.controllers.rufio.operation import describe
from ironbell.controllers.rufio.steps import OPERATE, Operate
from ironbell.controllers.rufio.target import InventoryOf, PowerOf
from ironbell.controllers.rufio.task import TaskReconciler
from ironbell.kube.decision import Action, Query
from ironbell.kube.manager.controller import Controller
from ironbell.kube.reconciler import Performer, Resolver

log = structlog.get_logger()

ACCESS: Final = "rufio-access"
"""The identity that reads the credentials of BMCs."""
PERMISSIONS: Final = Permissions(
    reads=policy_rules(may_read(JOB, MACHINE, TASK, HARDWARE, SECRET)),
    writes={
        MachineReconciler.name: policy_rules(
            [
                may(MACHINE, "patch", status=True),
                may(SECRET, USE),  # to record the address with which a Secret is used
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
    """Create the controllers. The caller closes `access` after the manager has stopped.

    Args:
        access: the sessions with BMCs, shared by all controllers.
        clock: for the times at which BMCs accept operations.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
        power_interval_s: interval between queries for the power state of a server that no Task changes.
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


def performers(access: BmcAccess, clock: Clock) -> Mapping[str, Performer]:
    """The effects of Tasks: operations on BMCs."""

    async def operate(arguments: Operate) -> Sequence[Action]:
        task, attempt = arguments.task, arguments.attempt
        about = {"task": "/".join(task.key), "operation": describe(arguments.operation), "attempt": attempt.number}
        try:
            await access.operate(arguments.target, arguments.operation)
        except BmcError as error:
            log.warning("bmc operation failed", **about, reason=error.reason, message=error.message)
            outcome = attempts.failed(attempt, error.problem, error.message, clock.now())
        else:
            log.info("bmc operation accepted", **about)
            outcome = attempts.accepted(attempt, clock.now())
        return (attempts.store_outcome(task, outcome),)

    return {OPERATE: operate}


def resolvers(access: BmcAccess) -> Mapping[type[Query[Any]], Resolver]:
    """Probers of the power state and of the inventory."""

    async def power_of(query: PowerOf) -> PowerState:
        return await access.power_state(query.target)

    async def inventory_of(query: InventoryOf) -> Inventory:
        return await access.inventory(query.target)

    return {PowerOf: power_of, InventoryOf: inventory_of}
