"""Static programs from Go modules, built once per version and kept in the user's cache.

A program's module is made here: it requires the module that has the program, at a version, and whatever that needs
comes by Go's own rules. Kubernetes is special: its go.mod replaces the modules that are cut out of its own sources by
folders, which count for nobody else, so they are required at the version that belongs to the release.

Failure modes: `BuildError`: no toolchain, no such version, or the end of what the compiler said.

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
    """The variable that its own build tells the version, as the linker names it."""
    sums: tuple[str, ...] = ()
    """Lines of go.sum that are known of the module; what else there is, Go asks its checksum database for."""


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
    """The go.mod that `go mod download -json` tells of, among much that differs by where a module came from. Pure."""
    return Path(msgspec.json.decode(downloaded, type=_Download).go_mod)


class _Download(msgspec.Struct, rename="pascal"):
    go_mod: str


def link_flags(program: Program) -> str:
    """Without symbols; programs are told their version where upstream's own build does."""
    if program.module != KUBERNETES:
        told = f" -X {program.version_variable}={program.version}" if program.version_variable else ""
        return f"-s -w{told}"
    major, minor, _ = program.version.removeprefix("v").split(".", 2)
    facts = {"gitVersion": program.version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(["-s -w", *(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in facts.items())])


def build(program: Program, cache: Path) -> Path:
    """The program, from the cache or built now.

    Raises:
        BuildError: it cannot be built.
    """
    folder = cache / f"{program.name}-{program.version}-{platform.machine()}"
    with _alone(folder):
        made = folder / program.name
        if not made.exists():
            # Go reads sums in a module's folder alone
            (folder / "go.mod").write_text(_NO_REQUIREMENTS)
            (folder / "go.sum").write_text("".join(f"{line}\n" for line in program.sums))
            go_mod = _downloaded(program, folder).read_text()
            (folder / "go.mod").write_text(module_text(program, go_mod))
            _compile(folder, program.package, made, flags=link_flags(program))
        return made


def build_own(name: str, sources: Path, cache: Path) -> Path:
    """A small program of ours from a folder of sources, once per content.

    Raises:
        BuildError: it cannot be built.
    """
    digest = hashlib.sha256()
    for path in sorted(sources.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    folder = cache / f"{name}-{digest.hexdigest()[:12]}-{platform.machine()}"
    with _alone(folder):
        made = folder / name
        if not made.exists():
            for path in sources.iterdir():
                shutil.copyfile(path, folder / path.name)
            _compile(folder, ".", made, flags="-s -w")
        return made


class _alone:  # noqa: N801 - used as a context manager only
    """One builder at a time in a folder, which is made."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("w")

    def __enter__(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._lock.close()


def _downloaded(program: Program, folder: Path) -> Path:
    """Where the go.mod of the program's module is."""
    said = _go(["mod", "download", "-json", f"{program.module}@{program.version}"], folder, what=program.name)
    return go_mod_of(said)


def _compile(folder: Path, package: str, target: Path, *, flags: str) -> None:
    partial = target.with_suffix(".partial")
    _go(
        ["build", "-trimpath", "-buildvcs=false", f"-ldflags={flags}", "-o", str(partial), package],
        folder,
        what=target.name,
    )
    partial.rename(target)


def _go(arguments: Sequence[str], folder: Path, *, what: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    try:
        done = subprocess.run(
            [_toolchain(), *arguments], cwd=folder, env=environment, text=True, capture_output=True, check=False,
            timeout=_BUILD_TIMEOUT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{what}: go {arguments[0]} took more than {_BUILD_TIMEOUT_S} s") from error
    if done.returncode != 0:
        raise BuildError(f"{what} cannot be built: {(done.stderr or done.stdout).strip()[-_ERROR_TEXT:]}")
    return done.stdout


def _toolchain() -> str:
    """A Go that can fetch the version a module wants by itself, which all can since 1.21.

    Raises:
        BuildError: there is none.
    """
    found = shutil.which("go")
    said = subprocess.run([found, "version"], capture_output=True, text=True, check=False).stdout if found else ""
    match = re.search(r"go(\d+)\.(\d+)", said)
    if found is None or match is None or (int(match[1]), int(match[2])) < _LEAST_GO:
        least = ".".join(str(part) for part in _LEAST_GO)
        raise BuildError(
            f"--source gomodules needs Go {least} or later on the PATH: install it, or name another source"
        )
    return found
