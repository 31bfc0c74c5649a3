"""reboot: leave the in-memory OS after the server has acknowledged the success.

`WAIT_SECONDS` (3) leaves the workflow controller time to forbid the next network boot.
"""

from __future__ import annotations

from ironbell.agent.actions.context import Context
from ironbell.agent.actions.disks import devices
from ironbell.agent.notes import AfterNote, Power

DEFAULT_WAIT_S = 3.0


def run(context: Context) -> None:
    """Ask the agent to reboot the machine once the success is reported."""
    devices.require_machine(context)
    delay_s = context.number("WAIT_SECONDS", default=DEFAULT_WAIT_S)
    context.say(f"the machine reboots {delay_s:g} s after the server knows of the success")
    context.note(AfterNote(power=Power.REBOOT, delay_s=delay_s))
