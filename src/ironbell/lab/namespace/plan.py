"""Messages between the processes of a namespace machine: as JSON on the command line, without secrets."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    """One disk: its loop device, its name in the machine, its serial number."""

    device: str
    name: str
    serial: str
    partitions: tuple[str, ...] = ()


class Boot(msgspec.Struct, frozen=True, kw_only=True):
    """A power-on. `root` is the installed system's partition; empty if none is installed."""

    name: str
    cgroup: str
    folder: str
    console: str
    mac: str
    uuid: str
    firmware: str
    order: tuple[str, ...]
    disks: tuple[Disk, ...]
    root: str = ""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """The system to start: the installed system where `root` is set, else the in-memory OS with a command line."""

    boot: Boot
    root: str = ""
    arguments: str = ""


INTERFACE = "eth0"


def initramfs(boot: Boot) -> Path:
    """Path of the initramfs that firmware downloaded."""
    return Path(boot.folder) / "initramfs"
