"""A machine made of a network namespace, a loop device as its disk, and the real agent. It has no kernel of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from support.network import firmware
from support.network.namespaces import Lan, within
from support.skips import missing_permission, require_program
from support.waiting import eventually

NETMASK = "255.255.255.0"
MIB = 1 << 20


class NetMachine:
    """One machine on a site's network."""

    def __init__(self, lan: Lan, folder: Path, *, name: str, number: int, disk_mib: int = 0, bridge: str = "br0"):
        self.name = name
        self.mac = f"02:00:00:00:01:{number:02x}"
        self.address = f"192.0.2.{number}"
        self.namespace = lan.add(f"m{number}", mac=self.mac, bridge=bridge)
        self.console = folder / f"{name}.console"
        self.disk = ""
        self.boots = 0
        self._folder = folder
        self._agent: subprocess.Popen[bytes] | None = None
        if disk_mib:
            self.add_disk(disk_mib)

    def add_disk(self, size_mib: int) -> str:
        """Its disk, a loop device."""
        path = self._folder / f"{self.name}.disk"
        with path.open("wb") as file:
            file.truncate(size_mib * MIB)
        done = subprocess.run(
            ["losetup", "--find", "--show", "--partscan", str(path)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            missing_permission(f"loop devices: {done.stderr.strip()}")
        self.disk = done.stdout.strip()
        return self.disk

    def hardware(self, *, allow: bool = False, annotations: dict[str, str] | None = None) -> dict[str, Any]:
        """Its Hardware."""
        dhcp = {
            "mac": self.mac,
            "hostname": self.name,
            "arch": "x86_64",
            "lease_time": 3600,
            "ip": {"address": self.address, "netmask": NETMASK, "gateway": "192.0.2.1"},
        }
        return {
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Hardware",
            "metadata": {"name": self.name, "namespace": "default", "annotations": annotations or {}},
            "spec": {
                "disks": [{"device": self.disk or "/dev/none"}],
                "interfaces": [{"dhcp": dhcp, "netboot": {"allowPXE": allow}}],
            },
        }

    def netboot(self, at: firmware.Hook = lambda _stage: None) -> firmware.Boot:
        """Power on: the firmware's part. Blocks; call it in a thread."""
        return within(self.namespace, lambda: firmware.boot(self.mac, at=at))

    def give_address(self) -> None:
        """As if it had booted."""
        command = ["ip", "-n", self.namespace, "address", "replace", f"{self.address}/24", "dev", "lan"]
        subprocess.run(command, check=True)

    def start_agent(self, server: str = "192.0.2.1:42113") -> None:
        """Power on: what the in-memory OS does."""
        self.boots += 1
        command = [
            "ip", "netns", "exec", self.namespace, sys.executable, "-m", "ironbell.agent",
            "-id", self.mac, "-grpc-server", server, "-backoff-max-interval", "500ms",
        ]  # fmt: skip
        environment = {**os.environ, "IRONBELL_BOOT_ID": f"{self.name}-{self.boots}"}
        with self.console.open("ab") as console:
            self._agent = subprocess.Popen(
                command, stdout=console, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )

    def stop_agent(self) -> None:
        """Power off."""
        if self._agent is None:
            return
        actions = self.action_pids()
        self._agent.kill()
        self._agent.wait(10)
        self._agent = None
        for pid in actions:
            os.kill(pid, signal.SIGKILL)

    def action_pids(self) -> list[int]:
        """Processes of the action that runs."""
        if self._agent is None:
            return []
        words = Path(f"/proc/{self._agent.pid}/task/{self._agent.pid}/children").read_text().split()
        return [int(pid) for pid in words]

    def writing_action(self, within_s: float = 20) -> int:
        """The process that has the disk open for writing, once there is one."""

        def look() -> int | None:
            for pid in self.action_pids():
                try:
                    for entry in Path(f"/proc/{pid}/fd").iterdir():
                        if str(entry.readlink()) == self.disk and _may_write(pid, entry.name):
                            return pid
                except OSError:
                    continue
            return None

        return eventually(look, within_s=within_s, what=f"{self.name} writes its disk")

    def install_busybox(self) -> None:
        """Put a file system with a shell on its disk, for actions that run a command."""
        busybox = require_program("busybox")
        tree = self._folder / f"{self.name}.tree"
        for folder in ("bin", "dev", "proc", "sys", "tmp", "etc"):
            (tree / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy2(busybox, tree / "bin/busybox")
        needed = subprocess.run(["ldd", busybox], capture_output=True, text=True, check=False).stdout.split()
        for library in (Path(word) for word in needed if word.startswith("/")):
            target = tree / library.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, target)
        for applet in ("sh", "sleep", "date", "echo", "seq"):
            (tree / "bin" / applet).symlink_to("busybox")
        subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-d", str(tree), self.disk], check=True)

    def shell(self, name: str, script: str, *, timeout: int = 60) -> dict[str, Any]:
        """An action that runs a script in the system that `install_busybox` made."""
        variables = {"BLOCK_DEVICE": self.disk, "FS_TYPE": "ext4", "CHROOT": "y", "DEFAULT_INTERPRETER": "/bin/sh -c"}
        return action(name, "cexec", timeout=timeout, **variables, CMD_LINE=script)

    def wait_said(self, text: str, within_s: float = 20) -> None:
        """Wait for words on its console."""
        eventually(lambda: text in self.said(), within_s=within_s, what=f"{text!r} on the console of {self.name}")

    def said(self) -> str:
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def close(self) -> None:
        self.stop_agent()
        if self.disk:
            subprocess.run(["losetup", "--detach", self.disk], check=False)


def _may_write(pid: int, descriptor: str) -> bool:
    flags = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text().split("flags:")[1].split()[0]
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


@contextmanager
def net_machine(lan: Lan, folder: Path, *, name: str, number: int, disk_mib: int = 0) -> Iterator[NetMachine]:
    """A machine that is switched off and removed afterwards."""
    made = NetMachine(lan, folder, name=name, number=number, disk_mib=disk_mib)
    try:
        yield made
    finally:
        made.close()


def template(name: str, *actions: dict[str, Any], timeout: int = 600) -> dict[str, Any]:
    """A Template with one task; the device map's `device_1` is the machine."""
    document = {
        "version": "0.1",
        "name": name,
        "global_timeout": timeout,
        "tasks": [{"name": "install", "worker": "{{.device_1}}", "actions": [*actions]}],
    }
    # JSON is YAML
    return template_of(name, msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def template_of(name: str, text: str) -> dict[str, Any]:
    """A Template with this text."""
    return {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Template",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"data": text},
    }


def workflow(name: str, machine: NetMachine, **values: str) -> dict[str, Any]:
    """A Workflow of the Template of the same name; netboot is allowed while it runs."""
    return {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "templateRef": name,
            "hardwareRef": machine.name,
            "hardwareMap": {"device_1": machine.mac, **values},
            "bootOptions": {"toggleAllowNetboot": True},
        },
    }


def action(name: str, image: str, *, timeout: int = 60, **environment: str) -> dict[str, Any]:
    """One action of a template."""
    return {"name": name, "image": image, "timeout": timeout, "environment": environment}
