"""The first program of a machine that is switched on: firmware, then a system in namespaces of its own.

Runs in the machine's network namespace with its console as standard streams. It ends as the system ends: by SIGHUP
where that rebooted, by SIGINT where it powered off (pid_namespaces(7)).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec

from ironbell.lab.namespace import cgroups
from ironbell.lab.namespace.firmware import FirmwareError, network_boot
from ironbell.lab.namespace.plan import INTERFACE, Boot, Stage, initramfs

_NAMESPACES = (
    "--mount",
    "--propagation",
    "private",
    "--uts",
    "--ipc",
    "--pid",
    "--cgroup",
    "--fork",
    "--kill-child=KILL",
)
_PAUSE_S = 5


def main() -> None:
    """Try the boot devices in order. Returns only by becoming the system."""
    boot = msgspec.json.decode(sys.argv[1], type=Boot)
    cgroups.enter(boot.cgroup)
    while True:
        for device in boot.order:
            stage = _network(boot) if device == "pxe" else _disk(boot)
            if stage is not None:
                _start(stage)
        _print(f"no boot device; again in {_PAUSE_S} s")
        time.sleep(_PAUSE_S)


def _disk(boot: Boot) -> Stage | None:
    if not boot.root:
        _print("disk: no operating system")
        return None
    _print(f"disk: starting the system of {boot.root}")
    return Stage(boot=boot, root=boot.root)


def _network(boot: Boot) -> Stage | None:
    try:
        system = network_boot(
            mac=boot.mac,
            uuid=boot.uuid,
            firmware=boot.firmware,
            interface=INTERFACE,
            target=initramfs(boot),
            log=_print,
        )
    except FirmwareError as error:
        _print(f"network: {error}")
        return None
    if system is None:
        return None
    cgroups.confine(boot.cgroup, [Path(disk.device).stat().st_rdev for disk in boot.disks])
    return Stage(boot=boot, arguments=system.arguments)


def _start(stage: Stage) -> None:
    module = [sys.executable, "-m", "ironbell.lab.namespace.stage"]
    os.execvp("unshare", ["unshare", *_NAMESPACES, *module, msgspec.json.encode(stage).decode()])  # noqa: S606


def _print(text: str) -> None:
    print(f"firmware: {text}\r", flush=True)  # noqa: T201 - the machine's console


if __name__ == "__main__":
    main()
