"""Names of the lifecycle's annotations, conditions and reasons, the numbers in annotations, and provider IDs. Pure.

Annotations documented for a TinkerbellMachine apply to any owner that claims servers, such as an object of another
front door.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/hardware.go (provider IDs).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ironbell.api.capt.names import PROVIDER_ID_SCHEME
from ironbell.api.meta import Resource
from ironbell.api.tinkerbell.hardware import Hardware

QUEUED_SINCE: Final = "ironbell.dev/hardware-wanted-since"
"""On a TinkerbellMachine: time since which it waits for Hardware, which is its place in the queue."""

QUEUED_IN: Final = "ironbell.dev/hardware-wanted-in"
"""On a TinkerbellMachine that waits for Hardware: the failure domain that it must be in, as `LABEL=VALUE`."""

RACK: Final = "ironbell.dev/rack"
"""On a TinkerbellMachine that has a server: the rack that it is powered on with, as `LABEL=VALUE`. On a Workflow, or a
Job that power cycles: the rack in which it is counted."""

INSTALL_BEGUN: Final = "ironbell.dev/install-begun"
"""On a TinkerbellMachine: start time of its first installation. On its Workflow: creation time of the Workflow. Both
are the same for the first Workflow."""

UNTOUCHED: Final = "ironbell.dev/untouched"
"""On a TinkerbellMachine that is being deleted: uid of its only Workflow, if no action of it was ever started, so that
nothing was written to the disks of its server."""

INSTALL_ATTEMPT: Final = "ironbell.dev/install-attempt"
"""On a TinkerbellMachine: number of attempts to install its operating system."""

INSTALL_ATTEMPTS: Final = "ironbell.dev/install-attempts"
"""On a TinkerbellMachine, set by the user: maximum number of attempts to install it (3)."""

REPORT_TIMEOUT: Final = "ironbell.dev/report-timeout-seconds"
"""On a TinkerbellMachine, set by the user: timeout in which the installed system has to report that it is up, or to
become a Node (900 s). After that its bootstrap has failed. With 0, the machine is ready once it is installed."""


WIPE: Final = "ironbell.dev/wipe"
"""On Hardware or a TinkerbellMachine, whose value takes precedence: method that wipes the disks on release."""

WIPE_TEMPLATE: Final = "ironbell.dev/wipe-template"
"""On Hardware or a TinkerbellMachine, whose value takes precedence, set by the user: name of a Template in the
Hardware's namespace that runs instead of the built-in wipe."""

WIPE_TIMEOUT: Final = "ironbell.dev/wipe-timeout-seconds"
"""On Hardware or a TinkerbellMachine, whose value takes precedence: timeout of an attempt to wipe, after which the
machine is deleted without the wipe and the Hardware is held; default: 7200, and one more second for each 50 MB of its
disks for all methods except `quick`."""

WIPE_ATTEMPTS: Final = "ironbell.dev/wipe-attempts"
"""On Hardware or a TinkerbellMachine, whose value takes precedence, set by the user: maximum number of attempts to wipe
(2), after which the machine is deleted without the wipe and the Hardware is held."""

WIPE_ATTEMPT: Final = "ironbell.dev/wipe-attempt"
"""On a TinkerbellMachine that is being deleted: number of the current attempt to wipe its server; unset for the
first."""

POWER_OFF_ATTEMPT: Final = "ironbell.dev/power-off-attempt"
"""On a TinkerbellMachine that is being deleted: number of failed attempts to power off its server."""

POWER_CYCLE: Final = "ironbell.dev/power-cycle"
"""On a Job: the TinkerbellRemediation and the number of its attempt, as `UID NUMBER`."""

POWER_CYCLE_ATTEMPTS: Final = "ironbell.dev/power-cycle-attempts"
"""On Hardware or a TinkerbellMachine, whose value takes precedence, set by the user: number of power cycles of an
unhealthy machine before it is replaced; default: the value of the TinkerbellRemediation (1)."""

REPLACE_ON: Final = "ironbell.dev/replace-on"
"""On Hardware or a TinkerbellMachine, whose value takes precedence, set by the user: server for the replacement of an
unhealthy machine, `any` or `other`; default: the value of the TinkerbellRemediation (any)."""

HOLD_WHEN_RELEASED: Final = "ironbell.dev/hold-when-released"
"""On a TinkerbellMachine: the reason why its server is held on release."""

POWER_CYCLE_TURN: Final = "ironbell.dev/power-cycle-turn"
"""On a TinkerbellCluster: the TinkerbellRemediation that may power cycle a control plane machine, or the last one."""

DEFAULT_ATTEMPTS: Final = 3
MOVE_AFTER: Final = 2
"""Failed installations on one server after which another server is tried."""
SERVERS_PER_OWNER: Final = 3
"""Servers on which installations for Machines of one owner may fail; after that, the servers are hardly the cause."""
DEFAULT_REPORT_TIMEOUT_S: Final = 900
DEFAULT_WIPE_TIMEOUT_S: Final = 7200
DEFAULT_WIPE_ATTEMPTS: Final = 2


class WipePolicy(StrEnum):
    """Values of `ironbell.dev/wipe`; all but `none` and `deferred` are methods of the action `wipe`."""

    NONE = "none"
    COMPLETE = "complete"
    DEFERRED = "deferred"
    QUICK = "quick"
    ZERO = "zero"
    DISCARD = "discard"
    SECURE = "secure"


class State(StrEnum):
    """Values of `status.instanceState`."""

    WAITING = "Waiting"
    INSTALLING = "Installing"
    BOOTING = "Booting"
    RUNNING = "Running"
    FAILED = "Failed"
    WIPING = "Wiping"
    POWERING_OFF = "PoweringOff"


HARDWARE_READY: Final = "HardwareReady"
INSTALLED: Final = "Installed"
RELEASED: Final = "Released"
CLAIM_ALLOWED: Final = "ClaimAllowed"
"""Types of a TinkerbellMachine's conditions, beside Ready and Paused."""
NO_HARDWARE: Final = "NoHardware"
"""Reason of HardwareReady while no server fits."""

_PREFIX: Final = f"{PROVIDER_ID_SCHEME}://"
PLACEHOLDER: Final = "PROVIDER_ID"
"""Placeholder of the provider ID in bootstrap data."""


def number(obj: Resource, annotation: str, default: int) -> int:
    """The value of an annotation, which is not negative."""
    text = obj.metadata.annotations.get(annotation, "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else default


def provider_id(hardware: Hardware) -> str:
    """The id of a machine on this server."""
    return f"{_PREFIX}{hardware.metadata.namespace}/{hardware.metadata.name}"


def hardware_key(text: str) -> tuple[str, str] | None:
    """Namespace and name of the Hardware; None if the text is not such an id."""
    namespace, slash, name = text.removeprefix(_PREFIX).partition("/")
    is_valid = text.startswith(_PREFIX) and slash and namespace and name and "/" not in name
    return (namespace, name) if is_valid else None
