"""The lab as a process: its namespace, its BMCs over real TLS, and QEMU processes that live and die with it."""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.lab.files import LabState, MachineState, read_state
from support.skips import needs_program, needs_root
from support.waiting import eventually

pytestmark = [
    pytest.mark.root,
    pytest.mark.qemu,
    needs_root,
    needs_program("qemu-system-x86_64"),
]

FILE = """\
name: probe
network: {subnet: 192.0.2.0/26}
machines:
- {name: node-1, firmware: bios, memory: 256, cpus: 1, disks: [{size: 64MiB}]}
"""
WAIT_S = 120.0
SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"


class RunningLab:
    """One lab process and a client of its BMC."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self.folder = folder

    @property
    def state(self) -> LabState:
        return read_state(self.folder)

    @property
    def machine(self) -> MachineState:
        return self.state.machine("node-1")

    def reports(self, event: str) -> dict[str, Any]:
        """The next report of a kind."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            report: dict[str, Any] = msgspec.json.decode(line)
            if report["event"] == event:
                return report
        pytest.fail(f"the lab ended before it reported {event}")

    def ask(self, path: str, body: Any = None, *, method: str = "", password: str = "") -> Any:
        machine = self.machine
        password = password or Path(machine.password_file).read_text()
        request = urllib.request.Request(machine.bmc_url + path, method=method or ("GET" if body is None else "POST"))
        request.add_header("Authorization", "Basic " + b64encode(f"{machine.bmc_user}:{password}".encode()).decode())
        data = None if body is None else msgspec.json.encode(body)
        context = ssl.create_default_context(cafile=self.state.authority)
        with urllib.request.urlopen(request, data, timeout=WAIT_S, context=context) as answer:
            content = answer.read()
        return msgspec.json.decode(content) if content else None

    def power(self) -> str:
        return str(self.ask(SYSTEM)["PowerState"])

    def qemus(self) -> list[int]:
        """QEMU processes whose files lie in this lab's folder."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    words = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if words.startswith(b"qemu-system") and str(self.folder).encode() in words:
                    found.append(int(entry.name))
        return found


@contextmanager
def running(folder: Path) -> Iterator[RunningLab]:
    file = folder / "lab.yaml"
    file.write_text(FILE)
    command = [sys.executable, "-m", "ironbell.lab.process", "--file", str(file), "--data-dir", str(folder / "lab")]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
    assert process.stdin is not None
    process.stdin.write(b"{}\n")
    process.stdin.flush()
    lab = RunningLab(process, folder / "lab")
    try:
        yield lab
    finally:
        process.terminate()
        process.wait(timeout=WAIT_S)
        process.stdin.close()
        if process.stdout is not None:
            process.stdout.close()


def test_a_bmc_starts_restarts_and_stops_its_machine(tmp_path: Path) -> None:
    with running(tmp_path) as lab:
        ready = lab.reports("ready")
        assert Path(ready["network_namespace"]).exists()
        assert lab.power() == "Off"
        assert lab.qemus() == []
        lab.ask(RESET, {"ResetType": "On"})
        assert lab.reports("machine")["power"] == "On"
        assert lab.power() == "On"
        (first,) = lab.qemus()
        lab.ask(RESET, {"ResetType": "ForceRestart"})
        (second,) = lab.qemus()
        assert second != first
        lab.ask(RESET, {"ResetType": "ForceOff"})
        assert lab.power() == "Off"
        assert lab.qemus() == []
    assert not Path(ready["network_namespace"]).exists()


def test_a_one_time_boot_device_is_used_up_by_the_next_start(tmp_path: Path) -> None:
    with running(tmp_path) as lab:
        lab.reports("ready")
        override = {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}
        lab.ask(SYSTEM, {"Boot": override}, method="PATCH")
        assert lab.ask(SYSTEM)["Boot"]["BootSourceOverrideEnabled"] == "Once"
        lab.ask(RESET, {"ResetType": "On"})
        assert lab.ask(SYSTEM)["Boot"]["BootSourceOverrideEnabled"] == "Disabled"
        (pid,) = lab.qemus()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        assert any(word.startswith(b"virtio-net") and word.endswith(b"bootindex=1") for word in words)


def test_an_empty_disk_falls_through_to_the_network_and_the_console_shows_it(tmp_path: Path) -> None:
    with running(tmp_path) as lab:
        namespace = Path(lab.reports("ready")["network_namespace"]).name
        lab.ask(RESET, {"ResetType": "On"})
        console = Path(lab.machine.console)
        eventually(
            lambda: b"Configuring (net0" in console.read_bytes(), what="iPXE asking for an address", within_s=WAIT_S
        )
        routes = subprocess.run(["ip", "-n", namespace, "route"], capture_output=True, text=True, check=True).stdout
        assert "192.0.2.0/26 dev br0" in routes
        assert "default" not in routes


def test_a_wrong_password_and_a_wrong_authority_are_refused(tmp_path: Path) -> None:
    with running(tmp_path) as lab:
        lab.reports("ready")
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            lab.ask(SYSTEM, password="wrong")
        refused.value.close()
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(lab.machine.bmc_url + "/redfish/v1/", timeout=WAIT_S)
        mode = Path(lab.machine.password_file).stat().st_mode & 0o777
        assert mode == 0o600


def test_a_killed_lab_leaves_no_machine_and_the_next_cleans_up(tmp_path: Path) -> None:
    with running(tmp_path) as lab:
        ready = lab.reports("ready")
        lab.ask(RESET, {"ResetType": "On"})
        port = lab.machine.bmc_port
        assert lab.qemus()
        lab.process.send_signal(signal.SIGKILL)
        lab.process.wait(timeout=WAIT_S)
        eventually(lambda: not lab.qemus(), what="end of the machine", within_s=WAIT_S)
    with running(tmp_path) as lab:
        again = lab.reports("ready")
        assert again["network_namespace"] == ready["network_namespace"]
        assert lab.power() == "Off"
        assert lab.machine.bmc_port == port


def test_what_a_killed_lab_left_goes_with_the_next_lab_of_any_folder(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with running(tmp_path / "first") as lab:
        left = Path(lab.reports("ready")["network_namespace"])
        lab.process.send_signal(signal.SIGKILL)
        lab.process.wait(timeout=WAIT_S)
    assert left.exists()
    with running(tmp_path / "second") as lab:
        assert Path(lab.reports("ready")["network_namespace"]).exists()
        assert not left.exists()
