"""Attributes of an agent's machine, and their JSON form in an annotation.

Values that the agent did not send are omitted, empty values that it sent are kept; single objects are always present,
empty lists never. Attributes that only our agent reports have names of their own. While a call waits, its attributes
are held compressed, within a total size.

Source: tinkerbell/tinkerbell: pkg/data (attribute names).
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from google.protobuf.message import Message

from ironbell.codec.proto import workflow_pb2

MAX_SIZE = 65536
MAX_ITEMS: Final = 2048
"""Devices and their parts; a large server has some hundred."""
_MAX_PACKED: Final = 32 << 10
_MAX_HELD: Final = 16 << 20

_NEIGHBOURS = "lldpNeighbours"
_RENAMED = {
    "total_cores": "totalCores",
    "total_threads": "totalThreads",
    "controller_type": "controllerType",
    "drive_type": "driveType",
    "physical_block_size": "physicalBlockSize",
    "serial_number": "serialNumber",
    "enabled_capabilities": "enabledCapabilities",
    "release_date": "releaseDate",
    "total_bytes": "totalBytes",
    "usable_bytes": "usableBytes",
    "size_bytes": "sizeBytes",
    "lldp_neighbours": _NEIGHBOURS,
    "chassis_id": "chassisID",
    "port_id": "portID",
    "port_description": "portDescription",
    "system_name": "systemName",
    "management_address": "managementAddress",
    "vlan_id": "vlanID",
}
_LISTS = (("block", "blockDevices"), ("network", "networkInterfaces"), ("pci", "pciDevices"), ("gpu", "gpuDevices"))
_SINGLES = ("cpu", "memory", "chassis", "bios", "baseboard", "product")


class Budget:
    """Bytes that are left for the attributes of waiting calls."""

    def __init__(self, size: int = _MAX_HELD) -> None:
        self._left = size

    @contextlib.contextmanager
    def reserve(self, packed: bytes | None) -> Iterator[bytes | None]:
        """Hold `packed` within the budget, or None if it does not fit; an agent sends it again with its next call."""
        if packed is None or len(packed) > self._left:
            yield None
            return
        self._left -= len(packed)
        try:
            yield packed
        finally:
            self._left += len(packed)


def pack(attributes: workflow_pb2.AgentAttributes) -> bytes | None:
    """Return the compressed form, or None if there are more items than a machine has."""
    lists = [getattr(attributes, field) for field, _ in _LISTS] + [attributes.cpu.processors]
    items = sum(map(len, lists))
    if items <= MAX_ITEMS:
        items += sum(len(nic.lldp_neighbours) + len(nic.enabled_capabilities) for nic in attributes.network)
        items += sum(len(processor.capabilities) for processor in attributes.cpu.processors) // 64
    packed = zlib.compress(attributes.SerializeToString(), level=1) if items <= MAX_ITEMS else b""
    return packed if packed and len(packed) <= _MAX_PACKED else None


def unpack(packed: bytes) -> workflow_pb2.AgentAttributes:
    """Reverse `pack`."""
    return workflow_pb2.AgentAttributes.FromString(zlib.decompress(packed))


def encode(attributes: workflow_pb2.AgentAttributes) -> bytes:
    """Return the JSON text of the attributes."""
    document: dict[str, Any] = {name: _object(getattr(attributes, name)) for name in _SINGLES}
    for field, name in _LISTS:
        if items := [_object(item) for item in getattr(attributes, field)]:
            document[name] = items
    return msgspec.json.encode(document)


def changed_document(attributes: workflow_pb2.AgentAttributes, known: str) -> bytes | None:
    """Return the JSON text, or None if it equals the known one.

    Neighbours announce themselves every half minute, so a machine that just booted has heard none yet: while its agent
    still listens, the known neighbours stay.
    """
    text = encode(attributes)
    if not attributes.lldp_complete and f'"{_NEIGHBOURS}"' in known:
        document, previous = msgspec.json.decode(text), _neighbours(known)
        interfaces = document.get("networkInterfaces", ())
        heard = {_card(interface) for interface in interfaces if _NEIGHBOURS in interface}
        for interface in interfaces:
            if (card := _card(interface)) in previous and card not in heard:
                interface[_NEIGHBOURS] = previous[card]
        text = msgspec.json.encode(document)
    return text if text.decode() != known else None


def _neighbours(text: str) -> dict[tuple[str, str], Any]:
    """Return the neighbours by card in an annotation, which may have been edited by a user."""
    try:
        document = msgspec.convert(msgspec.json.decode(text), dict[str, Any])
        interfaces = msgspec.convert(document.get("networkInterfaces"), list[dict[str, Any]])
    except msgspec.MsgspecError:
        return {}
    return {_card(interface): interface[_NEIGHBOURS] for interface in interfaces if _NEIGHBOURS in interface}


def _card(interface: dict[str, Any]) -> tuple[str, str]:
    """Name and MAC address: interfaces of a bond share the address, but not the neighbours."""
    return str(interface.get("name")), str(interface.get("mac"))


def _object(message: Message) -> dict[str, Any]:
    """Return the fields that are set, without empty lists."""
    return {_RENAMED.get(field.name, field.name): _value(value) for field, value in message.ListFields()}


def _value(value: Any) -> Any:
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Iterable):
        return [_object(item) if isinstance(item, Message) else item for item in value]
    return _object(value)
