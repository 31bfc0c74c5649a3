"""`ironbell demo` as a person runs it: it ends by itself, with status 0 and a disk that was read.

What it does is tested in parts by `test_kubeadm_cluster`; this is the whole of it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from support.kubeadmcluster import RELEASE, node_artefacts

pytestmark = [
    pytest.mark.root,
    pytest.mark.soak,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces"),
]

NAMESPACE_S, QEMU_S = 420, 1500


async def test_the_demo_makes_a_cluster_and_gives_a_server_back_wiped(tmp_path: Path) -> None:
    said = await _demo(tmp_path, "--qemu-workers", "0", timeout_s=NAMESPACE_S)
    for told in ("cp-1 (namespace): kubelet v", "w-1 (namespace): kubelet v", "w-1 (namespace): hello-"):
        assert told in said
    assert "every byte is zero" in said


@pytest.mark.qemu
async def test_a_worker_of_the_demo_joins_from_a_server_with_real_firmware(tmp_path: Path) -> None:
    said = await _demo(tmp_path, "--qemu-workers", "1", timeout_s=QEMU_S)
    for told in ("q-1 (qemu): ipxe.efi over TFTP", "q-1 (qemu): kubelet v", "q-1 (qemu): hello-"):
        assert told in said
    assert "every byte is zero" in said


async def _demo(folder: Path, *options: str, timeout_s: float) -> str:
    """Run it without a terminal; gives what it said."""
    node_artefacts(RELEASE)
    command = [
        sys.executable,
        "-m",
        "ironbell.cli.main",
        "demo",
        "--data-dir",
        str(folder),
        "--timeout",
        str(timeout_s),
    ]
    process = await asyncio.create_subprocess_exec(
        *command, *options, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert process.stdout is not None
    said = ""
    try:
        async for line in process.stdout:
            said += line.decode()
            print(line.decode(), end="", flush=True)
        assert await process.wait() == 0, said[-2000:]
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    return said
