"""What the BMC controllers have done and asked outside Kubernetes: effects and questions over `BmcAccess`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from ironbell.api.bmc.machine import PowerState
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.base.clock import Clock
from ironbell.bmc.driver import BmcError
from ironbell.controllers.rufio import attempt as attempts
from ironbell.controllers.rufio.bmc_access import BmcAccess
from ironbell.controllers.rufio.operation import describe
from ironbell.controllers.rufio.steps import OPERATE, Operate
from ironbell.controllers.rufio.target import InventoryOf, PowerOf
from ironbell.kube.decision import Action, Query
from ironbell.kube.reconciler import Performer, Resolver

log = structlog.get_logger()


def performers(access: BmcAccess, clock: Clock) -> Mapping[str, Performer]:
    """For the Task controller."""

    async def operate(arguments: Operate) -> Sequence[Action]:
        task, attempt = arguments.task, arguments.attempt
        about = {"task": "/".join(task.key), "operation": describe(arguments.operation), "attempt": attempt.number}
        try:
            await access.operate(arguments.target, arguments.operation)
        except BmcError as error:
            log.warning("bmc operation failed", **about, reason=error.reason, message=error.message)
            outcome = attempts.refused(attempt, error.trouble, error.message, clock.now())
        else:
            log.info("bmc operation accepted", **about)
            outcome = attempts.accepted(attempt, clock.now())
        return (attempts.store_outcome(task, outcome),)

    return {OPERATE: operate}


def resolvers(access: BmcAccess) -> Mapping[type[Query[Any]], Resolver]:
    """For all controllers that ask."""

    async def power_of(query: PowerOf) -> PowerState:
        return await access.power_state(query.target)

    async def inventory_of(query: InventoryOf) -> Inventory:
        return await access.inventory(query.target)

    return {PowerOf: power_of, InventoryOf: inventory_of}
