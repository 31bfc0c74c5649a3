"""Debian file trees without a container engine: the host's own package sources and mmdebstrap.

Used by the in-memory OS builder and the disk image builder. Packages come from the sources of the host's apt, so that
a mirror, a snapshot or a proxy configured there is used here too, and no address is repeated.

Failure modes: no root, no mmdebstrap, no Debian sources for this release, or apt itself failing; each is a
`BuildError` that names the remedy.

Sources: mmdebstrap(1), sources.list(5), apt-config(8), unshare(1), setpriv(1), prctl(2) (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry

# Settings of the host's apt that decide whether and how its sources can be reached.
_ACQUIRE = re.compile(r"^Acquire::(Check-Valid-Until|Check-Date|Retries|ForceIPv[46]|https?::[A-Za-z:-]+) \"(.*)\";$")
_OUTPUT_TAIL_LINES = 15
_ISOLATION = (
    "setpriv", "--pdeathsig", "KILL",
    "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc", "--kill-child",
)  # fmt: skip


class BuildError(IronbellError):
    """An operating system could not be built here."""

    reason = "BuildFailed"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Package:
    """One Debian package as it went into a tree."""

    name: str
    version: str
    architecture: str


@dataclass(frozen=True, slots=True)
class Sources:
    """Source of Debian packages: a release's code name, and deb822 or one-line entries as apt reads them."""

    suite: str
    text: str
    apt_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """Input of mmdebstrap. `variant` is mmdebstrap's; `extract` runs no package's scripts."""

    target: Path
    architecture: str
    packages: tuple[str, ...]
    variant: str
    extra_packages: tuple[str, ...] = ()
    options: tuple[str, ...] = field(default=())


def require_tools(tools: Iterable[str], *, packages: str) -> None:
    """Check that programs are installed before an hour is spent.

    Raises:
        BuildError: a program is missing; the message names the Debian packages that have it.
    """
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise BuildError(f"missing programs: {', '.join(missing)}; install them with: apt-get install {packages}")


def require_root() -> None:
    """Check that this process is root: packages are unpacked with their owners and device nodes.

    Raises:
        BuildError: this process is not root.
    """
    if os.geteuid() != 0:
        raise BuildError("building an operating system needs root: run it again as root or with sudo")


def run(command: Sequence[str], *, stdin: str = "", cwd: Path | None = None, is_isolated: bool = False) -> str:
    """Run a program until it ends and return its standard output; `is_isolated` for one that mounts, see `_isolation`.

    Raises:
        BuildError: the program failed; the message has the last lines that it printed.
    """
    started = [*(_isolation() if is_isolated else ()), *command]
    status, printed, problems = _ran(started, stdin=stdin, cwd=cwd)
    if status != 0:
        tail = "\n".join((problems or printed).strip().splitlines()[-_OUTPUT_TAIL_LINES:])
        raise BuildError(f"{Path(command[0]).name} failed with status {status}:\n{tail}")
    return printed


def _ran(command: Sequence[str], *, stdin: str, cwd: Path | None) -> tuple[int, str, str]:
    """Run a program; return its status and output.

    An interruption kills it with all that it started, and is raised after the last of them has ended, so that a caller
    which removes the files never meets a process that still writes.
    """
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    with subprocess.Popen(
        command, cwd=cwd, env=environment, text=True, process_group=0,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            printed, problems = process.communicate(stdin)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()  # until the last of them has closed the pipes
            raise
        return process.returncode, printed, problems


def _isolation() -> tuple[str, ...]:
    """The command that starts a program in mount and process namespaces of its own.

    mmdebstrap mounts the host's /sys into the tree. Here the mounts end with it, so that removing the tree never
    reaches the host's files, such as the firmware's variables. Its processes end with the first of them, and that ends
    with us, however we end. Empty where namespaces are not available: then nothing can be mounted either.
    """
    probe = subprocess.run([*_ISOLATION, "true"], capture_output=True, check=False)
    return _ISOLATION if probe.returncode == 0 else ()


def host_sources(root: Path = Path("/")) -> Sources:
    """The host's own package sources, without those that are not the distribution's.

    Raises:
        BuildError: the host is not a Debian, or has no source for its own release.
    """
    release = _os_release(root / "etc/os-release")
    suite = release.get("VERSION_CODENAME", "")
    if release.get("ID") != "debian" or not suite:
        raise BuildError(
            f"this host is {release.get('PRETTY_NAME', 'unknown')}: the builders need the packages of a Debian host; "
            "give --suite and --sources FILE (apt entries of a Debian release) to build from elsewhere"
        )
    entries = [entry for text in _source_files(root) for entry in select_entries(text, suite)]
    if not entries:
        raise BuildError(f"no apt source for {suite} below /etc/apt: add the distribution's own")
    return Sources(suite=suite, text="\n".join(entries), apt_options=_acquire_options())


def file_sources(path: Path, suite: str) -> Sources:
    """Package sources from a file of the user.

    Raises:
        BuildError: the file cannot be read.
    """
    try:
        return Sources(suite=suite, text=path.read_text(), apt_options=_acquire_options())
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise BuildError(f"--sources: {path} cannot be read: {problem}; give a file of apt sources") from error
    except UnicodeDecodeError as error:
        raise BuildError(f"--sources: {path} is a binary file; give a file of apt sources") from error


def chosen_sources(path: Path | None, suite: str) -> Sources:
    """Package sources as chosen on the command line; the host's own where nothing was chosen.

    Raises:
        BuildError: only one of file and release is set, or the sources are not available.
    """
    if (path is None) != (suite == ""):
        raise BuildError("--suite and --sources belong together: give both, or neither for the host's own")
    return file_sources(path, suite) if path is not None else host_sources()


def select_entries(text: str, suite: str) -> list[str]:
    """The entries of one apt source file that belong to a release of Debian.

    One-line entries and deb822 stanzas both come out as one-line entries, because mmdebstrap takes one file and the two
    forms do not mix. Entries of other vendors name other suites and are dropped.
    """
    if re.search(r"(?im)^types\s*:", text):
        return [line for stanza in re.split(r"\n\s*\n", text) for line in _one_lines(_fields(stanza), suite)]
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if _is_for_suite(line, suite)]


def bootstrap(tree: Tree, sources: Sources) -> list[Package]:
    """Create a file tree from Debian packages and return the packages in it.

    Raises:
        BuildError: mmdebstrap failed.
    """
    with tempfile.TemporaryDirectory(prefix="ironbell-bootstrap-") as scratch:
        names = Path(scratch) / "packages"
        command = [
            "mmdebstrap", "--quiet", f"--variant={tree.variant}", "--mode=root",
            f"--architectures={tree.architecture}", f"--include={','.join((*tree.packages, *tree.extra_packages))}",
            *(f"--aptopt={option}" for option in sources.apt_options),
            f'--extract-hook=ls "$1"/var/cache/apt/archives >> {names}',
            *tree.options,
        ]  # fmt: skip
        for extra in tree.extra_packages:
            listing = Path(scratch) / f"files-{extra}"
            command.append(f'--extract-hook=dpkg-deb -c "$1"/var/cache/apt/archives/{extra}_*.deb > {listing}')
        run([*command, sources.suite, str(tree.target), "-"], stdin=sources.text + "\n", is_isolated=True)
        listings = [(Path(scratch) / f"files-{extra}").read_text() for extra in tree.extra_packages]
        if listings:
            (tree.target / "ironbell-extra-files").write_text("\n".join(listings))
        return _packages(tree, names)


def _packages(tree: Tree, archive_names: Path) -> list[Package]:
    if tree.variant == "extract":
        return parse_archive_names(archive_names.read_text())
    form = "${Package} ${Version} ${Architecture}\\n"
    listing = run(["dpkg-query", f"--admindir={tree.target}/var/lib/dpkg", "-W", "-f", form])
    return sorted((Package(*line.split(" ")) for line in listing.splitlines()), key=lambda package: package.name)


def parse_archive_names(listing: str) -> list[Package]:
    """Packages by the names of their archives, `name_version_architecture.deb` with `:` written as `%3a`."""
    packages = set()
    for line in listing.splitlines():
        parts = line.strip().removesuffix(".deb").split("_")
        if len(parts) == 3:
            packages.add((parts[0], parts[1].replace("%3a", ":"), parts[2]))
    return [Package(*parts) for parts in sorted(packages)]


def _os_release(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split("=", 1) for line in lines if "=" in line)
    return {key: value.strip().strip('"') for key, value in pairs}


def _source_files(root: Path) -> list[str]:
    folder = root / "etc/apt"
    paths = [folder / "sources.list"]
    if (folder / "sources.list.d").is_dir():
        paths += sorted(p for p in (folder / "sources.list.d").iterdir() if p.suffix in {".list", ".sources"})
    return [path.read_text() for path in paths if path.is_file()]


def _acquire_options() -> tuple[str, ...]:
    """The host's settings for reaching its sources, in the form that mmdebstrap's --aptopt takes."""
    if shutil.which("apt-config") is None:
        return ()
    matches = (_ACQUIRE.match(line) for line in run(["apt-config", "dump"]).splitlines())
    return tuple(f'Acquire::{match[1]} "{match[2]}"' for match in matches if match and match[2])


def _fields(stanza: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0] in " \t" and name:
            fields[name] += " " + line.strip()
        elif ":" in line:
            name, value = line.split(":", 1)
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def _one_lines(fields: dict[str, str], suite: str) -> list[str]:
    if fields.get("enabled", "yes").lower() in {"no", "false"} or "deb" not in fields.get("types", "").split():
        return []
    options = []
    signed_by = fields.get("signed-by", "")
    if signed_by.startswith("/"):
        options.append(f"signed-by={signed_by}")
    prefix = f"deb [{' '.join(options)}]" if options else "deb"
    lines = (
        f"{prefix} {uri} {name} {fields.get('components', '')}".rstrip()
        for uri in fields.get("uris", "").split()
        for name in fields.get("suites", "").split()
    )
    return [line for line in lines if _is_for_suite(line, suite)]


def _is_for_suite(line: str, suite: str) -> bool:
    match = re.match(r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", line)
    return match is not None and re.split(r"[-/]", match[2])[0] == suite
