"""The demonstration's `ironbell up --lab`: a child process, started as a user would and stopped cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ironbell.base.errors import IronbellError, Retry
from ironbell.lab.files import LabState, NoLabError, read_state

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 45.0
"""Longer than `ironbell up` waits for its lab."""
POLL_S = 0.1
_ERROR_PREFIX = "ironbell: "


class DemoError(IronbellError):
    """The demonstration cannot continue."""

    reason = "DemoFailed"
    retry = Retry.NEVER


@dataclass(frozen=True)
class RunningSite:
    """A site whose API answers."""

    data_dir: Path
    kubeconfig: Path
    lab: LabState
    log: Path
    process: asyncio.subprocess.Process | None = None
    """The process of `ironbell up`, if this object started one."""

    @property
    def has_exited(self) -> bool:
        return self.process is not None and self.process.returncode is not None

    def check(self) -> None:
        """Check that the site still runs.

        Raises:
            DemoError: it has exited; the message has the end of its log.
        """
        if self.has_exited:
            raise DemoError(f"`ironbell up` exited: {_end_of(self.log)}")


@asynccontextmanager
async def running_site(
    data_dir: Path,
    lab_file: Path,
    *,
    osie: Path,
    artefacts: Mapping[str, Path] = MappingProxyType({}),
    node_images: Path | None = None,
    options: Sequence[str] = (),
) -> AsyncIterator[RunningSite]:
    """Start a site and stop it with the block; `options` are further options of `ironbell up`.

    Raises:
        DemoError: it did not start; the message has the end of its log.
    """
    log = data_dir / "up.log"
    # setpriv ends it with this process, however that ends; a new session keeps the terminal's Ctrl-C from it
    command = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "ironbell.cli.main", "up"]
    command += ["--data-dir", str(data_dir), "--lab", str(lab_file), "--osie-dir", str(osie), *options]
    if node_images is not None:
        command += ["--node-images", str(node_images)]
    for name, folder in artefacts.items():
        command += ["--artefacts", f"{name}={folder}"]
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=stderr,
            start_new_session=True,
        )  # fmt: skip
    try:
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                kubeconfig = await _ready(process, log)
                lab = await _lab(data_dir, process, log)
        except TimeoutError:
            raise DemoError(f"`ironbell up` was not ready in {START_TIMEOUT_S:g} s:\n{_end_of(log)}") from None
        yield RunningSite(data_dir, kubeconfig, lab, log, process)
    finally:
        await _end(process)


async def _ready(process: asyncio.subprocess.Process, log: Path) -> Path:
    assert process.stdout is not None  # noqa: S101
    while line := await process.stdout.readline():
        word, _, path = line.decode().strip().partition(" ")
        if word == "ready":
            return Path(path)
    raise DemoError(f"`ironbell up` exited immediately: {_end_of(log)}")


async def _lab(data_dir: Path, process: asyncio.subprocess.Process, log: Path) -> LabState:
    while process.returncode is None:
        try:
            return read_state(data_dir)
        except NoLabError:
            await asyncio.sleep(POLL_S)
    raise DemoError(f"`ironbell up` exited: {_end_of(log)}")


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
    """The error that the log reports, or else its last lines."""
    lines = log.read_text(errors="replace").splitlines()[-8:]
    errors = [line.removeprefix(_ERROR_PREFIX) for line in lines if line.startswith(_ERROR_PREFIX)]
    return errors[-1] if errors else "\n".join(lines)
