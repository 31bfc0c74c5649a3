"""`ironbell up`: the processes of one site on one machine, started in order and kept alive.

`core` (API and controllers) always; `lab` with a lab file; `boot` (DHCP, TFTP, HTTP boot, metadata) and `workflow` (the
service that agents ask) with a lab, an interface or simulated servers; `simulation` (machines and clusters in memory)
if it is requested.
Each is a child of its own, so that one which dies is started again without the others noticing. All state is in the
data folder and the API: kill any of them, or all, and start again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import structlog

from ironbell.app.processes.child import leaves
from ironbell.app.processes.children import Child, ChildSpec, Report
from ironbell.app.processes.privileges import named_account
from ironbell.app.site.checks import check_environment, warnings
from ironbell.app.site.core_config import CoreConfig
from ironbell.app.site.data_folder import locked, prepare_data_folder
from ironbell.app.site.metadata_url import SIMULATION_ADDRESS, image_source, metadata_url
from ironbell.app.site.node_images import NodeImageFolder
from ironbell.app.site.options import UpOptions
from ironbell.app.site.service_folder import open_service_folder, publish_all
from ironbell.app.wire.config import (
    BOOT_PROCESS,
    BOOT_SERVERS,
    WIRE_FOLDER,
    WORKFLOW_PROCESS,
    WORKFLOW_SERVERS,
    WireConfig,
)
from ironbell.base.errors import IronbellError, Retry, os_problem
from ironbell.base.ports import free_ports
from ironbell.contract.servers.netboot import CONSOLES
from ironbell.contract.servers.node_images import FOLDER
from ironbell.provisioner.node_images import InstallSettings

_log = structlog.get_logger()

CORE, LAB, SIMULATION = "core", "lab", "simulation"
_SERVERS = {BOOT_PROCESS: BOOT_SERVERS, WORKFLOW_PROCESS: WORKFLOW_SERVERS}
"""Servers of each process for machines; each is the module of its name."""
UP = "up"
PORT_FILE = "api-port"
LAB_CONSOLES = ("tty0", "ttyS0,115200")
"""The lab's machines have one serial port, which is captured."""
LAB_STOP_S = 40.0
"""Machines release their disks, and their network is removed."""


class UpError(IronbellError):
    """The site cannot be started."""

    reason = "CannotStart"
    retry = Retry.NEVER


@dataclass
class Site:
    """The running site.

    `on_ready` is called with the kubeconfig's path, once: when every process that was requested has reported that it
    serves. What only needs an API that answers (the servers, the simulation) is started before the API has every kind.
    """

    options: UpOptions
    on_ready: Callable[[Path], None]
    on_report: Callable[[str, Report], None] = lambda _name, _report: None
    """Called with each report of a process, and with one of `up` itself: the processes that were requested."""
    _core_serves: asyncio.Event = field(default_factory=asyncio.Event)
    _was_ready: set[str] = field(default_factory=set)
    _has_announced: bool = False
    _lab: dict[str, Any] = field(default_factory=dict)
    _kubeconfig: Path = field(default_factory=Path)
    _wire_requested: asyncio.Event = field(default_factory=asyncio.Event)
    _fatal: asyncio.Future[str] | None = None
    _images: NodeImageFolder | None = None
    """The folder of images, if there is one."""

    async def run(self) -> None:
        """Run until cancelled.

        Raises:
            UpError: root is needed, or a process cannot start at all.
            DataFolderError: another process uses the data folder.
        """
        create_folder(self.options)
        with locked(self.options.folder):
            warnings_ = await asyncio.to_thread(self._prepare)
            self.on_report(UP, {"event": "requested", "processes": sorted(self._requested), "warnings": warnings_})
            self._fatal = asyncio.get_running_loop().create_future()
            async with _tasks() as start_first:
                start_first(Child(self._core(), self._reported).run(), CORE)
                await self._run_around_core()

    async def _run_around_core(self) -> None:
        """Run the other processes, which end before core does: an API that goes away under them would fill the log.

        Raises:
            UpError: a process cannot start at all.
        """
        assert self._fatal is not None  # noqa: S101
        async with _tasks() as start:
            if self.options.lab:
                start(Child(self._lab_process(), self._reported).run(), LAB)
            if self.options.simulate:
                start(self._simulate(), SIMULATION)
            if self.options.serves_machines:
                start(self._serve_machines(), "servers")
            if self._images is not None:
                start(self._images.run(), "images of nodes")
            raise UpError(await self._fatal)

    async def _serve_machines(self) -> None:
        """Run the processes for machines, and restart them whenever the lab has a new network."""
        await self._core_serves.wait()
        while True:
            await self._wire_requested.wait()
            self._wire_requested.clear()
            async with _tasks() as start:
                for name in _SERVERS:
                    start(Child(self._server(name), self._reported).run(), name)
                await self._wire_requested.wait()

    async def _simulate(self) -> None:
        """Run the simulation, once there is an API for it."""
        await self._core_serves.wait()
        options = self.options
        configuration = {
            "kubeconfig": str(self._kubeconfig),
            "also": list(options.simulate_for),
            "servers": options.simulated_servers,
            "folder": str(options.folder.absolute() / "simulation"),
            "site": f"http://{SIMULATION_ADDRESS}:{options.http_port}",
            "speed": options.simulate_speed,
            "faults_file": _absolute(options.simulate_faults),
        }
        await Child(ChildSpec(SIMULATION, "ironbell.lab.sim.process", lambda: configuration), self._reported).run()

    async def _reported(self, name: str, report: Report) -> None:
        event = report["event"]
        self.on_report(name, report)
        is_first = name not in self._was_ready
        if event == "ready":
            self._was_ready.add(name)
        if event == "failed" and is_first:
            # what fails at its first start would fail at every other
            self._give_up(str(report.get("message", "")))
        elif name == CORE and event == "serving" and not self._core_serves.is_set():
            await asyncio.to_thread((self.options.folder / PORT_FILE).write_text, str(report["port"]))
            self._kubeconfig = Path(report["kubeconfig"])
            self._core_serves.set()
            if not self.options.lab:
                self._wire_requested.set()
        elif name == LAB and event == "ready":
            self._lab = report
            self._wire_requested.set()
        elif (name, event) != (CORE, "ready"):
            details = {key: value for key, value in report.items() if key != "event"}
            _log.info("process reports", sender=name, what=event, details=details)
        if self._was_ready >= self._requested and not self._has_announced:
            self._has_announced = True
            self.on_ready(self._kubeconfig)

    @property
    def _requested(self) -> set[str]:
        """The processes that serve what the options request.

        A simulation beside somebody else's managers waits for kinds that these managers bring after the API is ready.
        """
        options = self.options
        simulates = options.simulate and not options.without
        requested = {LAB: options.lab, SIMULATION: simulates} | dict.fromkeys(_SERVERS, options.serves_machines)
        return {CORE, *(name for name, is_requested in requested.items() if is_requested)}

    def _give_up(self, message: str) -> None:
        if self._fatal is not None and not self._fatal.done():
            self._fatal.set_result(message)

    def _prepare(self) -> tuple[str, ...]:
        """Check the options against this machine, make the servers' folder, and publish what they serve.

        Returns what servers will not get.

        Raises:
            OptionsError: what an option names does not exist.
        """
        check_environment(self.options)
        if self.options.simulate_faults:
            _check_faults(Path(self.options.simulate_faults))
        if not self.options.serves_machines:
            return ()
        warnings_ = warnings(self.options)
        for warning in warnings_:
            _log.warning(warning)
        with open_service_folder(self._wire_folder, named_account(self.options.user)) as wire:
            self._images = publish_all(
                wire,
                published=self._published(),
                ipxe_dir=self.options.ipxe_dir,
                node_images=self.options.node_images,
            )
        return warnings_

    def _published(self) -> dict[str, str]:
        osie = {"osie": self.options.osie_dir} if self.options.osie_dir else {}
        return osie | self.options.artefacts

    @property
    def _wire_folder(self) -> Path:
        return self.options.folder.absolute() / WIRE_FOLDER

    def _core(self) -> ChildSpec:
        options = self.options

        def configuration() -> CoreConfig:
            return CoreConfig(
                data_dir=str(options.folder.absolute()),
                encryption_key_file=str(Path(options.encryption_key_file).absolute())
                if options.encryption_key_file
                else "",
                api_address=options.api_address,
                api_port=options.api_port,
                preferred_port=self._earlier_port(),
                token_file=_absolute(options.token_auth_file),
                audit_log=_absolute(options.audit_log),
                history_seconds=options.history_seconds,
                wire_folder=str(self._wire_folder) if options.serves_machines else "",
                installs=InstallSettings(
                    metadata_url=metadata_url(options),
                    per_rack=options.installs_per_rack,
                    images=image_source(options),
                ),
                without=options.without,
            )

        return ChildSpec(CORE, "ironbell.app.site.core", configuration)

    def _earlier_port(self) -> int:
        """The API's port the last time, so that kubeconfigs stay right over restarts; zero if there was none."""
        try:
            return int((self.options.folder / PORT_FILE).read_text())
        except (OSError, ValueError):
            return 0

    def _server(self, name: str) -> ChildSpec:
        options = self.options
        return ChildSpec(
            name,
            f"ironbell.app.wire.{name}",
            lambda: WireConfig(
                serves=_SERVERS[name],
                folder=str(self._wire_folder),
                interface=options.interface or self._lab.get("bridge", ""),
                address=SIMULATION_ADDRESS if options.simulated_servers else "",
                network_namespace=self._lab.get("network_namespace", ""),
                advertise=options.advertise,
                # simulated firmware knows the boot files without DHCP
                dhcp_mode="off" if options.simulated_servers else options.dhcp,
                # nobody else is on the lab's network, and a probe at the first start need not be repeated at every
                # restart
                force=options.force or bool(options.lab) or BOOT_PROCESS in self._was_ready,
                http_port=options.http_port,
                metadata_port=options.metadata_port,
                metadata_by_instance_id=options.metadata_by_instance_id,
                tftp_port=0 if options.simulated_servers else options.tftp_port,
                grpc_port=options.grpc_port,
                workflow_http_port=options.workflow_http_port,
                artefacts=(*self._published(), *([FOLDER] if options.node_images else [])),
                osie_url=options.osie_url,
                consoles=options.consoles or (LAB_CONSOLES if options.lab else CONSOLES),
                extra_kernel_arguments=options.kernel_arguments,
                syslog_host=options.syslog_host,
                identity=options.identity,
                trusted_proxies=options.trusted_proxies,
                user=options.user,
            ),
            keeps_sockets=True,
        )

    def _lab_process(self) -> ChildSpec:
        arguments = ("--file", str(Path(self.options.lab).absolute()), "--data-dir", str(self.options.folder / "lab"))
        return ChildSpec(LAB, "ironbell.lab.process", dict, arguments, stop_after_s=LAB_STOP_S)


def create_folder(options: UpOptions) -> None:
    """Make the data folder.

    Raises:
        UpError: root is needed.
        DataFolderError: the folder cannot be created, or is not safe with its owners and modes.
    """
    if options.needs_root and os.geteuid() != 0:
        raise UpError("serving machines needs root: DHCP and TFTP have privileged ports; run as root or by sudo")
    prepare_data_folder(options.folder)


def _with_ports(options: UpOptions) -> UpOptions:
    """The options with ports for HTTP and gRPC that are free now, if any will do: machines, and what installs them, get
    these ports from processes that do not bind them.

    Raises:
        UpError: there is no free port.
    """
    if not options.serves_machines:
        return options
    any_will_do = [name for name in ("http_port", "grpc_port") if not getattr(options, name)]
    try:
        free = free_ports(SIMULATION_ADDRESS if options.simulated_servers else "", len(any_will_do))
    except OSError as error:
        service = f"--{any_will_do[0].replace('_', '-')}"
        raise UpError(f"there is no free port: {os_problem(error)}; name one with {service}") from error
    health = options.workflow_http_port
    if health is None:
        health = (options.grpc_port + 1) % 65536 if options.grpc_port else 0
    ports = dict(zip(any_will_do, free, strict=True))
    return msgspec.structs.replace(options, **ports, workflow_http_port=health)


def _check_faults(path: Path) -> None:
    """Look for what is wrong with the file before anything is started.

    Raises:
        FaultsFileError: something is.
    """
    from ironbell.lab.fleet.faults import read

    read(path)


def _absolute(path: str) -> str:
    return str(Path(path).absolute()) if path else ""


@asynccontextmanager
async def _tasks() -> AsyncIterator[Callable[[Any, str], None]]:
    """Tasks that all end when the block is left; one that fails by itself ends the block."""
    async with asyncio.TaskGroup() as group:
        started: list[asyncio.Task[None]] = []
        try:
            yield lambda work, name: started.append(group.create_task(work, name=name))
        finally:
            for task in started:
                task.cancel()


async def run_site(
    options: UpOptions,
    on_ready: Callable[[Path], None],
    on_report: Callable[[str, Report], None] = lambda _name, _report: None,
) -> None:
    """Run a site until cancelled; see `Site.run`."""
    try:
        await Site(_with_ports(options), on_ready, on_report).run()
    except BaseExceptionGroup as group:
        for error in leaves(group):
            if isinstance(error, IronbellError):
                raise error from None
        raise
