"""Build iPXE binaries from source, with our script and options, under the names that firmware requests.

The source comes from the distribution by apt (with the host's own package sources), or from a folder that the user
names. Nothing is installed; missing tools are named all at once. Finished binaries are put in place by rename, so a
build that dies leaves the old ones.

The script names itself `Tinkerbell` to DHCP, so that the answer is the boot script and no further binary; it tries
DHCP on every interface several times, then boots the file that DHCP named. It does not use `autoboot`, which waits a
dozen seconds for an IPv6 router first. When all attempts fail it exits with an error, which makes firmware try its
next boot entry.

Source: tinkerbell/tinkerbell: smee/internal/ipxe/binary (behaviour); ipxe.org/buildcfg (option names).
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
from ironbell.contract.servers.boot_files import BOOT_FILES

TOOLS = {"gcc": "gcc", "make": "make", "perl": "perl", "ld": "binutils", "dpkg-source": "dpkg-dev"}
HEADERS = {Path("/usr/include/lzma.h"): "liblzma-dev"}
BUILD_TIMEOUT_S = 1800
USER_CLASS = "Tinkerbell"

SCRIPT = f"""\
#!ipxe
set user-class {USER_CLASS}
echo Ironbell iPXE
prompt --key 0x02 --timeout 2000 Press Ctrl-B for a shell && shell ||
set tries:int32 0
:again
dhcp && goto boot ||
inc tries
iseq ${{tries}} 10 && goto failed ||
echo Ironbell: no address yet, trying again
sleep 2
goto again
:boot
isset ${{filename}} || goto failed
chain --autofree ${{filename}} ||
:failed
echo Ironbell: no network boot, going on to the next boot entry
sleep 2
exit 1
"""

TARGETS = {file.target: file.name for file in BOOT_FILES if file.target}
"""Make target to the name that firmware requests."""

GENERAL_OPTIONS = """\
#define DOWNLOAD_PROTO_HTTPS
#define NSLOOKUP_CMD
#define NTP_CMD
#define VLAN_CMD
#define PARAM_CMD
#define CERT_CMD
#define IMAGE_TRUST_CMD
#define REBOOT_CMD
#define POWEROFF_CMD
#define PING_CMD
"""

CONSOLE_OPTIONS = """\
#define CONSOLE_SYSLOG
"""


class IpxeBuildError(IronbellError):
    """The build is not possible, or failed; the message names the remedy."""

    reason = "IpxeBuildFailed"
    retry = Retry.NEVER


@dataclass(frozen=True)
class BuildRequest:
    """A build of iPXE. `source` is an unpacked iPXE source tree, or None for the distribution's package."""

    output: Path
    source: Path | None = None
    jobs: int = os.cpu_count() or 1
    script: str = SCRIPT


def build(request: BuildRequest, progress: Callable[[str], None]) -> list[Path]:
    """Build all targets and return their paths.

    Raises:
        IpxeBuildError: a tool is missing, the source is not available, or make failed (with the end of its output).
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
    """The source-package counterpart of an apt sources file, in either of its two formats.

    Lines that name no binary packages are dropped.
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
        raise IpxeBuildError(f"--source {source} is not an iPXE source tree: src/Makefile is missing")
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
        raise IpxeBuildError("apt has no source package ipxe; name a source tree with --source")
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
