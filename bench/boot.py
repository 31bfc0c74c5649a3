"""From power-on to the agent, and to the installed operating system: stage times, and bytes on the wire.

    sudo python bench/boot.py [--firmware uefi bios] [--memory 1536]

The same site, machine and objects as `ironbell demo`, one run per firmware: a powered-off QEMU machine with real
firmware is powered on through its BMC, boots the in-memory OS over the network and is installed. Times count from the
moment at which the objects are applied. Bytes are what the machine's network card was sent and has sent, counted on
its tap in the lab's network namespace: everything, retransmissions and headers included. Where there is no KVM the
processor is emulated, and the times say little about a real server; the bytes do.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from ironbell.base.clock import SystemClock
from ironbell.demo.artefacts import ensure_image, ensure_osie
from ironbell.demo.run import Demo, apply, follow
from ironbell.demo.screen import Screen
from ironbell.demo.site import RunningSite, running_site
from ironbell.demo.story import Line
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from ironbell.lab.accelerator import has_kvm

MB = 1_000_000
TAP = "tap0"


@dataclass
class Stage:
    """One line of the story, with what had gone over the wire by then."""

    at_s: float
    line: Line
    to_machine: int
    from_machine: int


@dataclass
class Recorder(Screen):
    """Keeps the story instead of drawing it."""

    namespace: str = ""
    stages: list[Stage] = field(default_factory=list)

    def line(self, line: Line) -> None:
        sent, received = traffic(self.namespace)
        self.stages.append(Stage(self.elapsed_s, line, sent, received))
        print(f"  {self.elapsed_s:7.1f} s  {sent / MB:8.1f} MB  {line.label:10} {line.text[:70]}", flush=True)

    def progress(self, text: str) -> None:
        del text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--firmware", nargs="+", choices=["uefi", "bios"], default=["uefi", "bios"])
    parser.add_argument("--memory", type=int, default=1536, help="of the machine, in MiB")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root for the lab's network namespace")
    osie, image = ensure_osie(print), ensure_image(print)
    files = {path.name: path.stat().st_size for path in (osie / "vmlinuz-x86_64", osie / "initramfs-x86_64", image)}
    print(
        f"{'KVM' if has_kvm() else 'software emulation'}; "
        + ", ".join(f"{k} {v / MB:.1f} MB" for k, v in files.items())
    )
    for firmware in arguments.firmware:
        with tempfile.TemporaryDirectory() as folder:
            print(f"\n{firmware.upper()}")
            demo = Demo(firmware, osie, image, Path(folder), memory_mib=arguments.memory)
            report(asyncio.run(measure(demo)), sum(files.values()))


async def measure(demo: Demo) -> list[Stage]:
    artefacts = {"images": demo.image.parent}
    async with (
        running_site(demo.data_dir, demo.write_lab_file(), osie=demo.osie, artefacts=artefacts) as site,
        HttpApi(from_kubeconfig(site.kubeconfig)) as api,
    ):
        screen = Recorder(SystemClock(), namespace=namespace_of(site))
        await apply(Client(api), demo, site, password="benchmark")  # noqa: S106 - a machine that lives for minutes
        await follow(api, demo, screen, site)
        return screen.stages


def namespace_of(site: RunningSite) -> str:
    return Path(site.lab.network_namespace).name


def traffic(namespace: str) -> tuple[int, int]:
    """Bytes to the machine and from it: its tap sends what the machine receives."""
    found = []
    for name in ("tx_bytes", "rx_bytes"):
        command = ["ip", "netns", "exec", namespace, "cat", f"/sys/class/net/{TAP}/statistics/{name}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found.append(int(done.stdout or 0))
    return found[0], found[1]


SUMMARY = (
    ("power on", r"power BMC reports power on"),
    ("first lease", r"DHCP .*leased"),
    ("boot script", r"script "),
    ("kernel asked for", r"kernel "),
    ("initramfs asked for", r"initramfs "),
    ("agent at work", r"agent "),
    ("image written", r"action .*write the image: SUCCESS"),
    ("workflow done", r"workflow (POST|SUCCESS)"),
    ("installed system up", r"installed "),
)


def report(stages: list[Stage], files: int) -> None:
    print(f"\n  {'stage':22} {'at':>8} {'took':>8}   to machine  from machine")
    last = 0.0
    for name, pattern in SUMMARY:
        found = next((s for s in stages if re.match(pattern, f"{s.line.label} {s.line.text}")), None)
        if found is None:
            continue
        print(
            f"  {name:22} {found.at_s:7.1f}s {found.at_s - last:7.1f}s {found.to_machine / MB:9.1f} MB"
            f" {found.from_machine / MB:9.1f} MB"
        )
        last = found.at_s
    print(f"  bytes to the machine are {stages[-1].to_machine / files:.3f} x kernel, initramfs and image together")


if __name__ == "__main__":
    main()
