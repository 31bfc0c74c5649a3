"""What services tell of a machine's parts becomes one form, and whatever they tell, nothing breaks."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.bmc.driver import UnsupportedError
from ironbell.bmc.redfish.inventory import MAX_PARTS, collect
from ironbell.contract.clusters.capabilities import capabilities

SYSTEM = "/redfish/v1/Systems/1"


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def several(*paths: str) -> dict[str, Any]:
    return {"Members": [link(path) for path in paths]}


SERVER: dict[str, dict[str, Any]] = {
    SYSTEM: {
        "Manufacturer": "Dell Inc.",
        "Model": "PowerEdge R640",
        "SerialNumber": "ABC123",
        "BiosVersion": "2.12.2",
        "MemorySummary": {"TotalSystemMemoryGiB": 64},
        "ProcessorSummary": {"CoreCount": 1},
        "Processors": link("/p"),
        "Memory": link("/m"),
        "Storage": link("/s"),
        "EthernetInterfaces": link("/e"),
        "Links": {"Chassis": [link("/c")], "ManagedBy": [link("/b")]},
    },
    "/p": several("/p/1", "/p/2", "/p/gpu", "/p/empty"),
    "/p/1": {"Socket": "CPU1", "Model": "Xeon", "TotalCores": 8, "TotalThreads": 16, "ProcessorType": "CPU"},
    "/p/2": {"Socket": "CPU2", "Model": "Xeon", "TotalCores": 8, "TotalThreads": 16, "ProcessorType": "CPU"},
    "/p/gpu": {"TotalCores": 5000, "ProcessorType": "GPU"},
    "/p/empty": {"TotalCores": 8, "ProcessorType": "CPU", "Status": {"State": "Absent"}},
    "/m": several("/m/1", "/m/2"),
    "/m/1": {"DeviceLocator": "A1", "CapacityMiB": 32768, "OperatingSpeedMhz": 2933},
    "/s": several("/s/1"),
    "/s/1": {"Drives": [link("/d/1"), link("/d/gone"), link("/d/2")]},
    "/d/1": {"Id": "Disk.0", "CapacityBytes": 480103981056, "MediaType": "SSD", "SerialNumber": " S1 ",
             "Identifiers": [{"DurableNameFormat": "NAA", "DurableName": "5000c500"}]},
    "/d/2": {"Id": "Disk.1", "CapacityBytes": 480103981056, "MediaType": "SSD", "FailurePredicted": True},
    "/e": several("/e/1"),
    "/e/1": {"Id": "NIC.1", "MACAddress": "AA:BB:CC:00:11:22", "SpeedMbps": 25000, "LinkStatus": "LinkUp"},
    "/c": {"Manufacturer": "Dell", "Model": "R640", "SerialNumber": "C1"},
    "/b": {"Model": "14G Monolithic", "FirmwareVersion": "6.10", "Status": {"Health": "OK", "State": "Enabled"}},
}  # fmt: skip


async def read(documents: dict[str, dict[str, Any]]) -> tuple[Inventory, int]:
    asked = 0

    async def get(path: str) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        if path not in documents:
            raise UnsupportedError(f"{path} is not there")
        return documents[path]

    return await collect(get, SYSTEM), asked


async def test_a_server() -> None:
    found, _ = await read(SERVER)
    assert found.collection_method == "redfish"
    assert found.cpu is not None
    assert (found.cpu.total_cores, found.cpu.total_threads, len(found.cpu.sockets)) == (16, 32, 2)
    assert found.memory is not None
    assert (found.memory.total_bytes, [module.slot for module in found.memory.modules]) == (64 << 30, ["A1"])
    assert [(disk.name, disk.serial_number, disk.wwn) for disk in found.block_devices] == [
        ("Disk.0", "S1", "5000c500"),
        ("Disk.1", "", ""),
    ]
    assert found.block_devices[1].smart_status == "FAILING"
    assert [port.mac for card in found.network_interfaces for port in card.ports] == ["aa:bb:cc:00:11:22"]
    assert found.bmc is not None
    assert found.bmc.firmware_version == "6.10"
    status = {"attributes": {"outOfBand": to_builtin(found)}}
    has = capabilities(HARDWARE.convert({"metadata": {"name": "a"}, "status": status}))
    assert (has.vendor, has.model, has.cpu_cores, has.memory) == ("Dell Inc.", "PowerEdge R640", 16, 64 << 30)
    assert has.nic_speed == 25 * 10**9
    assert has.disks is not None
    assert len(has.disks) == 2


async def test_a_service_that_tells_only_summaries() -> None:
    found, _ = await read(
        {SYSTEM: {"ProcessorSummary": {"CoreCount": 4}, "MemorySummary": {"TotalSystemMemoryGiB": 0.5}}}
    )
    assert found.cpu is not None
    assert found.cpu.total_cores == 4
    assert found.memory is not None
    assert found.memory.total_bytes == 1 << 29
    assert found.block_devices == []


async def test_drives_of_many_controllers_are_bounded_together() -> None:
    drives = {"Drives": [link(f"/d/{number}") for number in range(MAX_PARTS)]}
    storage = {f"/s/{number}": drives for number in range(MAX_PARTS)}
    disks = {f"/d/{number}": {"Id": str(number)} for number in range(MAX_PARTS)}
    found, asked = await read({SYSTEM: {"Storage": link("/s")}, "/s": several(*storage), **storage, **disks})
    assert len(found.block_devices) == MAX_PARTS
    assert asked <= 2 * MAX_PARTS + 2


async def test_how_much_is_asked_is_bounded() -> None:
    many = {f"/m/{number}": {"CapacityMiB": 1} for number in range(1000)}
    found, asked = await read({SYSTEM: {"Memory": link("/m")}, "/m": several(*many), **many})
    assert found.memory is not None
    assert len(found.memory.modules) == MAX_PARTS
    assert asked < MAX_PARTS + 5


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(link("/p")) | st.just([link("/p")]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(SERVER[SYSTEM])), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*SERVER[SYSTEM], "Members", "Drives", "Devices", "Status"]), _ANY), st.data())
async def test_whatever_is_told_nothing_breaks(system: dict[str, Any], data: Any) -> None:
    documents = {path: data.draw(st.dictionaries(st.text(), _ANY, max_size=2)) for path in ("/p", "/m")}
    await read({**documents, SYSTEM: system})
