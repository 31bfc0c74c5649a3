"""The programs of docs/guide/python.md, run as they are, with every warning an error."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.site.embeddedcluster import EmbeddedCluster

from .test_python_clients import RUN_TIMEOUT_S, start

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "python.md"
NOT_OURS = "ignore:Kubernetes version:UserWarning"
"""kr8s 0.20 knows Kubernetes up to 1.35, and warns of every API of a later version."""
PROGRAMS = {
    "kr8s": ["created kr8s-1", "seen kr8s-1 in rack r1", "deleted kr8s-1"],
    "kubernetes": ["created official-1", "seen ADDED official-1", "deleted official-1"],
}


def program(library: str) -> str:
    """The block of the page that imports this library."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    [found] = [block for block in blocks if re.search(rf"^(?:import|from) {library}\b", block, re.MULTILINE)]
    return found


@pytest.mark.parametrize("library", PROGRAMS)
async def test_programs_of_the_page_run_without_warnings(
    library: str, client_python: Path, embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(program(library))
    process = await start(
        client_python, "-W", "error", "-W", NOT_OURS, str(path), kubeconfig=embedded_cluster.kubeconfig, folder=tmp_path
    )
    async with asyncio.timeout(RUN_TIMEOUT_S):
        out, _ = await process.communicate()
    printed = out.decode().splitlines()
    assert process.returncode == 0, out.decode()[-1500:]
    assert printed == PROGRAMS[library]


def test_the_package_is_the_command() -> None:
    words = [sys.executable, "-W", "error", "-m", "ironbell", "version"]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith("ironbell ")
