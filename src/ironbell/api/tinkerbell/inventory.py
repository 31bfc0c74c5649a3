"""The inventory of a Hardware: what its BMC and its agent reported of the machine's parts, and what owners require.

Upstream has what the BMC reported; ours are `inBand`, neighbours, drivers and the UUID.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/attributes.go.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ironbell.api.crd.markers import Int32, Int64, Quantity, Schema, Time
from ironbell.api.meta import Model

Vendor = Annotated[str, Schema("Maker of the part.")]
ModelName = Annotated[str, Schema("Model of the part.")]
SerialNumber = Annotated[str, Schema("Serial number of the part.")]
Description = Annotated[str, Schema("Description that the part reports.")]
FirmwareVersion = Annotated[str, Schema("Version of the part's firmware.")]


class ComponentStatus(Model, frozen=True):
    """Health of a part."""

    health: Annotated[str, Schema("Health as the BMC reports it.")] = ""
    state: Annotated[str, Schema("State as the BMC reports it.")] = ""
    post_code: Annotated[Int32, Schema("Code of the last power-on self-test.")] = 0
    post_code_status: Annotated[str, Schema("Meaning of that code.")] = ""


Status = Annotated[ComponentStatus | None, Schema("How the part is doing.")]


class Socket(Model, frozen=True):
    """One processor socket."""

    slot: Annotated[str, Schema("Name of the socket.")] = ""
    vendor: Vendor = ""
    model: ModelName = ""
    cores: Annotated[Int32, Schema("Cores of the processor.")] = 0
    threads: Annotated[Int32, Schema("Hardware threads of the processor.")] = 0
    clock_speed_mhz: Annotated[Int32, Schema("Clock in MHz.")] = field(default=0, name="clockSpeedMHz")
    serial_number: SerialNumber = ""
    capabilities: Annotated[list[str], Schema("Features of the processor.")] = []
    firmware_version: FirmwareVersion = ""


class Cpu(Model, frozen=True):
    """The processors."""

    total_cores: Annotated[Int32, Schema("Cores of all processors.")] = 0
    total_threads: Annotated[Int32, Schema("Hardware threads of all processors.")] = 0
    sockets: Annotated[list[Socket], Schema("Each processor.")] = []


class MemoryModule(Model, frozen=True):
    """One memory module."""

    slot: Annotated[str, Schema("Name of the slot.")] = ""
    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    part_number: Annotated[str, Schema("Maker's number of the module.")] = ""
    size_bytes: Annotated[Int64, Schema("Size in bytes.")] = 0
    speed_mhz: Annotated[Int32, Schema("Clock in MHz.")] = field(default=0, name="speedMHz")
    form_factor: Annotated[str, Schema("Form of the module, such as DIMM.")] = ""
    firmware_version: FirmwareVersion = ""


class Memory(Model, frozen=True):
    """The memory."""

    total_bytes: Annotated[Int64, Schema("Installed bytes.")] = 0
    usable_bytes: Annotated[Int64, Schema("Bytes that an operating system can use.")] = 0
    modules: Annotated[list[MemoryModule], Schema("Each module.")] = []


class BlockDevice(Model, frozen=True):
    """One disk."""

    name: Annotated[str, Schema("Name of the disk.")] = ""
    controller_type: Annotated[str, Schema("Bus or controller of the disk.")] = ""
    drive_type: Annotated[str, Schema("Kind of the disk, such as SSD.")] = ""
    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    wwn: Annotated[str, Schema("World wide name of the disk.")] = ""
    size_bytes: Annotated[Int64, Schema("Size in bytes.")] = 0
    physical_block_size_bytes: Annotated[Int64, Schema("Bytes of one physical block.")] = 0
    smart_status: Annotated[str, Schema("The disk's own verdict (SMART).")] = ""
    firmware_version: FirmwareVersion = ""
    status: Status = None


class Neighbour(Model, frozen=True):
    """Neighbour at the other end of a port's cable, by LLDP."""

    chassis_id: Annotated[str, Schema("Identifier of the neighbour, often a MAC address.")] = field(
        default="", name="chassisID"
    )
    port_id: Annotated[str, Schema("Identifier of the neighbour's port.")] = field(default="", name="portID")
    port_description: Annotated[str, Schema("Its description of the port.")] = ""
    system_name: Annotated[str, Schema("Name of the switch.")] = ""
    management_address: Annotated[str, Schema("Address of the switch.")] = ""
    vlan_id: Annotated[Int32, Schema("Untagged VLAN of the port.")] = field(default=0, name="vlanID")


class NetworkPort(Model, frozen=True):
    """One port of a network card."""

    port_id: Annotated[str, Schema("Name of the port.")] = field(default="", name="portID")
    mac: Annotated[str, Schema("MAC address.")] = ""
    speed_mbps: Annotated[Int32, Schema("Speed in Mbit/s.")] = 0
    mtu: Annotated[Int32, Schema("Largest packet in bytes.")] = 0
    link_status: Annotated[str, Schema("State of the link.")] = ""
    enabled_capabilities: Annotated[list[str], Schema("Features that are on.")] = []
    neighbours: Annotated[list[Neighbour], Schema("Neighbours at the other end of the cable.")] = []


class NetworkInterface(Model, frozen=True):
    """One network card."""

    name: Annotated[str, Schema("Name of the card.")] = ""
    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    firmware_version: FirmwareVersion = ""
    driver: Annotated[str, Schema("Driver in use.")] = ""
    ports: Annotated[list[NetworkPort], Schema("Each port.")] = []


class GpuDevice(Model, frozen=True):
    """One graphics processor."""

    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    description: Description = ""
    class_: Annotated[str, Schema("PCI class.")] = field(default="", name="class")
    driver: Annotated[str, Schema("Driver in use.")] = ""
    firmware_version: FirmwareVersion = ""
    status: Status = None


class PciDevice(Model, frozen=True):
    """One PCI device."""

    vendor: Vendor = ""
    model: ModelName = ""
    class_: Annotated[str, Schema("PCI class.")] = field(default="", name="class")
    driver: Annotated[str, Schema("Driver in use.")] = ""


class Psu(Model, frozen=True):
    """One power supply."""

    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    description: Description = ""
    firmware_version: FirmwareVersion = ""
    power_capacity_watts: Annotated[Int64, Schema("Power that it can deliver, in watts.")] = 0
    status: Status = None


class Tpm(Model, frozen=True):
    """One trusted platform module."""

    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    interface_type: Annotated[str, Schema("Interface of the module, such as TPM2_0.")] = ""
    firmware_version: FirmwareVersion = ""
    status: Status = None


class StorageController(Model, frozen=True):
    """One storage controller."""

    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    description: Description = ""
    firmware_version: FirmwareVersion = ""
    status: Status = None


class Chassis(Model, frozen=True):
    """The chassis."""

    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""


class Baseboard(Model, frozen=True):
    """The mainboard."""

    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    description: Description = ""
    firmware_version: FirmwareVersion = ""
    status: Status = None


class Bios(Model, frozen=True):
    """The system firmware."""

    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    firmware_version: FirmwareVersion = ""
    release_date: Annotated[str, Schema("Date of the firmware.")] = ""
    status: Status = None


class Product(Model, frozen=True):
    """The machine as it is sold."""

    name: Annotated[str, Schema("Name of the product.")] = ""
    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    uuid: Annotated[str, Schema("UUID of the machine (SMBIOS).")] = ""
    status: Status = None


class Bmc(Model, frozen=True):
    """The BMC itself."""

    vendor: Vendor = ""
    model: ModelName = ""
    serial_number: SerialNumber = ""
    firmware_version: FirmwareVersion = ""
    nic: Annotated[NetworkInterface | None, Schema("The BMC's own network card.")] = None
    status: Status = None


class Inventory(Model, frozen=True):
    """The machine's parts, as one source saw them."""

    last_updated: Annotated[Time, Schema("When the parts were last looked at.")] = None
    collection_method: Annotated[str, Schema("Where this is from: agent, or the BMC driver's name.")] = ""
    cpu: Annotated[Cpu | None, Schema("Processors.")] = None
    memory: Annotated[Memory | None, Schema("Memory.")] = None
    block_devices: Annotated[list[BlockDevice], Schema("Disks.")] = []
    network_interfaces: Annotated[list[NetworkInterface], Schema("Network cards.")] = []
    gpu_devices: Annotated[list[GpuDevice], Schema("Graphics processors.")] = []
    pci_devices: Annotated[list[PciDevice], Schema("PCI devices.")] = []
    chassis: Annotated[Chassis | None, Schema("Chassis.")] = None
    baseboard: Annotated[Baseboard | None, Schema("Mainboard.")] = None
    bios: Annotated[Bios | None, Schema("System firmware.")] = None
    product: Annotated[Product | None, Schema("Product data.")] = None
    bmc: Annotated[Bmc | None, Schema("The BMC itself.")] = None
    psus: Annotated[list[Psu], Schema("Power supplies.")] = []
    tpms: Annotated[list[Tpm], Schema("Trusted platform modules.")] = []
    storage_controllers: Annotated[list[StorageController], Schema("Storage controllers.")] = []


class Attributes(Model, frozen=True):
    """Inventory of the machine, by source."""

    in_band: Annotated[Inventory | None, Schema("Inventory that the agent reported from inside the machine.")] = None
    out_of_band: Annotated[Inventory | None, Schema("Inventory that the BMC reported.")] = None


class DiskRequirements(Model, frozen=True):
    """Disks that Hardware must have."""

    count: Annotated[Int32, Schema("How many disks at least that fit the other fields.", minimum=1)] = 1
    size: Annotated[Quantity, Schema("Size of each at least, such as 480G.")] = 0


class HardwareRequirements(Model, frozen=True):
    """Requirements for the inventory of Hardware; Hardware without an inventory is not claimed."""

    architecture: Annotated[str, Schema("Architecture as Kubernetes names it, such as amd64.")] = ""
    vendor: Annotated[str, Schema("Maker, in any case.")] = ""
    model: Annotated[str, Schema("Model, in any case; * at an end stands for anything.")] = ""
    cpu_cores: Annotated[Int32, Schema("Cores of all processors together, at least.", minimum=0)] = 0
    memory: Annotated[Quantity, Schema("Memory at least, such as 64Gi.")] = 0
    disks: Annotated[DiskRequirements | None, Schema("Disks.")] = None
    nic_speed: Annotated[Quantity, Schema("Bits per second of the fastest interface at least, such as 10G.")] = 0
