"""poweroff: power the machine off after the server has acknowledged the success.

`WAIT_SECONDS` (3) as for `reboot`.
"""

from __future__ import annotations

from ironbell.agent.actions.context import Context
from ironbell.agent.actions.disks import devices
from ironbell.agent.actions.reboot import DEFAULT_WAIT_S
from ironbell.agent.messages import AfterMessage, Power


def run(context: Context) -> None:
    """Have the agent power the machine off once the success is reported."""
    devices.require_machine(context)
    delay_s = context.number("WAIT_SECONDS", default=DEFAULT_WAIT_S)
    context.log(f"the machine powers off {delay_s:g} s after the server has recorded the success")
    context.send(AfterMessage(power=Power.POWEROFF, delay_s=delay_s))
