"""Files of a lab, below its folder: their paths, and the state of the running lab that other commands read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
