"""Files of a lab, below its folder: their paths, and the state of the running lab that other commands read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.lab.named import machine_named


@dataclass(frozen=True)
class LabFolder:
    """Paths of one lab."""

    root: Path

    @property
    def state(self) -> Path:
        """State of the running lab, for other commands: see `LabState`."""
        return self.root / "state.json"

    @property
    def control(self) -> Path:
        """Socket that takes commands."""
        return self.root / "control.sock"

    @property
    def authority(self) -> Path:
        """Certificate to trust the BMCs by."""
        return self.root / "bmc-ca.pem"

    @property
    def certificate(self) -> Path:
        return self.root / "bmc.pem"

    @property
    def key(self) -> Path:
        return self.root / "bmc-key.pem"

    def machine(self, name: str) -> Path:
        return self.root / "machines" / name

    def disk(self, name: str, number: int) -> Path:
        return self.machine(name) / f"disk{number}.raw"

    def console(self, name: str) -> Path:
        return self.machine(name) / "console.log"

    def password(self, name: str) -> Path:
        return self.machine(name) / "bmc-password"

    def variables(self, name: str) -> Path:
        """UEFI variables."""
        return self.machine(name) / "uefi-vars.fd"

    def serial(self, name: str) -> Path:
        """Socket of the serial line, to type into."""
        return self.machine(name) / "serial.sock"

    def monitor(self, name: str) -> Path:
        return self.machine(name) / "qmp.sock"


class NoLabError(IronbellError):
    """No lab runs from a folder."""

    reason = "NoLab"
    retry = Retry.NEVER


class MachineState(msgspec.Struct, frozen=True, kw_only=True):
    """One machine. `password_file` holds its BMC's password, readable by its owner only."""

    name: str
    firmware: str
    mac: str
    address: str
    uuid: str
    memory: int
    cpus: int
    power: str
    starts: int
    bmc_host: str
    bmc_port: int
    bmc_user: str
    password_file: str
    console: str
    disk_serial: str
    kind: str = "qemu"

    @property
    def bmc_url(self) -> str:
        return f"https://{self.bmc_host}:{self.bmc_port}"


class LabState(msgspec.Struct, frozen=True, kw_only=True):
    """The whole lab."""

    name: str
    pid: int
    network_namespace: str
    bridge: str
    subnet: str
    gateway: str
    authority: str
    machines: tuple[MachineState, ...]

    def machine(self, name: str) -> MachineState:
        """The machine of that name.

        Raises:
            NoLabError: the lab has no such machine.
        """
        return machine_named(self.machines, name, NoLabError)


def write_state(folder: LabFolder, state: LabState) -> None:
    """Replace the file."""
    partial = folder.state.with_suffix(".partial")
    partial.write_bytes(msgspec.json.encode(state))
    partial.rename(folder.state)


def read_state(root: Path) -> LabState:
    """The lab of a folder: a lab's own, or the data folder of `ironbell up`.

    Raises:
        NoLabError: no lab runs there.
    """
    for folder in (LabFolder(root), LabFolder(root / "lab")):
        try:
            state = msgspec.json.decode(folder.state.read_bytes(), type=LabState)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except msgspec.MsgspecError as error:
            raise NoLabError(f"{folder.state} cannot be read: {error}") from error
        if not Path(f"/proc/{state.pid}").exists():
            raise NoLabError(f"the lab of {root} does not run; start it with `ironbell up --lab FILE`")
        return state
    raise NoLabError(f"no lab runs in {root}; name the data folder of `ironbell up --lab FILE`")
