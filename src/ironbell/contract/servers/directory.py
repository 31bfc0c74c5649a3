"""Lookups of Hardware by MAC, IP, agent id and instance id, answered from memory.

Every server toward machines (DHCP, TFTP, boot scripts, metadata, workflow) finds its Hardware here, so that all of
them agree on a machine's identity. The directory is fed by an informer and keeps no state of its own. Two Hardware that
claim the same address are a conflict: neither is served, and the conflict can be listed so that it is reported.

Source: tinkerbell/tinkerbell: pkg/backend/kube (indexes and filter semantics).
"""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.interface import Interface

ObjectKey = tuple[str, str]

MACHINE_UUID: Final = "ironbell.dev/machine-uuid"
"""On Hardware: the machine's SMBIOS UUID; agents never write to another machine's disks."""
DISK_SERIAL: Final = "ironbell.dev/disk-serial"
"""On Hardware: serial numbers of the disks that may be written, separated by commas."""
KEEP_DISKS: Final = "ironbell.dev/keep-disks"
"""On Hardware, a TinkerbellMachine or a Workflow, yours: serial numbers or WWNs, separated by commas, of disks that no
installation and no wipe writes to."""
KEEP_VARIABLE: Final = "IRONBELL_KEEP_DISKS"
"""The agent's variable for them."""
AGENT_TIMEOUT: Final = "ironbell.dev/agent-timeout"
"""On a Workflow: seconds to wait for its agent to take an action before the Workflow ends with TIMEOUT. On Hardware or
a TinkerbellMachine, yours: the same for the Workflow that wipes the server."""
ERROR: Final = "ironbell.dev/error"
"""On Hardware and Templates whose state is `Error`: what is wrong."""


class Attribute(Enum):
    """Attribute that identifies a machine; the last two only show that two Hardware name one machine or disk."""

    MAC = "MAC address"
    IP = "IP address"
    AGENT_ID = "agent id"
    INSTANCE_ID = "instance id"
    MACHINE_UUID = "machine UUID"
    DISK_SERIAL = "disk serial"


@dataclass(frozen=True, slots=True)
class Match:
    """The one Hardware that an attribute names; `interface` is set when the attribute belongs to an interface."""

    hardware: Hardware
    interface: Interface | None = None


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several Hardware have the same value: no machine may be served by it."""

    attribute: Attribute
    value: str
    names: tuple[str, ...]

    @property
    def message(self) -> str:
        claimed = f"{self.attribute.value} {self.value} is claimed by several Hardware ({', '.join(self.names)})"
        is_unserved = self.attribute in (Attribute.MACHINE_UUID, Attribute.DISK_SERIAL)
        return f"{claimed}; none of them {'gets an action' if is_unserved else 'is served'}"


Lookup = Match | Ambiguous | None


def normal_mac(text: str) -> str:
    """A MAC in any usual spelling (colons, dashes, dots, none) as lower-case pairs with colons; empty if invalid."""
    digits = text.lower().replace(":", "").replace("-", "").replace(".", "")
    if len(digits) != 12 or any(digit not in "0123456789abcdef" for digit in digits):
        return ""
    return ":".join(digits[start : start + 2] for start in range(0, 12, 2))


def normal_uuid(text: str) -> str:
    """A UUID in one spelling for both byte orders that firmware writes it in; other texts in lower case."""
    try:
        value = uuid.UUID(text.strip())
    except ValueError:
        return text.strip().lower()
    return min(str(value), str(uuid.UUID(bytes_le=value.bytes)))


def agent_ids(hardware: Hardware) -> tuple[str, ...]:
    """Every id that the agent on a server may go by: `spec.agentID`, then its MAC addresses.

    A boot script names the agent by `spec.agentID`, else by the MAC that boots (`booted_agent_id`), and upstream's ISO
    always by the MAC. A Workflow may use any of these ids. The MAC that is also the instance id comes first, since
    upstream's manifests name the booting interface so; without any other id, the instance id is the agent's.

    Source: tinkerbell/tinkerbell: smee/internal/ipxe/script (worker_id); cluster-api-provider-tinkerbell: device_1.
    """
    instance = hardware.spec.metadata.instance if hardware.spec.metadata is not None else None
    instance_id = instance.id if instance is not None else ""
    macs = [mac for interface in hardware.spec.interfaces if interface.dhcp and (mac := normal_mac(interface.dhcp.mac))]
    macs.sort(key=lambda mac: mac != normal_mac(instance_id))
    ids = [text for text in (hardware.spec.agent_id, *macs) if text]
    return tuple(dict.fromkeys(ids or [instance_id]))


def agent_id(hardware: Hardware) -> str:
    """The id by which a Workflow names a server's agent."""
    return agent_ids(hardware)[0]


def booted_agent_id(hardware: Hardware, mac: str) -> str:
    """The id that the boot script gives to the agent of a server that boots from the interface with this MAC."""
    return hardware.spec.agent_id or mac


def named_serials(hardware: Hardware) -> list[str]:
    """Serial numbers of its disks as the annotation names them, in lower case."""
    text = hardware.metadata.annotations.get(DISK_SERIAL, "")
    return sorted({part.strip().lower() for part in text.split(",") if part.strip()})


def normal_ip(text: str) -> str:
    """Return an address in its canonical text form; empty if the text is not an address."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""


@dataclass
class HardwareDirectory:
    """All Hardware, indexed. `upsert` and `remove` follow the informer; lookups cost one dictionary access."""

    _objects: dict[ObjectKey, Hardware] = field(default_factory=dict)
    _index: dict[tuple[Attribute, str], dict[ObjectKey, Interface | None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Hardware]:
        return iter(self._objects.values())

    def upsert(self, hardware: Hardware) -> None:
        """Add or update a Hardware. One that is being deleted stays until it was deleted."""
        self.remove(*hardware.key)
        self._objects[hardware.key] = hardware
        for attribute, value, interface in _entries(hardware):
            self._index.setdefault((attribute, value), {})[hardware.key] = interface

    def remove(self, namespace: str, name: str) -> None:
        """Forget one Hardware; unknown ones are ignored."""
        removed = self._objects.pop((namespace, name), None)
        if removed is None:
            return
        for attribute, value, _ in _entries(removed):
            entry = self._index[(attribute, value)]
            entry.pop(removed.key, None)
            if not entry:
                del self._index[(attribute, value)]

    def follow(self, old: Hardware | None, new: Hardware | None) -> None:
        """Apply a change from an informer."""
        if new is not None:
            self.upsert(new)
        elif old is not None:
            self.remove(*old.key)

    def by_mac(self, mac: str) -> Lookup:
        if (Attribute.MAC, mac) not in self._index:
            mac = normal_mac(mac)
        return self._find(Attribute.MAC, mac)

    def by_ip(self, address: str) -> Lookup:
        return self._find(Attribute.IP, normal_ip(address))

    def by_agent_id(self, agent_id: str) -> Lookup:
        """Look up by `spec.agentID`, else by MAC; see `agent_ids`."""
        return self._find(Attribute.AGENT_ID, agent_id) or self.by_mac(agent_id)

    def agent_ids(self, agent_id: str) -> tuple[str, ...]:
        """All ids that mean the same agent as `agent_id`, which comes first; it alone where no one Hardware has it."""
        match = self.by_agent_id(agent_id)
        others = agent_ids(match.hardware) if isinstance(match, Match) else ()
        return tuple(dict.fromkeys((agent_id, *others)))

    def by_instance_id(self, instance_id: str) -> Lookup:
        return self._find(Attribute.INSTANCE_ID, instance_id)

    def get(self, namespace: str, name: str) -> Hardware | None:
        """A Hardware by its name."""
        return self._objects.get((namespace, name))

    def uid_of(self, namespace: str, name: str) -> str:
        """The uid of a Hardware; empty when there is none of that name."""
        hardware = self.get(namespace, name)
        return hardware.metadata.uid if hardware else ""

    def conflicts_of(self, hardware: Hardware) -> list[Ambiguous]:
        """Return the values that this Hardware shares with others."""
        conflicts = []
        for attribute, value, _ in _entries(hardware):
            lookup = self._find(attribute, value)
            if isinstance(lookup, Ambiguous) and lookup not in conflicts:
                conflicts.append(lookup)
        return conflicts

    def _find(self, attribute: Attribute, value: str) -> Lookup:
        entry = self._index.get((attribute, value)) if value else None
        if not entry:
            return None
        if len(entry) > 1:
            return Ambiguous(attribute, value, tuple(sorted(f"{namespace}/{name}" for namespace, name in entry)))
        (key, interface) = next(iter(entry.items()))
        return Match(self._objects[key], interface)


def _entries(hardware: Hardware) -> Iterable[tuple[Attribute, str, Interface | None]]:
    """Return all attributes of a Hardware. The first interface with a value wins, as upstream."""
    seen: set[tuple[Attribute, str]] = set()
    for interface in hardware.spec.interfaces:
        dhcp = interface.dhcp
        if dhcp is None:
            continue
        for attribute, value in (
            (Attribute.MAC, normal_mac(dhcp.mac)),
            (Attribute.IP, normal_ip(dhcp.ip.address) if dhcp.ip else ""),
        ):
            if value and (attribute, value) not in seen:
                seen.add((attribute, value))
                yield attribute, value, interface
    if hardware.spec.agent_id:
        yield Attribute.AGENT_ID, hardware.spec.agent_id, None
    instance = hardware.spec.metadata.instance if hardware.spec.metadata else None
    if instance is not None and instance.id:
        yield Attribute.INSTANCE_ID, instance.id, None
    for value in hardware.metadata.annotations.get(MACHINE_UUID, "").split(","):
        if identity := normal_uuid(value):
            yield Attribute.MACHINE_UUID, identity, None
    for serial in named_serials(hardware):
        yield Attribute.DISK_SERIAL, serial, None
