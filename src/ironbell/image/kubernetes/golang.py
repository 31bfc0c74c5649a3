"""Static programs from Go modules, built once per version and kept in the user's cache.

A program's module is generated here: it requires the module that has the program, at a version, and Go's own rules
add the dependencies. Kubernetes is special: its go.mod replaces the modules that are cut out of its own sources by
folders, and Go ignores replacements of other modules, so they are required at the version that belongs to the release.

Failure modes: `BuildError`: no toolchain, no such version, or the end of the compiler's output.

Source: go.dev/ref/mod (requirements and replacements); kubernetes/kubernetes: go.mod, hack/lib/version.sh.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ironbell.image.debian import BuildError
from ironbell.image.kubernetes.release import Release

KUBERNETES = "k8s.io/kubernetes"
_VERSION_PACKAGE = "k8s.io/component-base/version"
_LEAST_GO = (1, 21)
_BUILD_TIMEOUT_S = 3600
_STAGED = re.compile(r"^\s*(k8s\.io/\S+) v0\.0\.0(?!\S)", re.MULTILINE)
_GO_LINE = re.compile(r"^go (\S+)", re.MULTILINE)
_ERROR_TEXT = 800
_NO_REQUIREMENTS = "module ironbell.dev/node\n"


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a module at a version."""

    name: str
    package: str
    module: str
    version: str
    version_variable: str = ""
    """Variable that the program's own build sets to the version, as the linker names it."""
    sums: tuple[str, ...] = ()
    """Known lines of go.sum for the module; for others, Go queries its checksum database."""


def kubernetes_program(name: str, release: Release) -> Program:
    """One of Kubernetes' own programs."""
    return Program(name, f"{KUBERNETES}/cmd/{name}", KUBERNETES, str(release))


def module_text(program: Program, go_mod: str) -> str:
    """The go.mod to build a program with, from the go.mod of the module that has it. Pure.

    Raises:
        BuildError: the module's go.mod names no Go version.
    """
    needed = _GO_LINE.search(go_mod)
    if needed is None:
        raise BuildError(f"{program.module} {program.version}: its go.mod names no Go version")
    staged = f"v0{program.version.removeprefix('v1')}"
    requirements = {program.module: program.version}
    if program.module == KUBERNETES:
        requirements |= dict.fromkeys(sorted(set(_STAGED.findall(go_mod))), staged)
    lines = "".join(f"\t{module} {version}\n" for module, version in requirements.items())
    return f"{_NO_REQUIREMENTS}\ngo {needed[1]}\n\nrequire (\n{lines})\n"


def go_mod_of(downloaded: str) -> Path:
    """Path of the go.mod in the output of `go mod download -json`, whose other fields differ by origin. Pure."""
    return Path(msgspec.json.decode(downloaded, type=_Download).go_mod)


class _Download(msgspec.Struct, rename="pascal"):
    go_mod: str


def link_flags(program: Program) -> str:
    """Flags that leave out symbols, and set the program's version where upstream's own build does."""
    if program.module != KUBERNETES:
        version = f" -X {program.version_variable}={program.version}" if program.version_variable else ""
        return f"-s -w{version}"
    major, minor, _ = program.version.removeprefix("v").split(".", 2)
    facts = {"gitVersion": program.version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(["-s -w", *(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in facts.items())])


def build(program: Program, cache: Path) -> Path:
    """The program, from the cache or built now.

    Raises:
        BuildError: the program cannot be built.
    """
    folder = cache / f"{program.name}-{program.version}-{platform.machine()}"
    with _locked(folder):
        program_path = folder / program.name
        if not program_path.exists():
            # Go reads sums in a module's folder alone
            (folder / "go.mod").write_text(_NO_REQUIREMENTS)
            (folder / "go.sum").write_text("".join(f"{line}\n" for line in program.sums))
            go_mod = _downloaded(program, folder).read_text()
            (folder / "go.mod").write_text(module_text(program, go_mod))
            _compile(folder, program.package, program_path, flags=link_flags(program))
        return program_path


def build_own(name: str, sources: Path, cache: Path) -> Path:
    """A small program of ours from a folder of sources, built once per content.

    Raises:
        BuildError: the program cannot be built.
    """
    digest = hashlib.sha256()
    for path in sorted(sources.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    folder = cache / f"{name}-{digest.hexdigest()[:12]}-{platform.machine()}"
    with _locked(folder):
        program_path = folder / name
        if not program_path.exists():
            for path in sources.iterdir():
                shutil.copyfile(path, folder / path.name)
            _compile(folder, ".", program_path, flags="-s -w")
        return program_path


class _locked:  # noqa: N801 - used as a context manager only
    """Lock of a folder, which is created: one builder works in it at a time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("w")

    def __enter__(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._lock.close()


def _downloaded(program: Program, folder: Path) -> Path:
    """Path of the go.mod of the program's module."""
    return go_mod_of(
        _go(["mod", "download", "-json", f"{program.module}@{program.version}"], folder, name=program.name)
    )


def _compile(folder: Path, package: str, target: Path, *, flags: str) -> None:
    partial = target.with_suffix(".partial")
    _go(
        ["build", "-trimpath", "-buildvcs=false", f"-ldflags={flags}", "-o", str(partial), package],
        folder,
        name=target.name,
    )
    partial.rename(target)


def _go(arguments: Sequence[str], folder: Path, *, name: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    try:
        done = subprocess.run(
            [_toolchain(), *arguments], cwd=folder, env=environment, text=True, capture_output=True, check=False,
            timeout=_BUILD_TIMEOUT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{name}: go {arguments[0]} took more than {_BUILD_TIMEOUT_S} s") from error
    if done.returncode != 0:
        raise BuildError(f"{name} cannot be built: {(done.stderr or done.stdout).strip()[-_ERROR_TEXT:]}")
    return done.stdout


def _toolchain() -> str:
    """A Go that can fetch the version that a module requires, as every Go can since 1.21.

    Raises:
        BuildError: no such Go is installed.
    """
    go = shutil.which("go")
    version = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout if go else ""
    match = re.search(r"go(\d+)\.(\d+)", version)
    if go is None or match is None or (int(match[1]), int(match[2])) < _LEAST_GO:
        least = ".".join(str(part) for part in _LEAST_GO)
        raise BuildError(
            f"--source gomodules needs Go {least} or later on the PATH: install it, or name another source"
        )
    return go
