"""Group `bmc.tinkerbell.org`: BMCs and the operations on them."""

from ironbell.api.bmc.job import JOB
from ironbell.api.bmc.machine import MACHINE
from ironbell.api.bmc.task import TASK

__all__ = ["JOB", "MACHINE", "TASK"]
