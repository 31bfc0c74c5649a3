"""A real kubectl for tests: the one that `IRONBELL_KUBECTL` names, the installed one, else one built from source."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.skips import missing_program

_COMMAND_TIMEOUT_S = 60


class NoKubectl(Exception):  # noqa: N818 - the message is the reason of a skip
    """There is no kubectl, and none can be built."""


@cache
def find_kubectl() -> Path:
    """A kubectl that runs.

    Raises:
        NoKubectl: with the reason.
    """
    named = os.environ.get("IRONBELL_KUBECTL") or shutil.which("kubectl")
    if named and _runs(Path(named)):
        return Path(named)
    try:
        return build_program("kubectl")
    except CannotBuild as error:
        raise NoKubectl(f"no kubectl is installed, and none can be built: {error}") from error


def _runs(binary: Path) -> bool:
    try:
        done = subprocess.run([binary, "version", "--client"], capture_output=True, timeout=_COMMAND_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@dataclass(frozen=True, slots=True)
class Result:
    """What a command came to."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a kubeconfig, and a cache of its own."""

    binary: Path
    kubeconfig: Path
    home: Path

    def environment(self, **more: str) -> dict[str, str]:
        """A small environment; nothing of the user's configuration reaches the command."""
        kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
        return (
            kept | {"HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.home)} | more
        )

    async def run(self, *arguments: str, stdin: str = "", environment: dict[str, str] | None = None) -> Result:
        """Run it to its end."""
        process = await self.start(*arguments, environment=environment)
        try:
            async with asyncio.timeout(_COMMAND_TIMEOUT_S):
                out, err = await process.communicate(stdin.encode())
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        assert process.returncode is not None
        return Result(process.returncode, out.decode(), err.decode())

    async def start(self, *arguments: str, environment: dict[str, str] | None = None) -> asyncio.subprocess.Process:
        """Start it, for commands that do not end by themselves."""
        return await asyncio.create_subprocess_exec(
            self.binary,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment(**(environment or {})),
        )

    async def ok(self, *arguments: str, stdin: str = "", environment: dict[str, str] | None = None) -> str:
        """Run it, expect success, and give its standard output."""
        result = await self.run(*arguments, stdin=stdin, environment=environment)
        assert result.code == 0, f"kubectl {' '.join(arguments)}: {result.err}{result.out}"
        return result.out

    async def fails(self, *arguments: str, stdin: str = "") -> str:
        """Run it, expect failure, and give its standard error."""
        result = await self.run(*arguments, stdin=stdin)
        assert result.code != 0, f"kubectl {' '.join(arguments)} should have failed: {result.out}"
        return result.err


@pytest.fixture(scope="session")
def kubectl_binary() -> Path:
    """A kubectl that runs; the test is skipped without one."""
    try:
        return find_kubectl()
    except NoKubectl as error:
        missing_program(error)


async def line(process: asyncio.subprocess.Process) -> str:
    """The next line that a process prints."""
    assert process.stdout is not None
    async with asyncio.timeout(30):
        return (await process.stdout.readline()).decode()


async def end(process: asyncio.subprocess.Process) -> None:
    """End a process that would not end by itself."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.communicate()
