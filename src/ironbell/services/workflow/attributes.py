"""The attributes of an agent's machine as the JSON that annotations carry.

Values that the agent did not send are left out, empty ones that it sent are kept; the single objects are always
there, empty lists never. What our agent tells beyond upstream's has names of its own.

Source: tinkerbell/tinkerbell: pkg/data (attribute names).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from google.protobuf.message import Message

from ironbell.codec.proto import workflow_pb2

MAX_SIZE = 65536

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
        for network in document.get("networkInterfaces", ()):
            if network.get("mac") in before:
                network.setdefault(_NEIGHBOURS, before[network["mac"]])
        text = msgspec.json.encode(document)
    return text if text.decode() != known else None


def _neighbours(text: str) -> dict[str, Any]:
    """Neighbours by MAC address, of an annotation that anybody may have written."""
    try:
        networks = msgspec.convert(msgspec.json.decode(text), dict[str, Any]).get("networkInterfaces")
        found = msgspec.convert(networks, list[dict[str, Any]])
    except msgspec.MsgspecError:
        return {}
    return {str(one.get("mac")): one[_NEIGHBOURS] for one in found if _NEIGHBOURS in one}


def _object(message: Message) -> dict[str, Any]:
    """Fields that are present; lists that are not empty."""
    return {_RENAMED.get(field.name, field.name): _value(value) for field, value in message.ListFields()}


def _value(value: Any) -> Any:
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Iterable):
        return [_object(item) if isinstance(item, Message) else item for item in value]
    return _object(value)
