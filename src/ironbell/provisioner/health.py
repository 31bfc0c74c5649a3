"""The condition of a server: concerns about installing on it, and its phase and power as tables show them. Pure.

A concern, about the BMC, the last wipe, the disks or failed installations, ranks a server behind every server that has
none or a lesser one; the gravest (`BLOCKED`) excludes it. A selection sorts by `severity` before users' preferences.

The API sends tables whose columns are fields of the object itself, so phase and power are annotations of the Hardware:
the writes of a claim and of a release set them, and a move to another API copies them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

import msgspec

from ironbell.api.bmc.machine import Machine, MachineConditionType, PowerState
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.contract.clusters.capabilities import capabilities
from ironbell.contract.servers.agent_inventory import in_band
from ironbell.contract.servers.claim import HELD, PHASE, WIPED, ServerPhase, claim_of
from ironbell.contract.servers.wipe_due import wipe_due
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import is_deleting

INSTALL_FAILED: Final = "ironbell.dev/install-failed"
"""On Hardware: JSON of the installations that failed on it in a row; removed when one succeeds."""

_KERNEL_NAME: Final = re.compile(r"/dev/((?:sd|vd|xvd|hd)[a-z]+|nvme\d+n\d+|mmcblk\d+)")
"""Device paths that name a whole disk by the name that inventories use."""


class Severity(IntEnum):
    """The severity of a concern: a server with a lesser one is preferred."""

    NONE = 0
    MANUAL = 1
    """The server can be installed only with the help of a user."""
    DOUBTFUL = 2
    """An installation of the server may not complete."""
    BLOCKED = 3
    """Nothing can be installed on the server now."""


SILENT_BMC: Final = "its BMC does not answer"


class Obstacle(Enum):
    """Problems with a remedy of their own, for programs; others are solved by another server."""

    HELD = "an annotation holds the server"
    SILENT_BMC = "its BMC does not respond"
    NO_ADDRESS = "it has no address"
    CLAIMS_FROM = "its Namespace does not allow the claim"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that excludes a server."""

    message: str
    """The problem of this server."""
    kind: str = ""
    """The message without parts that differ between servers; empty if there are none."""
    shown: str = ""
    """Text in place of the kind if it is the same for all servers with this kind; empty for the kind itself."""
    obstacle: Obstacle | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Concern:
    """A concern about a server. The message follows "Hardware NAME: "."""

    severity: Severity
    message: str
    problem: Problem | None = None
    """The problem that excludes the server; None if the concern does not."""


class InstallFailures(msgspec.Struct, frozen=True, omit_defaults=True):
    """Value of `ironbell.dev/install-failed`: the machine whose installations failed on the server, and the reason."""

    machine: str = ""
    uid: str = ""
    owner: str = ""
    """Controller of that machine's Machine, as `KIND NAMESPACE/NAME`."""
    times: int = 0
    at: str = ""
    message: str = ""


class _LastWipe(msgspec.Struct, frozen=True):
    """The relevant part of a wipe's certificate."""

    failed: bool = False
    machine: str = ""
    message: str = ""


def bmc_key(hardware: Hardware) -> Key | None:
    """Namespace and name of the bmc Machine of a server; None if it names none."""
    reference = hardware.spec.bmc_ref
    return (hardware.metadata.namespace, reference.name) if reference is not None and reference.name else None


def is_silent(bmc: Machine) -> bool:
    """Return whether the last query of the BMC failed. A BMC that was never queried is not silent."""
    return bool(silence(bmc))


def silence(bmc: Machine) -> str:
    """The reason why the BMC does not respond, by its last query; empty if it responds."""
    kind, conditions = MachineConditionType.CONTACTABLE, bmc.status.conditions
    failed = next(
        (condition for condition in conditions if condition.type == kind and condition.status == "False"), None
    )
    return (failed.message or "no reason given") if failed is not None else ""


def concerns(hardware: Hardware, bmcs: Mapping[Key, Machine]) -> tuple[Concern, ...]:
    """All concerns about a server, the gravest first.

    Args:
        hardware: the server.
        bmcs: bmc Machines by namespace and name; BMCs that respond may be left out.
    """
    raised = [*_bmc(hardware, bmcs), *_wipe(hardware), *_disks(hardware), *_installations(hardware)]
    return tuple(sorted(raised, key=lambda concern: -concern.severity))


def severity(raised: Sequence[Concern]) -> Severity:
    """Severity of the gravest concern."""
    return max((concern.severity for concern in raised), default=Severity.NONE)


def own_severity(hardware: Hardware) -> Severity:
    """Severity of the gravest concern that the server's record alone raises, whatever its BMC does."""
    return severity(concerns(hardware, {}))


def install_failures(hardware: Hardware) -> InstallFailures | None:
    """The last failures of installations on this server; None if an installation has succeeded since."""
    text = hardware.metadata.annotations.get(INSTALL_FAILED, "")
    try:
        return msgspec.json.decode(text, type=InstallFailures) if text else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return InstallFailures()


def _bmc(hardware: Hardware, bmcs: Mapping[Key, Machine]) -> Iterator[Concern]:
    key = bmc_key(hardware)
    if key is None:
        yield Concern(Severity.MANUAL, "it has no BMC: somebody must power it on and boot it over the network")
    bmc = bmcs.get(key) if key is not None else None
    if bmc is not None and (cause := silence(bmc)):
        name, message = bmc.metadata.name, f"its BMC {bmc.metadata.name} does not answer: {cause}"
        problem = Problem(message, SILENT_BMC, f"{SILENT_BMC} ({name}: {cause})", Obstacle.SILENT_BMC)
        yield Concern(Severity.BLOCKED, message, problem)


def _wipe(hardware: Hardware) -> Iterator[Concern]:
    text = hardware.metadata.annotations.get(WIPED, "")
    try:
        last = msgspec.json.decode(text, type=_LastWipe) if text else _LastWipe()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    if last.failed:
        yield Concern(Severity.DOUBTFUL, f"its last wipe failed, after {last.machine}: {last.message}")


def _disks(hardware: Hardware) -> Iterator[Concern]:
    """Concerns by the agent's inventory of disks; the BMC's only serves for counting, since its names differ."""
    expected = [disk.device for disk in hardware.spec.disks if disk.device]
    if missing := missing_disks(hardware, expected):
        yield Concern(Severity.DOUBTFUL, f"its inventory lacks disk {', '.join(missing)} of spec.disks")
        return
    present = capabilities(hardware).disks
    if present is not None and len(present) < len(set(expected)):
        message = f"its inventory lists {len(present)} of the {len(set(expected))} disks of spec.disks"
        yield Concern(Severity.DOUBTFUL, message)


def missing_disks(hardware: Hardware, paths: Sequence[str]) -> list[str]:
    """Paths that name a whole disk which the agent's inventory lacks; empty if no inventory of disks is known."""
    inventory = in_band(hardware.metadata.annotations.get(ANNOTATION_AGENT_ATTRIBUTES, ""))
    names = {device.name for device in inventory.block_devices} if inventory is not None else set()
    return [path for path in paths if names and (kernel := _KERNEL_NAME.fullmatch(path)) and kernel[1] not in names]


def _installations(hardware: Hardware) -> Iterator[Concern]:
    failed = install_failures(hardware)
    if failed is not None:
        times = f"{failed.times} installations" if failed.times > 1 else "an installation"
        yield Concern(Severity.DOUBTFUL, f"{times} failed on it, for {failed.machine}: {failed.message}")


def server_phase(hardware: Hardware, bmc: Machine | None) -> ServerPhase:
    """Return the phase of a server, which its table shows; it is the first that applies.

    A claim precedes all others, because it prevents other claims. A BMC that does not respond matters only while the
    server is unclaimed: an installed system runs without its BMC. Only the owner knows that it wipes its server, and
    sets the phase itself. A reserved server is in use by its Cluster until the complete wipe begins.
    """
    annotations = hardware.metadata.annotations
    claim, due = claim_of(hardware), wipe_due(hardware)
    if claim is not None and claim.is_reservation and due is not None:
        if HELD in annotations:
            return ServerPhase.HELD
        return ServerPhase.WIPING if due.ended else ServerPhase.IN_USE
    if claim is not None:
        return ServerPhase.WIPING if annotations.get(PHASE) == ServerPhase.WIPING else ServerPhase.IN_USE
    if HELD in annotations:
        return ServerPhase.HELD
    if is_deleting(hardware):
        return ServerPhase.DELETING
    return ServerPhase.UNREACHABLE if bmc is not None and is_silent(bmc) else ServerPhase.FREE


def server_power(bmc: Machine | None) -> str:
    """Return `on` or `off`, or "" if the power state is not known."""
    power = bmc.status.power_state if bmc is not None and not is_silent(bmc) else ""
    return power if power in (PowerState.ON, PowerState.OFF) else ""
