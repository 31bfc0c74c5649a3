"""`ironbell demo` as a person runs it: it ends by itself, with status 0 and a disk that was read, and leaves nothing.

What it does is tested in parts by `test_kubeadm_cluster`; this is the whole of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ironbell.lab.namespace.host import CONNECTIONS
from ironbell.lab.presence import FOLDER
from support.kubeadm.cluster import RELEASE, node_artefacts
from support.skips import needs_root

pytestmark = [
    pytest.mark.root,
    pytest.mark.soak,
    needs_root,
]

NAMESPACE_S, QEMU_S, ENDED_S = 420, 1500, 60
AT_WORK = "1 of 6, stream image ..."


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """For the demo's folder, which has sockets: the folder of a test has a path that can be too long for one."""
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        yield Path(folder)


async def test_the_demo_makes_a_cluster_and_gives_a_server_back_wiped(short_folder: Path) -> None:
    """After one that was interrupted and one that was killed in the middle, both with machines running."""
    node_artefacts(RELEASE)
    before = _host()
    async with _demo(short_folder, "--qemu-workers", "0") as interrupted:
        await _said(interrupted, until=AT_WORK, within_s=NAMESPACE_S)
        interrupted.send_signal(signal.SIGINT)
        await _said(interrupted, within_s=ENDED_S)
        assert await interrupted.wait() == 128 + signal.SIGINT
    assert (_host(), list(short_folder.iterdir())) == (before, [])
    async with _demo(short_folder, "--qemu-workers", "0") as killed:
        await _said(killed, until=AT_WORK, within_s=NAMESPACE_S)
        killed.kill()
        await killed.wait()
    (left,) = short_folder.iterdir()
    said = await _whole(short_folder, "--qemu-workers", "0", within_s=NAMESPACE_S)
    assert f"removing the folder of an earlier demonstration: {left}" in said
    for told in ("cp-1 (namespace): kubelet v", "w-1 (namespace): kubelet v", "w-1 (namespace): hello-"):
        assert told in said
    assert "every byte is zero" in said
    assert (_host(), list(short_folder.iterdir())) == (before, [])


@pytest.mark.qemu
async def test_a_worker_of_the_demo_joins_from_a_server_with_real_firmware(short_folder: Path) -> None:
    node_artefacts(RELEASE)
    said = await _whole(short_folder, within_s=QEMU_S)
    for told in ("q-1 (qemu): ipxe.efi over TFTP", "q-1 (qemu): kubelet v", "q-1 (qemu): hello-"):
        assert told in said
    assert "every byte is zero" in said
    assert list(short_folder.iterdir()) == []


def _host() -> tuple[list[str], str]:
    """Which labs are known to this host, and the setting that they change."""
    labs = sorted(path.name for path in FOLDER.glob("*")) if FOLDER.exists() else []
    return labs, CONNECTIONS.read_text() if CONNECTIONS.exists() else ""


async def _whole(folder: Path, *options: str, within_s: float) -> str:
    async with _demo(folder, "--timeout", str(within_s), *options) as process:
        said = await _said(process, within_s=within_s + NAMESPACE_S)
        assert await process.wait() == 0, said[-2000:]
    return said


async def _said(process: Process, *, until: str = "", within_s: float) -> str:
    """What it says up to a line, or up to its end."""
    assert process.stdout is not None
    said = ""
    async with asyncio.timeout(within_s):
        async for line in process.stdout:
            said += line.decode()
            print(line.decode(), end="", flush=True)
            if until and until in line.decode():
                return said
    assert not until, f"it ended before {until}: {said[-2000:]}"
    return said


@asynccontextmanager
async def _demo(folder: Path, *options: str) -> AsyncIterator[Process]:
    """Without a terminal; its own folder is made in this one."""
    command = [sys.executable, "-m", "ironbell.cli.main", "demo", *options]
    environment = {**os.environ, "TMPDIR": str(folder)}
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT, env=environment)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
