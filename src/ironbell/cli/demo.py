"""`ironbell demo`: a cluster, or one server, from power-off, on virtual machines; each stage is shown with its time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click

from ironbell.base.errors import IronbellError

CLUSTER_TIMEOUT_S, MACHINE_TIMEOUT_S = 2700.0, 1800.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Show = Callable[[Path], Coroutine[Any, Any, None]]
"""Run a demonstration on a folder."""


@click.command()
@click.option("--cluster", "mode", flag_value="cluster", default=True, help="Create a Kubernetes cluster.  [default]")
@click.option("--machine", "mode", flag_value="machine", help="Install one server in QEMU up to a login prompt.")
@click.option(
    "--workers", type=click.IntRange(0, 20), default=1, show_default=True, help="Number of simulated workers."
)
@click.option(
    "--qemu-workers", type=click.IntRange(0, 5), default=1, show_default=True,
    help="Number of further workers that netboot with real firmware in QEMU.",
)  # fmt: skip
@click.option(
    "--firmware", type=click.Choice(["uefi", "bios"]), default="uefi", show_default=True, help="Firmware in QEMU."
)
@click.option("--subnet", default="192.168.76.0/24", show_default=True, help="Network of the cluster's servers.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Keep everything in this folder.")
@click.option("--timeout", "timeout_s", type=float, help="Time limit in seconds.  [default: 2700; one server 1800]")
@click.option("--stay/--end", default=None, help="Keep the machines running afterwards.  [default: on a terminal]")
def demo(
    mode: str,
    workers: int,
    qemu_workers: int,
    firmware: str,
    subnet: str,
    data_dir: Path | None,
    timeout_s: float | None,
    stay: bool | None,
) -> None:
    """Create a Kubernetes cluster on powered-off virtual servers, and show each stage.

    A control plane and workers get from power-off to Ready nodes, with a pod on each worker; then one worker is
    released and its disk is checked. Without a terminal the command exits by itself: with status 0, or with the reason
    and another status.
    """
    if os.geteuid() != 0:
        raise IronbellError("the demo creates a network namespace and serves DHCP in it: run it as root or with sudo")
    if mode == "cluster" and not workers + qemu_workers:
        raise IronbellError("--workers and --qemu-workers are both 0: the demo needs a worker for its pods")
    if (mode == "machine" or qemu_workers) and shutil.which("qemu-system-x86_64") is None:
        without = "" if mode == "machine" else ", or use --qemu-workers 0"
        raise IronbellError(
            f"qemu-system-x86_64 is missing; run `make packages`, or install qemu-system-x86 and ovmf{without}"
        )
    stays = sys.stdout.isatty() if stay is None else stay
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            # a build then cleans up as after Ctrl-C
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    if mode == "machine":
        show = _machine(firmware, timeout_s=timeout_s or MACHINE_TIMEOUT_S, stay=stays)
    else:
        plan = {"workers": workers, "qemu_workers": qemu_workers, "firmware": firmware}
        show = _cluster(plan, subnet=subnet, timeout_s=timeout_s or CLUSTER_TIMEOUT_S, stay=stays)
    from ironbell.demo.folder import own_folder

    with contextlib.nullcontext(data_dir) if data_dir else own_folder(_print) as folder:
        signal_number = asyncio.run(_run_until_signal(show(folder)))
    if signal_number:
        sys.exit(128 + signal_number)


def _print(text: str) -> None:
    click.echo(text, err=True)


def _machine(firmware: str, *, timeout_s: float, stay: bool) -> Show:
    """Show one server. The in-memory OS and the image are built if they are missing or out of date."""
    from ironbell.demo.artefacts import ensure_image, ensure_osie
    from ironbell.demo.run import Demo, run

    osie, image = ensure_osie(_print), ensure_image(_print)
    return lambda folder: run(Demo(firmware, osie, image, folder, timeout_s), stay=stay)


def _cluster(chosen: dict[str, Any], *, subnet: str, timeout_s: float, stay: bool) -> Show:
    """Show a cluster. The in-memory OS and the node image are built if they are missing or out of date."""
    from ironbell.demo.artefacts import NODE_RELEASE, ensure_node_image, ensure_osie
    from ironbell.demo.clusterplan import plan
    from ironbell.demo.clusterrun import ClusterDemo, run
    from ironbell.image.debian import BuildError
    from ironbell.lab.accelerator import has_kvm

    try:
        osie, image = ensure_osie(_print), ensure_node_image(NODE_RELEASE, _print)
    except BuildError as error:
        raise BuildError(f"{error}; `ironbell demo --machine` does not need a Kubernetes image") from error
    cluster_plan = plan(**chosen, has_kvm=has_kvm())
    return lambda folder: run(
        ClusterDemo(cluster_plan, NODE_RELEASE, osie, image, folder, subnet, timeout_s), stay=stay
    )


async def _run_until_signal(demonstration: Coroutine[Any, Any, None]) -> int:
    """Run to the end, or to a signal, whose number is returned. A second signal does not wait for the cleanup."""
    task, loop, signal_number = asyncio.create_task(demonstration), asyncio.get_running_loop(), 0

    def end(number: int) -> None:
        nonlocal signal_number
        signal_number = number
        for handled in ENDING:
            loop.remove_signal_handler(handled)
        with contextlib.suppress(OSError):
            _print("\nstopping: powering off the servers and removing the demo's files ...")
        task.cancel()

    for handled in ENDING:
        if signal.getsignal(handled) is not signal.SIG_IGN:
            loop.add_signal_handler(handled, end, handled)
    try:
        await task
    except asyncio.CancelledError:
        return signal_number
    return 0
