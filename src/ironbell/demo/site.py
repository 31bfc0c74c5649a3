"""The demonstration's own `ironbell up --lab`: a child process, started as a user would and ended cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry
from ironbell.lab.state import LabState, NoLabError, read_state

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 8.0
POLL_S = 0.1


class DemoError(IronbellError):
    """The demonstration cannot go on."""

    reason = "DemoFailed"
    retry = Retry.NEVER


@dataclass(frozen=True)
class RunningSite:
    """A site that answers."""

    data_dir: Path
    kubeconfig: Path
    lab: LabState
    log: Path


@asynccontextmanager
async def running_site(
    data_dir: Path, lab_file: Path, *, osie: Path, artefacts: dict[str, Path], options: Sequence[str] = ()
) -> AsyncIterator[RunningSite]:
    """Start a site and end it with the block; `options` are more of `ironbell up`.

    Raises:
        DemoError: it did not start; the message has the end of its log.
    """
    log = data_dir / "up.log"
    command = [sys.executable, "-m", "ironbell.cli.main", "up", "--data-dir", str(data_dir), "--lab", str(lab_file)]
    command += ["--osie-dir", str(osie), *options]
    for name, folder in artefacts.items():
        command += ["--artefacts", f"{name}={folder}"]
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=stderr)
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            kubeconfig = await _ready(process, log)
            lab = await _lab(data_dir, process, log)
        yield RunningSite(data_dir, kubeconfig, lab, log)
    except TimeoutError:
        raise DemoError(f"`ironbell up` was not ready in {START_TIMEOUT_S:g} s; its log: {log}") from None
    finally:
        await _end(process)


async def _ready(process: asyncio.subprocess.Process, log: Path) -> Path:
    assert process.stdout is not None  # noqa: S101
    while line := await process.stdout.readline():
        word, _, path = line.decode().strip().partition(" ")
        if word == "ready":
            return Path(path)
    raise DemoError(f"`ironbell up` ended at once:\n{_end_of(log)}")


async def _lab(data_dir: Path, process: asyncio.subprocess.Process, log: Path) -> LabState:
    while process.returncode is None:
        try:
            return read_state(data_dir)
        except NoLabError:
            await asyncio.sleep(POLL_S)
    raise DemoError(f"`ironbell up` ended:\n{_end_of(log)}")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-8:])
