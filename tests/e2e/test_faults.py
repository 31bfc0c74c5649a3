"""Faults on real firmware, whole boots: servers killed at each stage, disks booted past the network, proxy mode."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ironbell.api.tinkerbell import HARDWARE
from ironbell.demo.run import NODE
from support.network.machine import action, template
from support.network.namespaces import Lan, lan
from support.servers.installation import Artefacts, installation, kill
from support.site.up import BOOT, WORKFLOWS, seen, site
from support.skips import require_program
from support.waiting import eventually

pytestmark = [pytest.mark.root, pytest.mark.qemu, pytest.mark.soak]

WORKFLOW = f"install-{NODE}"
INSTALL_S, BOOT_S = 1200, 600
STAGES = ("BootFileServed", "BootScriptServed", "KernelServed", "InitrdServed")


@pytest.mark.parametrize("firmware", ["uefi", "bios"])
async def test_servers_killed_at_each_stage_of_a_boot(tmp_path: Path, artefacts: Artefacts, firmware: str) -> None:
    async with installation(tmp_path, artefacts, firmware=firmware) as watching:
        await watching.apply(*watching.objects(), *watching.install())
        for stage in STAGES if firmware == "uefi" else STAGES[1:]:
            await watching.until(lambda stage=stage: stage in watching.reasons(), within_s=BOOT_S, what=stage)
            kill(BOOT, tmp_path)
        await watching.until(lambda: watching.state(WORKFLOW) == "RUNNING", within_s=BOOT_S, what="agent")
        kill(WORKFLOWS, tmp_path)
        await watching.until(
            lambda: watching.action_state(WORKFLOW, "boot into it") == "SUCCESS", within_s=INSTALL_S, what="last action"
        )
        kill(WORKFLOWS, tmp_path)
        await watching.until(lambda: "InstalledSystemUp" in watching.reasons(), within_s=INSTALL_S, what="installed")
        assert watching.state(WORKFLOW) == "SUCCESS"


@pytest.mark.parametrize("firmware", ["uefi", "bios"])
async def test_installed_machine_that_tries_the_network_first_boots_its_disk(
    tmp_path: Path, artefacts: Artefacts, firmware: str
) -> None:
    async with installation(tmp_path, artefacts, firmware=firmware) as watching:
        await watching.apply(*watching.objects(), *watching.install())
        await watching.until(lambda: "InstalledSystemUp" in watching.reasons(), within_s=INSTALL_S, what="installed")
        await watching.until(lambda: watching.state(WORKFLOW) == "SUCCESS", within_s=60, what="end of the workflow")
        shown = len(watching.console)
        await watching.apply(into_network(efi=firmware == "uefi"))
        await watching.until(
            lambda: {"NetbootRefused", "BootFromDisk"} & watching.reasons(), within_s=BOOT_S, what="refusal"
        )
        await watching.until(lambda: "login:" in watching.console[shown:], within_s=BOOT_S, what="login prompt")
        assert sum(event.reason == "KernelServed" and event.count > 1 for event in watching.events) == 0


def into_network(*, efi: bool) -> dict[str, Any]:
    return {
        "apiVersion": "bmc.tinkerbell.org/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "network-first", "namespace": "default"},
        "spec": {
            "machineRef": {"name": NODE, "namespace": "default"},
            "tasks": [
                {"oneTimeBootDeviceAction": {"device": ["pxe"], "efiBoot": efi}},
                {"powerAction": "cycle"},
            ],
        },
    }


OURS, THEIRS, MAC = "192.0.2.1", "192.0.2.2", "52:54:00:aa:00:01"


@contextmanager
def dnsmasq(network: Lan) -> Iterator[None]:
    require_program("dnsmasq")
    namespace = network.add("other", f"{THEIRS}/24")
    process = subprocess.Popen(
        ["ip", "netns", "exec", namespace, "dnsmasq", "--keep-in-foreground", "--port=0", "--interface=lan",
         "--conf-file=/dev/null", "--leasefile-ro", "--pid-file=", "--user=root", "--no-ping",
         "--dhcp-range=192.0.2.100,192.0.2.150,255.255.255.0,1h", "--dhcp-option=3"]
    )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def bios_machine(folder: Path) -> Iterator[Path]:
    """A QEMU machine on the bridge that boots from the network alone; its console."""
    for words in (("tuntap", "add", "dev", "tap0", "mode", "tap"), ("link", "set", "tap0", "master", "br0", "up")):
        subprocess.run(["ip", *words], check=True)
    disk, console = folder / "disk", folder / "console"
    with disk.open("wb") as file:
        file.truncate(64 << 20)
    process = subprocess.Popen(
        ["qemu-system-x86_64", "-nodefaults", "-display", "none", "-machine", "q35", "-cpu", "max", "-m", "1536",
         "-smp", "2", "-vga", "std", "-serial", f"file:{console}", "-device", "virtio-rng-pci",
         "-netdev", "tap,id=net0,ifname=tap0,script=no,downscript=no",
         "-device", f"virtio-net-pci,netdev=net0,mac={MAC},bootindex=1",
         "-drive", f"if=none,id=disk0,format=raw,cache=unsafe,file={disk}", "-device", "virtio-blk-pci,drive=disk0"]
    )  # fmt: skip
    try:
        yield console
    finally:
        process.kill()
        process.wait(10)


async def test_bios_machine_boots_by_proxy_beside_dnsmasq(tmp_path: Path, artefacts: Artefacts) -> None:
    """Its address is dnsmasq's, everything else ours, on a bridge that the lab did not make."""
    hardware = {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": {"name": NODE, "namespace": "default"},
        "spec": {"interfaces": [{"dhcp": {"mac": MAC, "arch": "x86_64"}, "netboot": {"allowPXE": True}}]},
    }
    flow = {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "proxy", "namespace": "default"},
        "spec": {"templateRef": "proxy", "hardwareRef": NODE, "hardwareMap": {"device_1": MAC}},
    }
    options = ("--interface", "br0", "--dhcp", "proxy", "--osie-dir", str(artefacts.osie), "--console", "ttyS0,115200")
    with (
        lan(f"{OURS}/24") as network,
        dnsmasq(network),
        site(tmp_path / "site", *options, http=f"{OURS}:7080") as running,
    ):
        async with seen(running) as watching:
            wipe = action("erase the disk", "wipe", timeout=300, DEST_DISK="/dev/vda")
            await watching.apply(hardware, template("proxy", wipe), flow)
            await watching.until(lambda: watching.find(HARDWARE, NODE), within_s=10, what="hardware")
            with bios_machine(tmp_path) as console:
                await watching.until(lambda: watching.state("proxy") == "SUCCESS", within_s=BOOT_S, what="workflow")
                await asyncio.to_thread(
                    eventually, lambda: "192.0.2.1" in console.read_text(errors="replace"), within_s=10
                )
