"""Annotations that the workflow service reads and writes, all under `ironbell.dev/`."""

from __future__ import annotations

from typing import Final

ON_REBOOT: Final = "ironbell.dev/on-reboot"
"""On a Workflow: the consequence of a reboot of its machine in the middle: `fail` (default), `restart`, `resume`."""

BOOT_IDS: Final = "ironbell.dev/boot-ids"
"""On a Workflow: the boot in which each agent's actions run, by agent id, as JSON."""

RESTARTS: Final = "ironbell.dev/restarts"
"""On a Workflow: how often it was restarted because its machine rebooted."""

HEARTBEATS: Final = "ironbell.dev/heartbeats"
"""On a Workflow: seconds between the heartbeats of each agent while an action runs, by agent id, as JSON."""

LOG_REPLICA: Final = "ironbell.dev/log-replica"
"""On a Workflow: the replica of the workflow service that stores its log."""

REJECTED_AGENT: Final = "ironbell.dev/refused-agent"
"""On a Workflow: the last agent whose request for actions was rejected, with time and reason, as JSON."""

MACHINE_REPORT: Final = "ironbell.dev/machine-report"
"""On a Workflow: the last report of its machine outside of any action, such as a crash, as JSON."""
