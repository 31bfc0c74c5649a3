"""Labels of Hardware that describe the machine, so that label selectors can choose by it.

One table maps both sources: the agent's report takes precedence, the BMC's fills what that lacks. The reference
(`docs/reference/inventory.md`) is generated from it.

Which labels are ours is remembered in an annotation, `NAME=VALUE` for each. A label of these names that has another
value than the recorded one was set by a user, and stays.

There is no label for a rack: a switch's name does not identify it where two switches share a rack or one serves
several. A site with one switch in each rack uses the switch's label as failure domain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ironbell.contract.clusters.capabilities import Capabilities

PREFIX: Final = "ironbell.dev/"
INVENTORY_LABELS: Final = "ironbell.dev/inventory-labels"
"""Annotation on Hardware: the labels that were set from the inventory, as name=value, separated by commas."""
SWITCH: Final = "ironbell.dev/switch"
SWITCH_PORT: Final = "ironbell.dev/switch-port"
_GIB: Final = 1 << 30
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")
_EDGES: Final = "._-"
_MAX_VALUE: Final = 63


@dataclass(frozen=True, slots=True)
class InventoryLabel:
    """One label: how its value is found, and where that comes from."""

    key: str
    meaning: str
    value: Callable[[Capabilities], str]
    agent: str
    """Where the agent's report has it (JSON of the annotation)."""
    bmc: str
    """Where a Redfish service has it; empty where none does."""


def label_value(text: str) -> str:
    """Text as a label's value: what may not be in one becomes a dash; empty if nothing is left."""
    return _UNFIT.sub("-", text).strip(_EDGES)[:_MAX_VALUE].rstrip(_EDGES)


def _disks(has: Capabilities) -> str:
    return str(len(has.disks)) if has.disks is not None else ""


def _largest_disk(has: Capabilities) -> str:
    return str(max(disk.size for disk in has.disks) // _GIB) if has.disks else ""


def _memory(has: Capabilities) -> str:
    return str(round(has.memory / _GIB)) if has.memory else ""


def _nic_speed(has: Capabilities) -> str:
    return f"{has.nic_speed / 10**9:.3f}".rstrip("0").rstrip(".") if has.nic_speed else ""


LABELS: Final = (
    InventoryLabel(
        "ironbell.dev/arch",
        "architecture, as Kubernetes calls it: `amd64`, `arm64`; from `spec.interfaces[].dhcp.arch` of the Hardware",
        lambda has: label_value(has.architecture or ""),
        "",
        "",
    ),
    InventoryLabel(
        "ironbell.dev/vendor",
        "maker of the machine, such as `Dell-Inc`",
        lambda has: label_value(has.vendor or ""),
        "product.vendor, else chassis.vendor",
        "ComputerSystem Manufacturer, else Chassis Manufacturer",
    ),
    InventoryLabel(
        "ironbell.dev/model",
        "model of the machine, such as `PowerEdge-R640`",
        lambda has: label_value(has.model or ""),
        "product.name",
        "ComputerSystem Model",
    ),
    InventoryLabel(
        "ironbell.dev/cpu-cores",
        "cores of all processors",
        lambda has: str(has.cpu_cores) if has.cpu_cores else "",
        "cpu.totalCores",
        "Processor TotalCores, else ProcessorSummary CoreCount",
    ),
    InventoryLabel(
        "ironbell.dev/memory-gib",
        "memory in GiB, rounded",
        _memory,
        "memory.totalBytes, else memory.total",
        "MemorySummary TotalSystemMemoryGiB, else Memory CapacityMiB",
    ),
    InventoryLabel(
        "ironbell.dev/disks", "number of disks", _disks, "blockDevices[]", "Drive, else SimpleStorage Devices"
    ),
    InventoryLabel(
        "ironbell.dev/largest-disk-gib",
        "the largest disk in whole GiB",
        _largest_disk,
        "blockDevices[].sizeBytes, else blockDevices[].size",
        "Drive CapacityBytes",
    ),
    InventoryLabel(
        "ironbell.dev/nic-speed-gbps",
        "the fastest link in Gbit/s: `25`, `2.5`, `0.1`",
        _nic_speed,
        "networkInterfaces[].speed",
        "EthernetInterface SpeedMbps",
    ),
    InventoryLabel(
        SWITCH,
        "name of the switch that the first interface is connected to",
        lambda has: label_value(has.switch or ""),
        "networkInterfaces[].lldpNeighbours[].systemName, else chassisID",
        "",
    ),
    InventoryLabel(
        SWITCH_PORT,
        "the port there",
        lambda has: label_value(has.switch_port or ""),
        "networkInterfaces[].lldpNeighbours[].portID",
        "",
    ),
)


def labels_of(has: Capabilities) -> dict[str, str]:
    """Return the labels of a server, by key; an unknown value has none."""
    values = ((label.key, label.value(has)) for label in LABELS)
    return {key: value for key, value in values if value}


def remembered(annotation: str) -> dict[str, str]:
    """The labels that were set before, by key."""
    pairs = (part.partition("=") for part in annotation.split(",") if part)
    return {f"{PREFIX}{name}": value for name, _, value in pairs}


def to_remember(labels: Mapping[str, str]) -> str:
    """Return the annotation that lists our labels; empty without labels."""
    return ",".join(f"{key.removeprefix(PREFIX)}={value}" for key, value in sorted(labels.items()))
