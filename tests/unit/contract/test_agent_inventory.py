"""Agents' reports, ours and upstream's, in the form of BMCs' reports."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ironbell.agent import attributes
from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.codec.proto import workflow_pb2
from ironbell.contract.servers.agent_inventory import in_band
from ironbell.services.workflow.attributes import encode

UPSTREAM = """{"cpu": {"totalCores": 8, "totalThreads": 16, "processors": [{"id": 0, "cores": 8,
"vendor": "GenuineIntel", "model": "Xeon", "capabilities": ["sse"]}]}, "memory": {"total": "64GB", "usable": "63GB"},
"blockDevices": [{"name": "sda", "controllerType": "SCSI", "driveType": "SSD", "size": "447GB",
"serialNumber": "S1"}],
"networkInterfaces": [{"name": "eno1", "mac": "AA:BB:CC:00:11:22", "speed": "25000Mb/s"}],
"pciDevices": [{"vendor": "0x1"}], "chassis": {"serial": "C1", "vendor": "Dell"},
"bios": {"vendor": "Dell", "version": "2.12", "releaseDate": "01/02/2024"},
"product": {"name": "PowerEdge R640", "vendor": "Dell Inc.", "serialNumber": "ABC"}}"""


def test_what_upstreams_agent_reports_is_read():
    found = in_band(UPSTREAM)
    assert found is not None
    assert (found.collection_method, found.cpu.total_cores, found.cpu.sockets[0].model) == ("agent", 8, "Xeon")
    assert (found.memory.total_bytes, found.memory.usable_bytes) == (64 << 30, 63 << 30)
    assert (found.block_devices[0].size_bytes, found.block_devices[0].serial_number) == (447 << 30, "S1")
    assert (found.network_interfaces[0].ports[0].mac, found.network_interfaces[0].ports[0].speed_mbps) == (
        "aa:bb:cc:00:11:22",
        25000,
    )
    assert (found.bios.firmware_version, found.bios.release_date) == ("2.12", "01/02/2024")
    assert (found.product.vendor, found.product.name, found.chassis.serial_number) == (
        "Dell Inc.",
        "PowerEdge R640",
        "C1",
    )


def test_what_our_agent_reports_is_read_to_the_byte():
    report = workflow_pb2.AgentAttributes(
        memory=workflow_pb2.Memory(total="64GB", total_bytes=68_000_000_000, usable_bytes=67_000_000_000),
        block=[workflow_pb2.Block(name="sda", size="239GB", size_bytes=256_060_514_304)],
        network=[
            workflow_pb2.Network(
                name="eno1",
                mac="02:00:00:00:00:01",
                driver="ice",
                lldp_neighbours=[workflow_pb2.LldpNeighbour(chassis_id="c", port_id="p", system_name="red", vlan_id=7)],
            )
        ],
        product=workflow_pb2.Product(uuid="u"),
    )
    found = in_band(encode(report).decode())
    assert found is not None
    assert (found.memory.total_bytes, found.block_devices[0].size_bytes) == (68_000_000_000, 256_060_514_304)
    card = found.network_interfaces[0]
    assert (card.driver, card.ports[0].neighbours[0].system_name, card.ports[0].neighbours[0].vlan_id) == (
        "ice",
        "red",
        7,
    )
    assert found.product.uuid == "u"


def test_this_machine_reports_what_can_be_stored():
    found = in_band(encode(attributes.detect()).decode())
    assert found is not None
    assert found.cpu.total_cores > 0
    HARDWARE.convert({"metadata": {"name": "a"}, "status": {"attributes": {"inBand": to_builtin(found)}}})


json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["cpu", "totalCores", "memory", "total", "blockDevices", "size", "speed", "sizeBytes", "x"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(json)
def test_whatever_an_annotation_holds_nothing_breaks(document):
    found = in_band(msgspec.json.encode(document).decode())
    assert found is None or isinstance(found, Inventory)
    assert in_band("no JSON") is None
    assert in_band("") is None
