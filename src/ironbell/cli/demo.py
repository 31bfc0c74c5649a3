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
"""On a folder."""


@click.command()
@click.option("--cluster", "what", flag_value="cluster", default=True, help="Make a Kubernetes cluster.  [default]")
@click.option("--machine", "what", flag_value="machine", help="Install one server instead, in QEMU, to a login prompt.")
@click.option("--workers", type=click.IntRange(0, 20), default=1, show_default=True, help="The cluster's workers.")
@click.option(
    "--qemu-workers", type=click.IntRange(0, 5), default=1, show_default=True,
    help="Further workers that netboot by real firmware in QEMU.",
)  # fmt: skip
@click.option(
    "--firmware", type=click.Choice(["uefi", "bios"]), default="uefi", show_default=True, help="Firmware in QEMU."
)
@click.option("--subnet", default="192.168.76.0/24", show_default=True, help="Network of the cluster's servers.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Keep everything in this folder.")
@click.option(
    "--timeout", "timeout_s", type=float, help="Seconds to wait for the end.  [default: 2700; one server 1800]"
)
@click.option("--stay/--end", default=None, help="Keep the machines running afterwards.  [default: on a terminal]")
def demo(
    what: str,
    workers: int,
    qemu_workers: int,
    firmware: str,
    subnet: str,
    data_dir: Path | None,
    timeout_s: float | None,
    stay: bool | None,
) -> None:
    """Make a Kubernetes cluster of powered-off virtual servers, and show each stage.

    A control plane and workers get from power-off to Ready nodes with a pod on each worker; then one worker is given
    back, and its disk is read. Without a terminal it ends by itself: status 0, or not 0 and the reason.
    """
    if os.geteuid() != 0:
        raise IronbellError("the demo makes a network namespace and serves DHCP there: run it as root or by sudo")
    if what == "cluster" and not workers + qemu_workers:
        raise IronbellError("--workers and --qemu-workers are both 0: the demo needs a worker to run a pod on")
    if (what == "machine" or qemu_workers) and shutil.which("qemu-system-x86_64") is None:
        without = "" if what == "machine" else "; --qemu-workers 0 does without"
        raise IronbellError(
            f"qemu-system-x86_64 is missing; run `make packages`, or install qemu-system-x86 and ovmf{without}"
        )
    stays = sys.stdout.isatty() if stay is None else stay
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            # a build cleans up as by Ctrl-C
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    if what == "machine":
        show = _machine(firmware, timeout_s=timeout_s or MACHINE_TIMEOUT_S, stay=stays)
    else:
        plan = {"workers": workers, "qemu_workers": qemu_workers, "firmware": firmware}
        show = _cluster(plan, subnet=subnet, timeout_s=timeout_s or CLUSTER_TIMEOUT_S, stay=stays)
    from ironbell.demo.folder import own_folder

    with contextlib.nullcontext(data_dir) if data_dir else own_folder(_say) as folder:
        ended_by = asyncio.run(_until_ended(show(folder)))
    if ended_by:
        sys.exit(128 + ended_by)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _machine(firmware: str, *, timeout_s: float, stay: bool) -> Show:
    """One server; in-memory OS and image are built if they are not there or out of date."""
    from ironbell.demo.artefacts import ensure_image, ensure_osie
    from ironbell.demo.run import Demo, run

    osie, image = ensure_osie(_say), ensure_image(_say)
    return lambda folder: run(Demo(firmware, osie, image, folder, timeout_s), stay=stay)


def _cluster(wanted: dict[str, Any], *, subnet: str, timeout_s: float, stay: bool) -> Show:
    """A cluster; in-memory OS and node image are built if they are not there or out of date."""
    from ironbell.demo.artefacts import NODE_RELEASE, ensure_node_image, ensure_osie
    from ironbell.demo.clusterplan import plan
    from ironbell.demo.clusterrun import ClusterDemo, run
    from ironbell.image.debian import BuildError
    from ironbell.lab.accelerator import has_kvm

    try:
        osie, image = ensure_osie(_say), ensure_node_image(NODE_RELEASE, _say)
    except BuildError as error:
        raise BuildError(f"{error}; `ironbell demo --machine` needs no Kubernetes image") from error
    chosen = plan(**wanted, has_kvm=has_kvm())
    return lambda folder: run(ClusterDemo(chosen, NODE_RELEASE, osie, image, folder, subnet, timeout_s), stay=stay)


async def _until_ended(shown: Coroutine[Any, Any, None]) -> int:
    """Until it is over, or a signal ends it, whose number is given. A second signal does not wait for the end."""
    task, loop, ended_by = asyncio.create_task(shown), asyncio.get_running_loop(), 0

    def end(number: int) -> None:
        nonlocal ended_by
        ended_by = number
        for one in ENDING:
            loop.remove_signal_handler(one)
        with contextlib.suppress(OSError):
            _say("\nending: servers are switched off, and what was made is removed ...")
        task.cancel()

    for one in ENDING:
        if signal.getsignal(one) is not signal.SIG_IGN:
            loop.add_signal_handler(one, end, one)
    try:
        await task
    except asyncio.CancelledError:
        return ended_by
    return 0
