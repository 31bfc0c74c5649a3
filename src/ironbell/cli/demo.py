"""`ironbell demo`: an installation from power-off to login on a virtual machine, each stage shown with its time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import click

from ironbell.base.errors import IronbellError


@click.command()
@click.option("--firmware", type=click.Choice(["uefi", "bios"]), default="uefi", show_default=True, help="Firmware.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Keep everything in this folder.")
@click.option("--timeout", "timeout_s", default=1800.0, show_default=True, help="Seconds to wait for the end.")
@click.option("--stay/--end", default=None, help="Keep the machine running afterwards.  [default: on a terminal]")
def demo(firmware: str, data_dir: Path | None, timeout_s: float, stay: bool | None) -> None:
    """Install a virtual machine from power-off to login, and show each stage.

    Without a terminal it ends by itself: status 0, or not 0 and the reason.
    """
    if os.geteuid() != 0:
        raise IronbellError("the demo makes a network namespace and serves DHCP there: run it as root or by sudo")
    if shutil.which("qemu-system-x86_64") is None:
        raise IronbellError("qemu-system-x86_64 is missing; run `make packages`, or install qemu-system-x86 and ovmf")
    osie, image = _artefacts()
    folder = data_dir or Path(tempfile.mkdtemp(prefix="ironbell-demo-"))
    stays = sys.stdout.isatty() if stay is None else stay
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_run(firmware, folder, osie=osie, image=image, timeout_s=timeout_s, stay=stays))
    finally:
        if data_dir is None:
            shutil.rmtree(folder, ignore_errors=True)


def _artefacts() -> tuple[Path, Path]:
    """In-memory OS and disk image, built if they are not there or out of date."""
    from ironbell.demo.artefacts import ensure_image, ensure_osie

    def say(text: str) -> None:
        click.echo(text, err=True)

    return ensure_osie(say), ensure_image(say)


async def _run(firmware: str, folder: Path, *, osie: Path, image: Path, timeout_s: float, stay: bool) -> None:
    from ironbell.demo.run import Demo, run

    task = asyncio.current_task()
    assert task is not None  # noqa: S101
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await run(Demo(firmware, osie, image, folder, timeout_s), stay=stay)
