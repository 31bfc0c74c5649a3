"""The in-memory OS by itself: small enough, content with little memory, never silent, never a shell."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from ironbell.demo.artefacts import ensure_osie
from ironbell.image.manifest import load
from ironbell.osie.build import MANIFEST_NAME, artefact_names
from support.skips import require_program, require_root
from support.waiting import eventually

pytestmark = [pytest.mark.root, pytest.mark.qemu]

LIMIT_BYTES = 60_000_000
MEMORY_MIB = 600
BOOT_S = 180.0
MAC = "52:54:00:00:00:01"
UPSTREAM = (
    f"facility= syslog_host= grpc_authority=10.0.2.2:9 tinkerbell_tls=false tinkerbell_insecure_tls=false "
    f"worker_id={MAC} modules=loop,squashfs,sd-mod,usb-storage intel_iommu=on iommu=pt initrd=initramfs-x86_64 "
    "console=tty0 console=ttyS0,115200"
)


@pytest.fixture(scope="module")
def osie() -> Path:
    require_root()
    require_program("qemu-system-x86_64", "mmdebstrap")
    return ensure_osie(print)


class Booted:
    """A machine that runs the in-memory OS."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self._console = folder / "console"
        self._monitor = folder / "monitor"

    def until(self, text: str, *, within_s: float = BOOT_S) -> str:
        """The console once it shows a text."""

        def shown() -> str:
            console = self._console.read_text(errors="replace") if self._console.exists() else ""
            if text not in console and self.process.poll() is not None:
                pytest.fail(f"the machine stopped:\n{console[-2000:]}")
            assert text in console, console[-2000:]
            return console

        return eventually(shown, f"{text!r} on the console", within_s=within_s)

    def press_power_button(self) -> None:
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(self._monitor))
            answers = monitor.makefile("rb")
            answers.readline()
            for command in ("qmp_capabilities", "system_powerdown"):
                monitor.sendall(msgspec.json.encode({"execute": command}) + b"\n")
                answers.readline()


@contextmanager
def booted(osie: Path, folder: Path, *, arguments: str) -> Iterator[Booted]:
    kernel, initramfs = (osie / name for name in artefact_names("amd64"))
    command = [
        "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
        "-m", str(MEMORY_MIB), "-nodefaults", "-display", "none", "-serial", f"file:{folder}/console",
        "-qmp", f"unix:{folder}/monitor,server=on,wait=off", "-no-reboot", "-device", "virtio-rng-pci",
        "-netdev", "user,id=n,restrict=on", "-device", f"virtio-net-pci,netdev=n,mac={MAC},romfile=",
        "-kernel", str(kernel), "-initrd", str(initramfs), "-append", f"{UPSTREAM} {arguments}",
    ]  # fmt: skip
    process = subprocess.Popen(command)
    try:
        yield Booted(process, folder)
    finally:
        process.kill()
        process.wait()


def test_kernel_and_initramfs_fit_sixty_megabytes(osie: Path) -> None:
    manifest = load(osie / MANIFEST_NAME)
    assert manifest is not None
    assert sum((osie / name).stat().st_size for name in artefact_names("amd64")) <= LIMIT_BYTES
    assert {artefact.name for artefact in manifest.artefacts} == set(artefact_names("amd64"))


def test_reaches_its_agent_in_600_mb_and_obeys_the_power_button(osie: Path, tmp_path: Path) -> None:
    with booted(osie, tmp_path, arguments=f"hw_addr={MAC}") as machine:
        machine.until("network: 10.0.2.15 on eth0")
        shown = machine.until("agent: starting for")
        assert "/ #" not in shown
        machine.until("cannot be reached")
        machine.press_power_button()
        assert machine.process.wait(timeout=BOOT_S) == 0


def test_takes_a_static_network_and_sets_its_clock(osie: Path, tmp_path: Path) -> None:
    ipam = f"ipam={MAC.replace(':', '-')}::10.0.2.77:255.255.255.0:10.0.2.2:node:10.0.2.3::"
    with booted(osie, tmp_path, arguments=f"{ipam} ironbell.time=1893456000") as machine:
        machine.until("network: 10.0.2.77 on eth0")
        machine.until("clock: set to 2030-01-01 00:00:00 UTC by the boot script")


def test_says_what_is_missing_instead_of_opening_a_shell(osie: Path, tmp_path: Path) -> None:
    with booted(osie, tmp_path, arguments="hw_addr=02:00:00:00:00:99") as machine:
        shown = machine.until("waiting for a network interface with MAC 02:00:00:00:00:99")
        assert f"interfaces present: eth0 {MAC}" in machine.until("interfaces present: eth0")
        assert "/ #" not in shown
