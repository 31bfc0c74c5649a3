"""Controllers written with client-go find what they expect: protocol buffers, informers, events, leader election."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from support.cluster import Cluster

SOURCE = Path(__file__).parents[2] / "go" / "clientgo"
BUILD_TIMEOUT_S, RUN_TIMEOUT_S = 600, 60


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain to build the client with")
async def test_client_go(cluster: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "client"
    build = await asyncio.create_subprocess_exec(
        "go", "build", "-mod=mod", "-o", program, ".", cwd=SOURCE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(BUILD_TIMEOUT_S):
        _, trouble = await build.communicate()
    if build.returncode:
        pytest.skip(f"the client cannot be built: {trouble.decode()[-300:]}")
    run = await asyncio.create_subprocess_exec(
        program, env={"KUBECONFIG": str(cluster.running.kubeconfig)}, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(RUN_TIMEOUT_S):
        steps, _ = await run.communicate()
    assert run.returncode == 0, steps.decode()
    assert steps.splitlines()[-1] == b"openapi version 2"
