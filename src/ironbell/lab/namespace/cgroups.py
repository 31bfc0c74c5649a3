"""A machine's cgroups: one of its own in every hierarchy of the host, which is the machine's root.

Works on hosts with version 1, with both, and with version 2 alone.

Source: cgroups(7), cgroup_namespaces(7); Linux: Documentation/admin-guide/cgroup-v1, cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_REMOVE_TRIES = 100
_PAUSE_S = 0.05
_PARTITION_MAJOR = "259"
# Set in a new cgroup of version 1: without them, no process may enter.
_INHERITED = ("cpuset.mems", "cpuset.cpus")


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One hierarchy: where the host has it mounted, and how it is mounted elsewhere."""

    path: Path
    fs_type: str
    options: str

    @property
    def name(self) -> str:
        return self.path.name


def hierarchies(mountinfo: str) -> list[Hierarchy]:
    """The host's hierarchies, from `/proc/self/mountinfo`; version 2 is ignored if version 1 is mounted too."""
    known: dict[Path, Hierarchy] = {}
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(" - ")
        words, rest = head.split(), tail.split()
        if len(words) < 5 or len(rest) < 3 or rest[0] not in {"cgroup", "cgroup2"}:
            continue
        path = Path(words[4])
        options = ",".join(word for word in rest[2].split(",") if word not in {"rw", "ro", "relatime"})
        options = f"none,{options}" if options.startswith("name=") else options
        known.setdefault(path, Hierarchy(path, rest[0], options if rest[0] == "cgroup" else ""))
    first = [hierarchy for hierarchy in known.values() if hierarchy.fs_type == "cgroup"]
    return sorted(first or known.values(), key=lambda hierarchy: str(hierarchy.path))


def host_hierarchies() -> list[Hierarchy]:
    """The hierarchies of this host."""
    return hierarchies(Path("/proc/self/mountinfo").read_text())


def create(name: str, *, memory_mib: int) -> None:
    """Create a machine's cgroups, with a memory limit. Those of a dead lab are removed first, with their limits."""
    remove(name)
    for hierarchy in host_hierarchies():
        folder = hierarchy.path / name
        folder.mkdir(exist_ok=True)
        for setting in _INHERITED:
            if (folder / setting).exists() and hierarchy.fs_type == "cgroup":
                (folder / setting).write_text((hierarchy.path / setting).read_text())
        if (folder / "cgroup.clone_children").exists() and hierarchy.name == "cpuset":
            (folder / "cgroup.clone_children").write_text("1")
        for limit in ("memory.limit_in_bytes", "memory.max"):
            if (folder / limit).exists():
                (folder / limit).write_text(str(memory_mib << 20))


def confine(name: str, devices: Iterable[int]) -> None:
    """Restrict the machine to these block devices and to partitions; only version 1 can."""
    for hierarchy in host_hierarchies():
        folder = hierarchy.path / name
        if (folder / "devices.deny").exists():
            (folder / "devices.deny").write_text("a")
            for rule in (
                "c *:*",
                f"b {_PARTITION_MAJOR}:*",
                *(f"b {os.major(device)}:{os.minor(device)}" for device in devices),
            ):
                (folder / "devices.allow").write_text(f"{rule} rwm")


def enter(name: str) -> None:
    """Move this process into the cgroups."""
    for hierarchy in host_hierarchies():
        (hierarchy.path / name / "cgroup.procs").write_text(str(os.getpid()))


def names(prefix: str) -> set[str]:
    """The host's cgroups whose names begin with `prefix`."""
    return {folder.name for hierarchy in host_hierarchies() for folder in hierarchy.path.glob(f"{prefix}*/")}


def remove(name: str) -> None:
    """Remove a machine's cgroups with every process in them."""
    for hierarchy in host_hierarchies():
        folder = hierarchy.path / name
        for _ in range(_REMOVE_TRIES):
            if not folder.exists() or _removed(folder):
                break
            time.sleep(_PAUSE_S)


def _removed(folder: Path) -> bool:
    """Try to remove them once, from the innermost outwards; return whether none is left."""
    for path in sorted((Path(place) for place, _, _ in os.walk(folder)), key=lambda path: -len(path.parts)):
        with contextlib.suppress(OSError):
            for pid in (path / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            path.rmdir()
    return not folder.exists()
