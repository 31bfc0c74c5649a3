"""Build iPXE: source package, our script and options, make, result under the names that firmware asks for.

The source comes from the distribution by apt (with the host's own package sources), or from a folder that the user
names. Nothing is installed; missing tools are named all at once. Finished binaries are put in place by rename, so a
build that dies leaves the old ones.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry
from ironbell.ipxe.embedded import CONSOLE_OPTIONS, GENERAL_OPTIONS, SCRIPT, TARGETS

TOOLS = {"gcc": "gcc", "make": "make", "perl": "perl", "ld": "binutils", "dpkg-source": "dpkg-dev"}
HEADERS = {Path("/usr/include/lzma.h"): "liblzma-dev"}
BUILD_TIMEOUT_S = 1800


class IpxeBuildError(IronbellError):
    """The build cannot be done, or failed; the message says what to do."""

    reason = "IpxeBuildFailed"
    retry = Retry.NEVER


@dataclass(frozen=True)
class BuildRequest:
    """What to build. `source` is an unpacked iPXE source tree, or None for the distribution's package."""

    output: Path
    source: Path | None = None
    jobs: int = os.cpu_count() or 1
    script: str = SCRIPT


def build(request: BuildRequest, progress: Callable[[str], None]) -> list[Path]:
    """Build all targets and return where they are.

    Raises:
        IpxeBuildError: a tool is missing, the source cannot be had, or make failed (with the end of its output).
    """
    _check_tools()
    request.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ironbell-ipxe-") as scratch:
        folder = Path(scratch)
        tree = _copied(request.source, folder) if request.source else _from_distribution(folder, progress)
        makefiles = tree / "src"
        _configure(makefiles, request.script)
        built = []
        for target, name in TARGETS.items():
            progress(f"building {name}")
            command = ["make", f"-j{request.jobs}", target, f"EMBED={makefiles / 'ironbell.ipxe'}", "NO_WERROR=1"]
            _run(command, makefiles, f"building {name}")
            built.append(_put(makefiles / target, request.output / name))
    return built


def source_stanzas(text: str) -> str:
    """The source-package counterpart of an apt sources file, in whichever of its two formats it is.

    Lines that give no binary packages are dropped.
    """
    if re.search(r"(?m)^Types:", text):
        return re.sub(r"(?m)^Types:.*$", "Types: deb-src", text)
    lines = (re.sub(r"^\s*deb\s", "deb-src ", line) for line in text.splitlines() if re.match(r"\s*deb\s", line))
    return "".join(f"{line}\n" for line in lines)


def _check_tools() -> None:
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    missing += [package for header, package in HEADERS.items() if not header.exists()]
    if missing:
        raise IpxeBuildError(f"building iPXE needs packages that are missing; install {' '.join(missing)}")


def _copied(source: Path, folder: Path) -> Path:
    if not (source / "src" / "Makefile").is_file():
        raise IpxeBuildError(f"--source {source} is no iPXE source tree: it has no src/Makefile")
    return Path(shutil.copytree(source, folder / "ipxe", symlinks=True, ignore=shutil.ignore_patterns(".git")))


def _from_distribution(folder: Path, progress: Callable[[str], None]) -> Path:
    progress("fetching the distribution's source package")
    sources = folder / "sources"
    sources.mkdir()
    for file in (Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")):
        if file.suffix in {".list", ".sources"} and file.is_file():
            (sources / file.name).write_text(source_stanzas(file.read_text()))
    (folder / "lists" / "partial").mkdir(parents=True)
    options = ["-q", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={sources}"]
    options += ["-o", f"Dir::State::lists={folder / 'lists'}", "-o", "APT::Sandbox::User=root"]
    _run(["apt-get", *options, "update"], folder, "reading the list of source packages")
    _run(["apt-get", *options, "source", "--download-only", "ipxe"], folder, "fetching the source package ipxe")
    description = next(folder.glob("ipxe_*.dsc"), None)
    if description is None:
        raise IpxeBuildError("apt found no source package ipxe; give a source tree with --source")
    _run(["dpkg-source", "--no-check", "-x", description.name, "ipxe"], folder, "unpacking the source package")
    return folder / "ipxe"


def _configure(makefiles: Path, script: str) -> None:
    local = makefiles / "config" / "local"
    local.mkdir(parents=True, exist_ok=True)
    (local / "general.h").write_text(GENERAL_OPTIONS)
    (local / "console.h").write_text(CONSOLE_OPTIONS)
    (makefiles / "ironbell.ipxe").write_text(script)


def _put(built: Path, place: Path) -> Path:
    partial = place.with_suffix(place.suffix + ".partial")
    shutil.copyfile(built, partial)
    partial.chmod(0o644)
    return partial.rename(place)


def _run(command: list[str], folder: Path, doing: str) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise IpxeBuildError(f"{doing} took more than {BUILD_TIMEOUT_S} s") from error
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-15:])
        raise IpxeBuildError(f"{doing} failed with status {done.returncode}:\n{end}")
