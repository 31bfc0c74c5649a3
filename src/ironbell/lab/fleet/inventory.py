"""The parts that a simulated server reports: to its BMC's clients by Redfish documents, and from inside by its agent's
attributes. Pure.

Source: DMTF DSP0268 (schemas); tinkerbell/tinkerbell: tink/agent/internal/attribute (forms of the values).
"""

from __future__ import annotations

from typing import Any

from ironbell.agent.attributes import size_text
from ironbell.codec.proto import workflow_pb2
from ironbell.lab.fleet.catalogue import Disk, Server
from ironbell.lab.redfish_answers import MANAGER, SYSTEM

CHASSIS = "/redfish/v1/Chassis/1"
_STORAGE = f"{SYSTEM}/Storage/1"
_OK = {"State": "Enabled", "Health": "OK"}

Document = dict[str, Any]


def documents(server: Server) -> dict[str, Document]:
    """Documents that do not change, by path."""
    model = server.model
    processors = {
        f"{SYSTEM}/Processors/{number}": {
            "Id": str(number),
            "Socket": f"CPU.{number}",
            "ProcessorType": "CPU",
            "Manufacturer": model.cpu_vendor,
            "Model": model.cpu_model,
            "TotalCores": model.cores,
            "TotalThreads": 2 * model.cores,
            "Status": _OK,
        }
        for number in range(1, model.sockets + 1)
    }
    drives = {f"{_STORAGE}/Drives/{number}": _drive(number, disk) for number, disk in enumerate(server.disks)}
    nic = f"{SYSTEM}/EthernetInterfaces/1"
    return {
        **processors,
        **drives,
        f"{SYSTEM}/Processors": _collection("ProcessorCollection", *processors),
        f"{SYSTEM}/Storage": _collection("StorageCollection", _STORAGE),
        _STORAGE: {"Id": "1", "Drives": [{"@odata.id": path} for path in drives]},
        f"{SYSTEM}/EthernetInterfaces": _collection("EthernetInterfaceCollection", nic),
        nic: {
            "Id": "NIC.1",
            "Name": "eth0",
            "PermanentMACAddress": server.mac,
            "MACAddress": server.mac,
            "SpeedMbps": model.nic_mbps,
            "MTUSize": 1500,
            "LinkStatus": "LinkUp",
        },
        "/redfish/v1/Systems": _collection("ComputerSystemCollection", SYSTEM),
        "/redfish/v1/Chassis": _collection("ChassisCollection", CHASSIS),
        CHASSIS: {"Id": "1", "Manufacturer": model.vendor, "Model": model.model, "SerialNumber": server.serial},
        "/redfish/v1/Managers": _collection("ManagerCollection", MANAGER),
        MANAGER: {
            "Id": "1",
            "Name": "Ironbell BMC (simulated)",
            "ManagerType": "BMC",
            "Manufacturer": model.vendor,
            "Model": "simulated",
            "FirmwareVersion": "1.0",
            "Status": _OK,
        },
    }


def system(server: Server) -> Document:
    """The system, without what changes."""
    model = server.model
    return {
        "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
        "Id": "1",
        "Name": server.name,
        "SystemType": "Physical",
        "Manufacturer": model.vendor,
        "Model": model.model,
        "SerialNumber": server.serial,
        "UUID": server.uuid,
        "BiosVersion": model.bios,
        "Status": _OK,
        "MemorySummary": {"TotalSystemMemoryGiB": model.memory_gib},
        "ProcessorSummary": {"Count": model.sockets, "CoreCount": model.sockets * model.cores},
        "Processors": {"@odata.id": f"{SYSTEM}/Processors"},
        "Storage": {"@odata.id": f"{SYSTEM}/Storage"},
        "EthernetInterfaces": {"@odata.id": f"{SYSTEM}/EthernetInterfaces"},
        "Links": {"Chassis": [{"@odata.id": CHASSIS}], "ManagedBy": [{"@odata.id": MANAGER}]},
    }


def attributes(server: Server) -> workflow_pb2.AgentAttributes:
    """The attributes that the agent detects."""
    model = server.model
    memory = size_text(model.memory_gib << 30)
    return workflow_pb2.AgentAttributes(
        cpu=workflow_pb2.CPU(
            total_cores=model.sockets * model.cores,
            total_threads=2 * model.sockets * model.cores,
            processors=[
                workflow_pb2.Processor(
                    id=number,
                    cores=model.cores,
                    threads=2 * model.cores,
                    vendor=model.cpu_vendor,
                    model=model.cpu_model,
                )
                for number in range(model.sockets)
            ],
        ),
        memory=workflow_pb2.Memory(total=memory, usable=memory),
        block=[
            workflow_pb2.Block(
                name=disk.device.removeprefix("/dev/"),
                controller_type=disk.kind.protocol,
                drive_type=disk.kind.media,
                size=size_text(disk.kind.size),
                vendor=model.vendor,
                model="simulated",
                serial_number=disk.serial,
            )
            for disk in server.disks
        ],
        network=[workflow_pb2.Network(name="eth0", mac=server.mac, speed=f"{model.nic_mbps}Mb/s")],
        chassis=workflow_pb2.Chassis(serial=server.serial, vendor=model.vendor),
        bios=workflow_pb2.BIOS(vendor=model.vendor, version=model.bios),
        product=workflow_pb2.Product(name=model.model, vendor=model.vendor, serial_number=server.serial),
    )


def _drive(number: int, disk: Disk) -> Document:
    return {
        "Id": disk.device.removeprefix("/dev/"),
        "Name": f"Disk {number}",
        "Protocol": disk.kind.protocol,
        "MediaType": disk.kind.media,
        "Manufacturer": "Ironbell",
        "Model": "simulated",
        "SerialNumber": disk.serial,
        "CapacityBytes": disk.kind.size,
        "Status": _OK,
    }


def _collection(kind: str, *members: str) -> Document:
    return {
        "@odata.type": f"#{kind}.{kind}",
        "Name": kind,
        "Members@odata.count": len(members),
        "Members": [{"@odata.id": member} for member in members],
    }
