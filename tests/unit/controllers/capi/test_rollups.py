from __future__ import annotations

import random

from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.machine import Machine, MachineStatus
from ironbell.api.meta import Condition, ObjectMeta
from ironbell.contract.conditions import Reasons, aggregate, owned
from ironbell.controllers.capi.rollup import machines_ready

REASONS = Reasons("NotReady", "ReadyUnknown", "Ready")


def machine(number: int, chosen: random.Random) -> Machine:
    reported = chosen.choice(["True", "True", "True", "False", "Unknown", ""])
    ready = Condition(
        type="Ready",
        status=reported,
        reason="R",
        message=chosen.choice(["", "", "disk", "net", "cpu", "ram"]),
        last_transition_time=f"2026-01-01T00:00:0{chosen.randrange(10)}Z",
    )
    status = MachineStatus(conditions=[ready] if reported else [])
    return Machine(metadata=ObjectMeta(name=f"m{number:02}", namespace="n"), status=status)


def test_healthy_machines_do_not_change_the_message_about_others() -> None:
    chosen = random.Random(3)
    for _ in range(300):
        machines = [machine(number, chosen) for number in range(chosen.randrange(1, 12))]
        whole = aggregate([owned(MACHINE, item) for item in machines], "Ready", target="MachinesReady", reason=REASONS)
        assert machines_ready(machines, "MachinesReady") == whole
