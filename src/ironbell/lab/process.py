"""The `lab` process: the network, the machines, their BMCs, and a socket for commands.

Started by `ironbell up --lab FILE`. Machines are off at first. When the process ends, however it does, QEMU ends with
it; the namespace is removed at a clean end, and otherwise by the next lab.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import ssl
import sys
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import structlog
from aiohttp import web

from ironbell.app.processes.child import read_configuration, report, run_child
from ironbell.lab.accelerator import has_kvm
from ironbell.lab.certificates import create_certificates, write_private
from ironbell.lab.control import serve_control
from ironbell.lab.description import LabDescription, MachineDescription, read
from ironbell.lab.files import LabFolder, LabState, MachineState, write_state
from ironbell.lab.machine import VirtualMachine
from ironbell.lab.namespace.host import node_host
from ironbell.lab.namespace.machine import NamespaceMachine
from ironbell.lab.network import BRIDGE, LabNetwork
from ironbell.lab.presence import present
from ironbell.lab.qemu_machine import QemuMachine
from ironbell.lab.redfish import VirtualBmc

_log = structlog.get_logger()

LOOPBACK = "127.0.0.1"


def prepare() -> Callable[[], Awaitable[None]]:
    """Read file and folder and create the network; return a function that runs the machines until cancelled."""
    parser = ArgumentParser(prog="ironbell.lab.process")
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    arguments = parser.parse_args()
    read_configuration(dict)
    lab, folder = read(arguments.file), LabFolder(arguments.data_dir.absolute())
    folder.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    create_certificates(folder)
    network = LabNetwork.of(lab, folder.root)
    held = ExitStack()
    held.enter_context(present(network.namespace))
    network.create()

    async def run() -> None:
        with held:
            await run_lab(lab, folder, network)

    return run


async def run_lab(lab: LabDescription, folder: LabFolder, network: LabNetwork) -> None:
    """Run until cancelled."""
    running = _Lab(lab, folder, network)
    try:
        async with AsyncExitStack() as stack:
            if any(machine.kind == "namespace" for machine in lab.machines):
                stack.enter_context(node_host())
            for description in lab.machines:
                await running.add(description, stack)
            await running.changed()
            report("ready", network_namespace=str(network.path), bridge=BRIDGE, address=lab.network.gateway)
            await serve_control(folder.control, running.bmcs)
    finally:
        try:
            await asyncio.gather(*(bmc.machine.off() for bmc in running.bmcs.values()))
            folder.state.unlink(missing_ok=True)
        finally:  # also if the disk is full
            await asyncio.to_thread(network.remove)


class _Lab:
    """The machines that run."""

    def __init__(self, lab: LabDescription, folder: LabFolder, network: LabNetwork) -> None:
        self._lab = lab
        self._folder = folder
        self._network = network
        self._has_kvm = has_kvm()
        self._ports: dict[str, int] = {}
        self.bmcs: dict[str, VirtualBmc] = {}

    async def add(self, description: MachineDescription, stack: AsyncExitStack) -> None:
        """Create a machine and open its BMC."""
        kind = NamespaceMachine if description.kind == "namespace" else QemuMachine
        machine = kind(description, self._folder, self._network, self._machine_changed, has_kvm=self._has_kvm)
        await machine.prepare()
        bmc = VirtualBmc(description.bmc.user, _password(self._folder, description), machine)
        runner = web.AppRunner(bmc.application(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self._folder.certificate, self._folder.key)
        await web.TCPSite(
            runner, LOOPBACK, description.bmc.port or self._earlier_port(description), ssl_context=tls
        ).start()
        self._ports[description.name] = runner.addresses[0][1]
        (self._folder.machine(description.name) / "bmc-port").write_text(str(self._ports[description.name]))
        self.bmcs[description.name] = bmc

    def _earlier_port(self, description: MachineDescription) -> int:
        """The port of an earlier run, so that objects which name it stay right; zero the first time."""
        try:
            return int((self._folder.machine(description.name) / "bmc-port").read_text())
        except (OSError, ValueError):
            return 0

    async def _machine_changed(self, machine: VirtualMachine) -> None:
        report("machine", machine=machine.description.name, power=machine.power.value, starts=machine.starts)
        await self.changed()

    async def changed(self) -> None:
        """Store the current state."""
        await asyncio.to_thread(write_state, self._folder, self._state())

    def _state(self) -> LabState:
        return LabState(
            name=self._lab.name,
            pid=os.getpid(),
            network_namespace=str(self._network.path),
            bridge=BRIDGE,
            subnet=str(self._lab.network.network),
            gateway=self._lab.network.gateway,
            authority=str(self._folder.authority),
            machines=tuple(self._machine_state(bmc) for bmc in self.bmcs.values()),
        )

    def _machine_state(self, bmc: VirtualBmc) -> MachineState:
        description = bmc.machine.description
        return MachineState(
            name=description.name,
            firmware=description.firmware,
            mac=description.mac,
            address=description.address,
            uuid=description.uuid,
            memory=description.memory,
            cpus=description.cpus,
            power=bmc.machine.power.value,
            starts=bmc.machine.starts,
            bmc_host=LOOPBACK,
            bmc_port=self._ports[description.name],
            bmc_user=bmc.user,
            password_file=str(self._folder.password(description.name)),
            console=str(self._folder.console(description.name)),
            disk_serial=",".join(disk.serial for disk in description.disks),
            kind=description.kind,
        )


def _password(folder: LabFolder, description: MachineDescription) -> str:
    """The file's password, else the one of an earlier run, else a new one."""
    path = folder.password(description.name)
    if not description.bmc.password and path.exists():
        return path.read_text()
    password = description.bmc.password or secrets.token_urlsafe(12)
    write_private(path, password.encode())
    return password


if __name__ == "__main__":
    sys.exit(run_child("lab", prepare))
