"""Group `bmc.tinkerbell.org`: BMCs and the operations on them."""

from typing import Any

from ironbell.api.bmc.job import JOB
from ironbell.api.bmc.machine import MACHINE
from ironbell.api.bmc.task import TASK
from ironbell.api.kind import Kind

KINDS: tuple[Kind[Any], ...] = (MACHINE, JOB, TASK)
"""All of them, in the order in which they are shown."""

__all__ = ["JOB", "KINDS", "MACHINE", "TASK"]
