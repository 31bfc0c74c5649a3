"""Names of the lifecycle's annotations, conditions and reasons, the numbers in annotations, and provider IDs. Pure.

Where an annotation is documented as the owner's, the owner is whatever claims the server: a TinkerbellMachine, or an
object of another front door.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/hardware.go (provider IDs).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ironbell.api.capt.names import PROVIDER_ID_SCHEME
from ironbell.api.meta import Resource
from ironbell.api.tinkerbell.hardware import Hardware

WANTED_SINCE: Final = "ironbell.dev/hardware-wanted-since"
"""On a TinkerbellMachine: since when it waits for Hardware; its place in the line."""

WANTED_IN: Final = "ironbell.dev/hardware-wanted-in"
"""On a TinkerbellMachine that waits for Hardware: the failure domain that it must be in, as `LABEL=VALUE`."""

RACK: Final = "ironbell.dev/rack"
"""On a TinkerbellMachine that has a server: the rack that it is powered on with, as `LABEL=VALUE`. On a Workflow, or a
Job that power cycles: the rack in which it counts."""

INSTALL_BEGUN: Final = "ironbell.dev/install-begun"
"""On a TinkerbellMachine: when its first installation was begun. On its Workflow: when the Workflow was created. They
are the same for a Workflow that no other preceded."""

UNTOUCHED: Final = "ironbell.dev/untouched"
"""On a TinkerbellMachine that is being deleted: uid of its only Workflow, of which no action was ever started: nothing
was written to the disks of its server."""

INSTALL_ATTEMPT: Final = "ironbell.dev/install-attempt"
"""On a TinkerbellMachine: how often its operating system was begun to be installed."""

INSTALL_ATTEMPTS: Final = "ironbell.dev/install-attempts"
"""On a TinkerbellMachine, yours: how often an installation is tried at most (3)."""

REPORT_TIMEOUT: Final = "ironbell.dev/report-timeout-seconds"
"""On a TinkerbellMachine, yours: how long the installed system may take to report that it is up, or to become a Node
(900 s). After that its bootstrap counts as failed. 0 waits for neither: the machine is ready once it is installed."""


WIPE: Final = "ironbell.dev/wipe"
"""On Hardware, or on a TinkerbellMachine, which counts before: how its disks are wiped when it is given back."""

WIPE_TEMPLATE: Final = "ironbell.dev/wipe-template"
"""On Hardware, or on a TinkerbellMachine, which counts before, yours: name of a Template in the Hardware's namespace
that is run in place of the built-in wipe."""

WIPE_TIMEOUT: Final = "ironbell.dev/wipe-timeout-seconds"
"""On Hardware, or on a TinkerbellMachine, which counts before: how long an attempt to wipe may take before the machine
goes without it, and the Hardware is held; unset: 7200, and for all methods but `quick` a second more for each 50 MB of
its disks."""

WIPE_ATTEMPTS: Final = "ironbell.dev/wipe-attempts"
"""On Hardware, or on a TinkerbellMachine, which counts before, yours: how often a wipe that fails is tried at most (2)
before the machine goes without it, and the Hardware is held."""

WIPE_ATTEMPT: Final = "ironbell.dev/wipe-attempt"
"""On a TinkerbellMachine that is being deleted: the attempt to wipe its server that is under way; none is the first."""

POWER_OFF_ATTEMPT: Final = "ironbell.dev/power-off-attempt"
"""On a TinkerbellMachine that is being deleted: how often its server could not be switched off."""

POWER_CYCLE: Final = "ironbell.dev/power-cycle"
"""On a Job: which TinkerbellRemediation's attempt it is, as `UID NUMBER`."""

POWER_CYCLE_ATTEMPTS: Final = "ironbell.dev/power-cycle-attempts"
"""On Hardware, or on a TinkerbellMachine, which counts before, yours: how often an unhealthy machine is power cycled
before it is replaced; not given: what the TinkerbellRemediation says (1)."""

REPLACE_ON: Final = "ironbell.dev/replace-on"
"""On Hardware, or on a TinkerbellMachine, which counts before, yours: which server the replacement of an unhealthy
machine may get, `any` or `other`; not given: what the TinkerbellRemediation says (any)."""

HOLD_WHEN_RELEASED: Final = "ironbell.dev/hold-when-released"
"""On a TinkerbellMachine: that its server is held when it is given back, and why."""

POWER_CYCLE_TURN: Final = "ironbell.dev/power-cycle-turn"
"""On a TinkerbellCluster: the TinkerbellRemediation that may power cycle a control plane machine, or was the last."""

DEFAULT_ATTEMPTS: Final = 3
MOVE_AFTER: Final = 2
"""Installations that fail on one server before another is looked for."""
SERVERS_PER_OWNER: Final = 3
"""Servers on which installations for Machines of one owner may fail; after that the servers are hardly the cause."""
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
"""In bootstrap data: where the provider ID goes."""


def number(obj: Resource, annotation: str, default: int) -> int:
    """The value of an annotation, 0 at least."""
    text = obj.metadata.annotations.get(annotation, "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else default


def provider_id(hardware: Hardware) -> str:
    """The id of a machine on this server."""
    return f"{_PREFIX}{hardware.metadata.namespace}/{hardware.metadata.name}"


def hardware_key(text: str) -> tuple[str, str] | None:
    """Namespace and name of the Hardware; None if the text is no such id."""
    namespace, slash, name = text.removeprefix(_PREFIX).partition("/")
    is_one = text.startswith(_PREFIX) and slash and namespace and name and "/" not in name
    return (namespace, name) if is_one else None
