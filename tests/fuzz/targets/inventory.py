"""What an agent says of its machine: the message, the annotation made of it, the inventory and the labels read from
that; and LLDP frames, which come from whoever is at the other end of a cable."""

from __future__ import annotations

import contextlib
import re

import msgspec
from google.protobuf.message import DecodeError

from ironbell.api.meta import ObjectMeta, to_builtin
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.codec.lldp import LldpError, Neighbour, neighbour
from ironbell.codec.lldp.neighbour import payload_of
from ironbell.codec.proto import workflow_pb2
from ironbell.contract.clusters.capabilities import capabilities
from ironbell.contract.servers.agent_inventory import in_band
from ironbell.contract.servers.inventory_labels import labels_of, remembered, to_remember
from ironbell.services.workflow import attributes

from ..checks import Reader, check_line, piece

INSTRUMENTED = (
    "ironbell.services.workflow.attributes", "ironbell.contract.servers.agent_inventory", "ironbell.contract.clusters.capabilities",
    "ironbell.contract.servers.inventory_labels", "ironbell.codec.lldp", "ironbell.api.tinkerbell.inventory",
)  # fmt: skip
LONGEST = 2048
WORDS = (
    b"64GB", b"10Gb/s", b"1000Mbit/s", b'"sizeBytes":', b'"networkInterfaces":[{', b'"blockDevices":[{', b'"cpu":{',
    b'"lldpNeighbours":[{', b'"memory":{"total":"', b'"mac":"', b'"product":{', b'"chassis":{', b'"totalCores":',
    b'"vlanID":', b'"systemName":"', b'"portID":"', b"9223372036854775807", b"-1", b"null", b"\\u0000", b"\x88\xcc",
    b"\x02\x07\x04", b"\x04\x04\x05", b"\x06\x02\x00\x78", b"\xfe\x06\x00\x80\xc2\x01", b"\x10\x0c\x05\x01", b"\0\0",
)  # fmt: skip
_MAC = "02:00:00:00:00:01"
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def one(data: bytes) -> None:
    """The first byte chooses what the rest is: a message, an annotation, both, or a frame."""
    reader = Reader(data)
    kind = reader.byte() & 3
    if kind == 0:
        _message(reader.rest(), "")
    elif kind == 1:
        _annotation(reader.rest().decode("utf-8", "replace"))
    elif kind == 2:
        known = reader.piece().decode("utf-8", "replace")
        _message(reader.rest(), known)
    else:
        _frame(reader.rest())


def _message(body: bytes, known: str) -> None:
    try:
        told = workflow_pb2.AgentAttributes.FromString(body)
    except DecodeError:
        return
    packed = attributes.pack(told)
    if packed is None:
        return
    held = attributes.unpack(packed)
    assert held.SerializeToString() == told.SerializeToString(), "what was held is something else"
    text = attributes.changed_document(held, known)
    if text is None:
        return
    assert len(text) <= 4 * len(body) + len(known) + 4096, "the annotation is far longer than what was told"
    document = msgspec.json.decode(text)
    assert set(document) >= set(attributes._SINGLES)
    again = attributes.changed_document(held, text.decode())
    assert again is None, "the same report again is news"
    _annotation(text.decode())
    # Only what is not finite is no number in JSON, and nothing in the message has fractions.
    assert in_band(text.decode()) is not None, "an annotation of ours cannot be read"


def _annotation(text: str) -> None:
    found = in_band(text)
    hardware = Hardware(metadata=ObjectMeta(name="a", annotations={ANNOTATION_AGENT_ATTRIBUTES: text}))
    labels = labels_of(capabilities(hardware))
    for key, value in labels.items():
        assert _LABEL.fullmatch(value), f"label {key} has the value {value!r}"
    assert remembered(to_remember(labels)) == labels, "labels are remembered otherwise"
    if found is None:
        assert not labels
        return
    assert msgspec.convert(to_builtin(found), Inventory) == found, "an inventory that was stored reads otherwise"
    for disk in found.block_devices:
        assert 0 <= disk.size_bytes < 1 << 63
    assert found.cpu is not None
    assert 0 <= found.cpu.total_cores < 1 << 31


def _frame(frame: bytes) -> None:
    payload = payload_of(frame)
    if payload is None:
        return
    try:
        told = neighbour.decode(payload)
    except LldpError as error:
        check_line(error.message, 200, "the error's message")
        return
    for field in ("chassis_id", "port_id", "port_description", "system_name", "management_address"):
        check_line(getattr(told, field), 1024, field)
    assert 0 <= told.vlan_id < 1 << 16
    _round_trip(told)


def _round_trip(told: Neighbour) -> None:
    # What was hidden as no text, or is longer than what a part may be, cannot be written.
    with contextlib.suppress(LldpError):
        assert neighbour.decode(neighbour.encode(told)) == told, "a neighbour that was written reads otherwise"


def _machine(*, heard: bool, complete: bool) -> bytes:
    neighbours = [workflow_pb2.LldpNeighbour(chassis_id="c", port_id="Ethernet1/1", system_name="red-1", vlan_id=7)]
    return workflow_pb2.AgentAttributes(
        cpu=workflow_pb2.CPU(
            total_cores=8, total_threads=16,
            processors=[workflow_pb2.Processor(id=0, cores=8, threads=16, vendor="i", model="x", capabilities=["a"])],
        ),
        memory=workflow_pb2.Memory(total="64GB", usable="62GB", total_bytes=1 << 36),
        block=[workflow_pb2.Block(name="sda", size="239GB", size_bytes=256060514304, serial_number="S1")],
        network=[
            workflow_pb2.Network(
                name="eno1", mac=_MAC, speed="10Gb/s", driver="ice", lldp_neighbours=neighbours if heard else []
            )
        ],
        product=workflow_pb2.Product(name="R1", vendor="Dell Inc.", uuid="u"),
        chassis=workflow_pb2.Chassis(serial="s", vendor="v"),
        lldp_complete=complete,
    ).SerializeToString()  # fmt: skip


def _annotated(message: bytes) -> bytes:
    return attributes.encode(workflow_pb2.AgentAttributes.FromString(message))


_LLDP = (
    b"\x01\x80\xc2\0\0\x0e\x02\0\0\0\0\x01\x88\xcc" b"\x02\x07\x04\x02\0\0\0\0\x09" b"\x04\x04\x05Gi1" b"\x06\x02\0\x78"
    b"\x08\x04port" b"\x0a\x03sw1" b"\x10\x0c\x05\x01\xc0\0\x02\x01\x02\0\0\0\x01\0" b"\xfe\x06\0\x80\xc2\x01\0\x07\0\0"
)  # fmt: skip
SEEDS = (
    *(b"\0" + _machine(heard=heard, complete=complete) for heard in (True, False) for complete in (True, False)),
    b"\x01" + _annotated(_machine(heard=True, complete=True)),
    b"\x02" + piece(_annotated(_machine(heard=True, complete=True))) + _machine(heard=False, complete=False),
    b"\x02" + piece(b'{"lldpNeighbours":1,"networkInterfaces":[{"mac":1}]}') + _machine(heard=False, complete=False),
    b'\x01{"cpu":{"totalCores":-5},"memory":{"total":"999999999999EB"},"blockDevices":[{"size":"1 TB"}]}',
    b"\x03" + _LLDP,
)  # fmt: skip
