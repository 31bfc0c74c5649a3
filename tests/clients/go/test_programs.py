"""Controllers in Go find what they expect: small programs of ours, with the libraries that real ones are made of."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.skips import missing_program

RUN_TIMEOUT_S = 180


async def steps_of(name: str, kubeconfig: Path) -> list[str]:
    """What a program printed, one line for each step that held."""
    try:
        program = await asyncio.to_thread(build_program, name)
    except CannotBuild as error:
        missing_program(f"{name}: {error}")
    process = await asyncio.create_subprocess_exec(
        program, env={"KUBECONFIG": str(kubeconfig)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(RUN_TIMEOUT_S):
        out, err = await process.communicate()
    assert process.returncode == 0, f"{out.decode()[-500:]}\n{err.decode()[-2000:]}"
    return out.decode().splitlines()


async def test_client_go(kubeconfig: Path) -> None:
    steps = await steps_of("clientgo", kubeconfig)
    for step in (
        "deployment is whole", "apply conflicts", "owned objects go first", "no write is lost",
        "both ways tell the same", "documents of all groups are read and written again",
        "dynamic informer sees the objects go", "metadata informer has annotations",
        "informer tells of each change once", "bookmark of json", "bookmark of protocol buffers",
        "events are counted together", "events are seen by both APIs", "second leads as soon as the first stops",
        "schema is whole", "definition seen", "definition established", "one definition",
    ):  # fmt: skip
        assert step in steps
    assert steps[-1] == "namespace deleted"


async def test_controller_runtime(kubeconfig: Path) -> None:
    steps = await steps_of("controllerruntime", kubeconfig)
    for step in (
        "elected", "webhook sets the default", "finalizer", "what is owned is put right", "a change is reconciled",
        "the cache has what its selector takes", "webhook refuses", "webhook compares with the old object",
        "webhook converts", "lists are converted", "finalized and gone", "what it owned is collected",
        "lease is given up",
    ):  # fmt: skip
        assert step in steps
    assert steps[-1] == "namespace deleted"
