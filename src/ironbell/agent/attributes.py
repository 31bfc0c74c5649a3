"""The parts of this machine, for the server's inventory: processors, memory, disks, network, PCI, firmware.

Read from `/proc` and `/sys`. A value that cannot be read is left out; nothing here can fail. Values that upstream's
agent does not report (exact sizes, drivers, the UUID, neighbours by LLDP) are in fields that its server ignores.

Source: tinkerbell/tinkerbell: tink/agent/internal/attribute (names and forms of the values); Linux: sysfs ABI.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ironbell.agent import machine
from ironbell.agent.machine import read_text
from ironbell.codec.lldp import Neighbour
from ironbell.codec.proto import workflow_pb2

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_CONTROLLERS = (
    (re.compile(r"nvme\d+n\d+"), "NVMe"),
    (re.compile(r"sd[a-z]+"), "SCSI"),
    (re.compile(r"vd[a-z]+"), "virtio"),
    (re.compile(r"xvd[a-z]+"), "virtio"),
    (re.compile(r"mmcblk\d+"), "MMC"),
    (re.compile(r"hd[a-z]+"), "IDE"),
)
_DISPLAY_CLASS = "0x03"
Heard = Mapping[str, Sequence[Neighbour]]
"""Neighbours by the name of the network interface."""


def size_text(count: int) -> str:
    """A size as upstream writes it: the largest fitting unit of 1024, rounded up; empty for 0."""
    if count <= 0:
        return ""
    exponent = min((count.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{-(-count // (1 << (10 * exponent)))}{_UNITS[exponent]}"


def _number(path: Path) -> int:
    text = read_text(path)
    return int(text) if text.isdecimal() else 0


def _children(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except OSError:
        return []


def detect(
    sys: Path = machine.SYS,
    proc: Path = Path("/proc"),
    *,
    heard: Heard | None = None,
    heard_all: bool = False,
) -> workflow_pb2.AgentAttributes:
    """All attributes of the machine; `heard_all` means that no more neighbours will be detected."""
    dmi = sys / "class" / "dmi" / "id"
    return workflow_pb2.AgentAttributes(
        cpu=_cpu(proc),
        memory=_memory(sys, proc),
        block=_blocks(sys),
        network=_networks(sys, heard or {}),
        pci=[workflow_pb2.PCI(**device) for device in _pci(sys)],
        gpu=[workflow_pb2.GPU(**device) for device in _pci(sys, prefix=_DISPLAY_CLASS)],
        chassis=workflow_pb2.Chassis(
            serial=read_text(dmi / "chassis_serial"), vendor=read_text(dmi / "chassis_vendor")
        ),
        bios=workflow_pb2.BIOS(
            vendor=read_text(dmi / "bios_vendor"),
            version=read_text(dmi / "bios_version"),
            release_date=read_text(dmi / "bios_date"),
        ),
        baseboard=workflow_pb2.Baseboard(
            vendor=read_text(dmi / "board_vendor"),
            product=read_text(dmi / "board_name"),
            version=read_text(dmi / "board_version"),
            serial_number=read_text(dmi / "board_serial"),
        ),
        product=workflow_pb2.Product(
            name=read_text(dmi / "product_name"),
            vendor=read_text(dmi / "sys_vendor"),
            serial_number=read_text(dmi / "product_serial"),
            uuid=read_text(dmi / "product_uuid").lower(),
        ),
        lldp_complete=heard_all,
    )


def _cpu(proc: Path) -> workflow_pb2.CPU:
    """Processors by physical id; a system that names no ids has one."""
    packages: dict[int, dict[str, str]] = {}
    threads: dict[int, int] = {}
    cores: dict[int, set[str]] = {}
    for index, block in enumerate(read_text(proc / "cpuinfo").split("\n\n")):
        fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in block.splitlines())}
        if "processor" not in fields:
            continue
        package = int(fields["physical id"]) if fields.get("physical id", "").isdecimal() else 0
        packages.setdefault(package, fields)
        threads[package] = threads.get(package, 0) + 1
        cores.setdefault(package, set()).add(fields.get("core id", str(index)))
    processors = [
        workflow_pb2.Processor(
            id=package,
            cores=len(cores[package]),
            threads=threads[package],
            vendor=fields.get("vendor_id", ""),
            model=fields.get("model name", ""),
            capabilities=(fields.get("flags") or fields.get("Features") or "").split(),
        )
        for package, fields in sorted(packages.items())
    ]
    return workflow_pb2.CPU(
        total_cores=sum(len(ids) for ids in cores.values()),
        total_threads=sum(threads.values()),
        processors=processors,
    )


def _memory(sys: Path, proc: Path) -> workflow_pb2.Memory:
    usable = 0
    for line in read_text(proc / "meminfo").splitlines():
        if line.startswith("MemTotal:"):
            usable = int(line.split()[1]) * 1024
    folder = sys / "devices" / "system" / "memory"
    try:
        block_size = int(read_text(folder / "block_size_bytes") or "0", 16)
    except ValueError:
        block_size = 0
    blocks = [path for path in _children(folder) if re.fullmatch(r"memory\d+", path.name)]
    online = sum(1 for path in blocks if read_text(path / "state") in {"online", ""})
    total = online * block_size or usable
    return workflow_pb2.Memory(total=size_text(total), usable=size_text(usable), total_bytes=total, usable_bytes=usable)


def _blocks(sys: Path) -> list[workflow_pb2.Block]:
    entries = []
    for path in _children(sys / "block"):
        controller = next((name for pattern, name in _CONTROLLERS if pattern.fullmatch(path.name)), "")
        if not controller:
            continue
        rotational = read_text(path / "queue" / "rotational") == "1"
        size = 512 * _number(path / "size")
        entries.append(
            workflow_pb2.Block(
                name=path.name,
                controller_type=controller,
                drive_type="HDD" if rotational else "SSD",
                size=size_text(size),
                size_bytes=size,
                physical_block_size=size_text(_number(path / "queue" / "physical_block_size")),
                vendor=read_text(path / "device" / "vendor"),
                model=read_text(path / "device" / "model"),
                wwn=machine.disk_wwn(path.name, sys),
                serial_number=machine.disk_serial(path.name, sys),
            )
        )
    return entries


def _networks(sys: Path, heard: Heard) -> list[workflow_pb2.Network]:
    entries = []
    for path in _children(sys / "class" / "net"):
        mac = read_text(path / "address")
        if path.name == "lo" or not mac:
            continue
        speed = read_text(path / "speed")
        known = speed.isdecimal() and int(speed) > 0
        entries.append(
            workflow_pb2.Network(
                name=path.name,
                mac=mac,
                speed=f"{speed}Mb/s" if known else "",
                driver=_driver(path / "device"),
                lldp_neighbours=[_neighbour(neighbour) for neighbour in heard.get(path.name, ())],
            )
        )
    return entries


def _neighbour(heard: Neighbour) -> workflow_pb2.LldpNeighbour:
    return workflow_pb2.LldpNeighbour(
        chassis_id=heard.chassis_id,
        port_id=heard.port_id,
        port_description=heard.port_description or None,
        system_name=heard.system_name or None,
        management_address=heard.management_address or None,
        vlan_id=heard.vlan_id or None,
    )


def _driver(device: Path) -> str:
    """The kernel's driver of a device; empty where it has none."""
    try:
        return (device / "driver").resolve(strict=True).name
    except OSError:
        return ""


def _pci(sys: Path, prefix: str = "") -> Iterator[dict[str, str]]:
    """PCI devices by their numbers: the names' database is larger than the agent."""
    for path in _children(sys / "bus" / "pci" / "devices"):
        kind = read_text(path / "class")
        if not kind.startswith(prefix):
            continue
        yield {
            "vendor": read_text(path / "vendor"),
            "product": read_text(path / "device"),
            "class": kind,
            "driver": _driver(path),
        }
