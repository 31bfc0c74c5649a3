"""The attributes of an agent's machine as the JSON that annotations carry.

Values that the agent did not send are left out, empty ones that it sent are kept; the single objects are always
there, empty lists never.

Source: tinkerbell/tinkerbell: pkg/data (attribute names).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from google.protobuf.message import Message

from ironbell.codec.proto import workflow_pb2

MAX_SIZE = 65536

_RENAMED = {
    "total_cores": "totalCores",
    "total_threads": "totalThreads",
    "controller_type": "controllerType",
    "drive_type": "driveType",
    "physical_block_size": "physicalBlockSize",
    "serial_number": "serialNumber",
    "enabled_capabilities": "enabledCapabilities",
    "release_date": "releaseDate",
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


def _object(message: Message) -> dict[str, Any]:
    """Fields that are present; lists that are not empty."""
    return {_RENAMED.get(field.name, field.name): _value(value) for field, value in message.ListFields()}


def _value(value: Any) -> Any:
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Iterable):
        return [_object(item) if isinstance(item, Message) else item for item in value]
    return _object(value)
