"""The attributes of an agent's machine as the JSON that annotations carry.

Values that the agent did not send are left out, empty ones that it sent are kept; the single objects are always
there, empty lists never. What our agent tells beyond upstream's has names of its own. While a call waits they are held
packed, and in all so many bytes.

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
"""Devices and what belongs to them; a large server has some hundred."""
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


class Held:
    """What agents told with calls that wait."""

    def __init__(self, most: int = _MAX_HELD) -> None:
        self._left = most

    @contextlib.contextmanager
    def packed(self, packed: bytes | None) -> Iterator[bytes | None]:
        """The same while there is room. An agent tells it again with its next call."""
        if packed is None or len(packed) > self._left:
            yield None
            return
        self._left -= len(packed)
        try:
            yield packed
        finally:
            self._left += len(packed)


def pack(attributes: workflow_pb2.AgentAttributes) -> bytes | None:
    """A small form; None for more than a machine is made of."""
    lists = [getattr(attributes, field) for field, _ in _LISTS] + [attributes.cpu.processors]
    items = sum(map(len, lists))
    if items <= MAX_ITEMS:
        items += sum(len(one.lldp_neighbours) + len(one.enabled_capabilities) for one in attributes.network)
        items += sum(len(one.capabilities) for one in attributes.cpu.processors) // 64
    packed = zlib.compress(attributes.SerializeToString(), level=1) if items <= MAX_ITEMS else b""
    return packed if packed and len(packed) <= _MAX_PACKED else None


def unpack(packed: bytes) -> workflow_pb2.AgentAttributes:
    """The counterpart of `pack`."""
    return workflow_pb2.AgentAttributes.FromString(zlib.decompress(packed))


def encode(attributes: workflow_pb2.AgentAttributes) -> bytes:
    """The JSON text."""
    document: dict[str, Any] = {name: _object(getattr(attributes, name)) for name in _SINGLES}
    for field, name in _LISTS:
        if items := [_object(item) for item in getattr(attributes, field)]:
            document[name] = items
    return msgspec.json.encode(document)


def renewed(attributes: workflow_pb2.AgentAttributes, known: str) -> bytes | None:
    """The JSON text, if it says something else than the known one.

    Neighbours announce themselves every half minute, so a machine that just came up has heard none: as long as its
    agent still listens, those that it heard before stay.
    """
    text = encode(attributes)
    if not attributes.lldp_complete and f'"{_NEIGHBOURS}"' in known:
        document, before = msgspec.json.decode(text), _neighbours(known)
        networks = document.get("networkInterfaces", ())
        heard = {_card(one) for one in networks if _NEIGHBOURS in one}
        for network in networks:
            if (card := _card(network)) in before and card not in heard:
                network[_NEIGHBOURS] = before[card]
        text = msgspec.json.encode(document)
    return text if text.decode() != known else None


def _neighbours(text: str) -> dict[tuple[str, str], Any]:
    """Neighbours by card, of an annotation that anybody may have written."""
    try:
        networks = msgspec.convert(msgspec.json.decode(text), dict[str, Any]).get("networkInterfaces")
        found = msgspec.convert(networks, list[dict[str, Any]])
    except msgspec.MsgspecError:
        return {}
    return {_card(one): one[_NEIGHBOURS] for one in found if _NEIGHBOURS in one}


def _card(network: dict[str, Any]) -> tuple[str, str]:
    """Name and MAC address: those of a bond have one address, and neighbours of their own."""
    return str(network.get("name")), str(network.get("mac"))


def _object(message: Message) -> dict[str, Any]:
    """Fields that are present; lists that are not empty."""
    return {_RENAMED.get(field.name, field.name): _value(value) for field, value in message.ListFields()}


def _value(value: Any) -> Any:
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Iterable):
        return [_object(item) if isinstance(item, Message) else item for item in value]
    return _object(value)
