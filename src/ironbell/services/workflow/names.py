"""Annotations that the workflow service reads and writes, all under `ironbell.dev/`."""

from __future__ import annotations

from typing import Final

ON_REBOOT: Final = "ironbell.dev/on-reboot"
"""On a Workflow: what happens when its machine reboots in the middle: `fail` (default), `restart`, `resume`."""

BOOT_IDS: Final = "ironbell.dev/boot-ids"
"""On a Workflow: agent id to the boot in which its actions run, as JSON."""

RESTARTS: Final = "ironbell.dev/restarts"
"""On a Workflow: how often it began again because its machine rebooted."""

HEARTBEATS: Final = "ironbell.dev/heartbeats"
"""On a Workflow: agent id to the seconds between its signs of life while an action runs, as JSON."""


LOG_REPLICA: Final = "ironbell.dev/log-replica"
"""On a Workflow: which replica of the workflow service holds its log."""


REFUSED: Final = "ironbell.dev/refused-agent"
"""On a Workflow: who asked for its actions last and was refused, when and why, as JSON."""

MACHINE_REPORT: Final = "ironbell.dev/machine-report"
"""On a Workflow: what its machine said outside of any action, such as a crash, as JSON."""
