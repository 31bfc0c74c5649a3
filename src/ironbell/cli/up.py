"""`ironbell up`: one site on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironbell.base.errors import os_problem
from ironbell.base.ports import GRPC_PORT, HTTP_PORT, TFTP_PORT, UPSTREAM_METADATA_PORT
from ironbell.cli.options import named_folder

if TYPE_CHECKING:
    from ironbell.app.processes.log_file import LogFile
    from ironbell.app.site.options import UpOptions
    from ironbell.cli.screen import Screen

LOG_FILE = "up.log"
DRAW_INTERVAL_S = 1.0


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=str, file_okay=False),
    help="Folder for all data; required here or in the file.",
)
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="YAML file with any of these options.")
@click.option(
    "--encryption-key-file",
    type=click.Path(path_type=str, dir_okay=False),
    help="File with the keys that encrypt Secrets on disk.  [default: storage.key in the data folder]",
)
@click.option("--api-address", help="Address of the Kubernetes API.  [default: 127.0.0.1]")
@click.option("--api-port", type=int, help="Port of the Kubernetes API; 0 selects a free one.  [default: 0]")
@click.option(
    "--token-auth-file",
    type=click.Path(path_type=str, dir_okay=False),
    help='File of tokens for the API, lines of TOKEN,USER,UID,"GROUP,GROUP"; mode 0600.',
)
@click.option(
    "--audit-log", type=click.Path(path_type=str, dir_okay=False), help="Record the API's requests in this file."
)
@click.option(
    "--history",
    metavar="DURATION",
    help="Time for which the API keeps changes for watches and lists that continue.  [default: 1h]",
)
@click.option("--lab", type=click.Path(path_type=str, dir_okay=False), help="Create the virtual machines of this file.")
@click.option(
    "--simulate",
    is_flag=False,
    flag_value="0",
    type=click.IntRange(min=0),
    metavar="[N]",
    help="Simulate machines and clusters (DevCluster, DevMachine); with a number, also that many servers with BMCs.",
)
@click.option(
    "--simulate-speed",
    type=click.Choice(["instant", "real"]),
    help="With --simulate N: duration of simulated operations.  [default: instant]",
)
@click.option(
    "--simulate-faults",
    type=click.Path(path_type=str, dir_okay=False),
    help="With --simulate N: YAML file of the faults to simulate, and their frequency.",
)
@click.option(
    "--simulate-for",
    multiple=True,
    metavar="KUBECONFIG",
    help="With --simulate: another API with the same machines, to pivot to.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="COMPONENT",
    help="Leave out a component's controllers, so that others replace them; those of Cluster API with their kinds.",
)
@click.option("--interface", help="Serve machines on this network interface.")
@click.option(
    "--metadata-url",
    metavar="URL",
    help="URL at which machines of clusters find their metadata, such as http://192.0.2.1:7080.  [default: from "
    "--advertise]",
)
@click.option(
    "--identity",
    type=click.Choice(["own", "strict", "compat"]),
    help="How machines are identified. own: by the token of their boot for our Templates and those annotated so, "
    "others by address; strict: all by token; compat: all by agent id, as upstream.  [default: own]",
)
@click.option(
    "--trusted-proxies",
    multiple=True,
    metavar="CIDR",
    help="Address or network of trusted proxies: over HTTP the machine's address is in X-Forwarded-For, over gRPC it "
    "is not compared.",
)
@click.option(
    "--installs-per-rack",
    type=click.IntRange(min=0),
    help="Number of servers of a rack that are powered on and installed at the same time; 0: all.  [default: 16]",
)
@click.option("--advertise", help="Address of this host for machines, instead of the one in their subnet.")
@click.option(
    "--dhcp",
    type=click.Choice(["reservation", "proxy", "auto-proxy", "off"]),
    help="How machines get their addresses.  [default: reservation]",
)
@click.option("--force", is_flag=True, default=None, help="Assign addresses even if another DHCP server answers.")
@click.option("--http-port", type=int, help=f"Port for scripts, artefacts and metadata.  [default: {HTTP_PORT}]")
@click.option(
    "--metadata-port",
    type=int,
    help=f"Additional port for metadata, such as {UPSTREAM_METADATA_PORT} for templates of older Tinkerbell.  "
    "[default: none]",
)
@click.option(
    "--metadata-by-instance-id",
    is_flag=True,
    default=None,
    help="Also serve metadata to clients that know an instance id, below /tootles/instanceID/ID.",
)
@click.option("--tftp-port", type=int, help=f"Port for TFTP.  [default: {TFTP_PORT}]")
@click.option("--grpc-port", type=int, help=f"Port of the workflow service.  [default: {GRPC_PORT}]")
@click.option(
    "--workflow-http-port",
    type=int,
    help="Port for /healthz, /readyz and /metrics of the workflow service.  [default: after --grpc-port]",
)
@click.option("--osie-dir", type=click.Path(path_type=str, file_okay=False), help="Folder of the in-memory OS.")
@click.option("--osie-url", help="URL of the in-memory OS, instead of this host.")
@click.option("--ipxe-dir", type=click.Path(path_type=str, file_okay=False), help="Folder of custom iPXE binaries.")
@click.option(
    "--node-images",
    type=click.Path(path_type=str, file_okay=False),
    help="Folder of images built by `ironbell image build --kubernetes`, for machines whose manifests name none.",
)
@click.option("--artefacts", multiple=True, metavar="NAME=FOLDER", help="Serve a folder to machines as /NAME/.")
@click.option("--console", "consoles", multiple=True, help="Console of the in-memory OS, such as ttyS0,115200.")
@click.option("--kernel-argument", "kernel_arguments", multiple=True, help="Additional argument of the in-memory OS.")
@click.option("--syslog-host", help="Host to which the in-memory OS sends its log.")
@click.option("--user", help="Account for the services for machines.  [default: ironbell if it exists, else 60770]")
@click.option("--log", is_flag=True, default=None, help="Show the log on a terminal, instead of the screen.")
def up(config: Path | None, artefacts: tuple[str, ...], **given: Any) -> None:
    """Start the Kubernetes API and the controllers; with --lab, --interface or --simulate N also the services for
    machines.

    A terminal shows the addresses of all services, and the log is in the file up.log of the data folder. Without a
    terminal, or with --log, the log goes to standard error, and standard output gets one line `ready` with the
    kubeconfig's path once everything that was requested is served. SIGTERM or Ctrl-C stops it.
    """
    from ironbell.app.site.options import read_options
    from ironbell.cli.screen import open_terminal

    given["artefacts"] = dict(named_folder(text) for text in artefacts) or None
    given["consoles"] = given["consoles"] or None
    given["simulate"] = True if given["simulate"] == 0 else given["simulate"]
    given["without"] = given["without"] or None
    given["simulate_for"] = given["simulate_for"] or None
    given["kernel_arguments"] = given["kernel_arguments"] or None
    given["trusted_proxies"] = given["trusted_proxies"] or None
    options = read_options(config, given)
    terminal = None if options.log else open_terminal()
    with contextlib.suppress(KeyboardInterrupt):
        if terminal is None:
            _with_log(options)
        else:
            _with_screen(options, terminal)


def _with_log(options: UpOptions) -> None:
    from ironbell.app.processes.logs import configure_logging

    configure_logging(process="up")
    asyncio.run(_run(options, lambda kubeconfig: click.echo(f"ready {kubeconfig}")))


def _with_screen(options: UpOptions, terminal: int) -> None:
    from ironbell.app.processes.log_file import LogFile
    from ironbell.app.processes.logs import configure_logging
    from ironbell.app.site.metadata_url import site_address
    from ironbell.app.site.up import create_folder
    from ironbell.cli.screen import Screen, SiteView, uses_colour
    from ironbell.cli.version import ironbell_version

    create_folder(options)
    log = LogFile(options.folder.absolute() / LOG_FILE)
    view = SiteView(options, site_address(options), log.path, ironbell_version())
    with log.takes_output():
        configure_logging(process="up")
        asyncio.run(_run(options, lambda _: None, Screen(view, terminal, uses_colour()), log))


async def _run(
    options: UpOptions, ready: Callable[[Path], None], screen: Screen | None = None, log: LogFile | None = None
) -> None:
    from ironbell.app.site.up import run_site

    task = asyncio.current_task()
    assert task is not None  # noqa: S101
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        if screen is None or log is None:
            await run_site(options, ready)
            return
        for number in (signal.SIGWINCH, signal.SIGCONT):
            loop.add_signal_handler(number, lambda: screen.draw(force=True))
        keeping = asyncio.create_task(_keep(screen, log), name="screen")
        try:
            await run_site(options, ready, screen.record)
        finally:
            keeping.cancel()


async def _keep(screen: Screen, log: LogFile) -> None:
    """Bound the log, and draw what could not be drawn while the terminal was stopped."""
    while True:
        await asyncio.sleep(DRAW_INTERVAL_S)
        screen.view.log_problem = await asyncio.to_thread(_bound, log)
        if screen.view.states:
            screen.draw()


def _bound(log: LogFile) -> str:
    """Keep a log within its limit; while that is not possible, return the reason."""
    try:
        log.rotate()
    except OSError as error:
        return f"{log.path} grows beyond its limit, as it cannot be moved to {log.older}: {os_problem(error)}."
    return ""
