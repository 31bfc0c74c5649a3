"""reboot: leave the in-memory OS after the server has acknowledged the success.

`WAIT_SECONDS` (3) leaves the workflow controller time to forbid the next network boot.
"""

from __future__ import annotations

from ironbell.agent.actions.context import Context
from ironbell.agent.actions.disks import devices
from ironbell.agent.messages import AfterMessage, Power

DEFAULT_WAIT_S = 3.0


def run(context: Context) -> None:
    """Have the agent reboot the machine once the success is reported."""
    devices.require_machine(context)
    delay_s = context.number("WAIT_SECONDS", default=DEFAULT_WAIT_S)
    context.log(f"the machine reboots {delay_s:g} s after the server has recorded the success")
    context.send(AfterMessage(power=Power.REBOOT, delay_s=delay_s))
