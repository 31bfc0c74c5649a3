"""Disks that erase themselves: which command they get, by what they say of themselves; programs are stand-ins."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from ironbell.agent import messages
from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, secure
from ironbell.agent.actions.disks.devices import Device
from ironbell.agent.actions.disks.secure import Ata, erase, parse_security

HDPARM = """
/dev/sda:

ATA device, with non-removable media
Commands/features:
\tEnabled\tSupported:
\t   *\tSecurity Mode feature set
Security:
\tMaster password revision code = 65534
\t\tsupported
\tnot\tenabled
\t{locked}locked
\t{frozen}frozen
\tnot\texpired: security count
\t\tsupported: enhanced erase
\t4min for SECURITY ERASE UNIT. 8min for ENHANCED SECURITY ERASE UNIT.
Logical Unit WWN Device Identifier: 5002538e00000000
"""


class Quiet:
    def log(self, text: str) -> None:
        pass

    def send(self, message: messages.Message) -> None:
        pass


class Disk:
    """Programs that answer as they are told, and remember what they were asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def program(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.folder}/asked\n{script}')
        path.chmod(0o755)

    @property
    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()

    def erase(self, name: str) -> str:
        device = Device(name=f"/dev/{name}", path=f"/dev/{name}", size=1 << 30, block_size=512, is_file=False)
        return erase(Context(environment={}, output=Quiet()), device)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    opened: Callable[[Device], int] = lambda _device: os.open(os.devnull, os.O_RDONLY)  # noqa: E731
    monkeypatch.setattr(devices, "open_exclusively", opened)
    monkeypatch.setattr(secure, "_POLL_S", 0.01)
    return Disk(tmp_path)


def nvme(disk: Disk, **known: int) -> None:
    log = struct.pack("<HH", 65535, 0x101).hex()
    busy = struct.pack("<HH", 100, 0x102).hex()
    as_octal = "".join(f"\\\\0{int(log[at : at + 2], 16):03o}" for at in range(0, len(log), 2))
    busy_octal = "".join(f"\\\\0{int(busy[at : at + 2], 16):03o}" for at in range(0, len(busy), 2))
    disk.program(
        "nvme",
        f"""case "$1" in
id-ctrl) echo '{json.dumps(known)}' ;;
sanitize-log)
  [ -e {disk.folder}/looked ] && exec printf "%b" "{as_octal}"
  touch {disk.folder}/looked
  printf "%b" "{busy_octal}" ;;
esac
""",
    )


@pytest.mark.parametrize(("fna", "kind"), [(0, 1), (4, 2)])
def test_nvme_is_formatted(disk: Disk, fna: int, kind: int) -> None:
    nvme(disk, oacs=0x5E, fna=fna, sanicap=3)
    assert disk.erase("nvme0n1").startswith("NVMe format")
    assert disk.asked[-1] == f"nvme format /dev/nvme0n1 --ses={kind} --force"


@pytest.mark.parametrize(("sanicap", "action"), [(1, 4), (2, 2), (3, 4)])
def test_nvme_that_can_only_sanitize_is_waited_for(disk: Disk, sanicap: int, action: int) -> None:
    nvme(disk, oacs=0, sanicap=sanicap)
    assert disk.erase("nvme12n1").startswith("NVMe sanitize")
    assert f"nvme sanitize /dev/nvme12 --sanact={action}" in disk.asked
    assert sum(line.startswith("nvme sanitize-log /dev/nvme12") for line in disk.asked) == 2


@pytest.mark.parametrize(
    ("others", "known", "how"),
    [
        (["nvme0n2"], {"oacs": 0x5E, "fna": 2, "sanicap": 3}, ""),
        (["nvme0n2"], {"oacs": 0, "sanicap": 3}, ""),
        (["nvme0n2"], {"oacs": 0x5E, "fna": 4, "sanicap": 3}, "NVMe format with cryptographic erase"),
        (["nvme0c0n1", "nvme1n2"], {"oacs": 0x5E, "fna": 7}, "NVMe format with cryptographic erase"),
    ],
)
def test_another_namespace_of_the_controller_is_never_erased_along(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, others: list[str], known: dict[str, int], how: str
) -> None:
    monkeypatch.setattr(devices, "disks", lambda: ["nvme0n1", *others])
    nvme(disk, **known)
    assert disk.erase("nvme0n1") == how
    assert how or not any(line.split()[1] in {"format", "sanitize"} for line in disk.asked)


def test_a_partition_is_never_erased_by_erasing_its_disk(disk: Disk) -> None:
    hdparm(disk)
    assert disk.erase("sda1") == ""
    assert disk.erase("nvme0n1p1") == ""


def test_nvme_that_can_neither_leaves_it_to_the_kernel(disk: Disk) -> None:
    nvme(disk, oacs=0, sanicap=0)
    assert disk.erase("nvme0n1") == ""


def hdparm(disk: Disk, *, locked: str = "not\t", frozen: str = "not\t", fails: str = "") -> None:
    said = HDPARM.format(locked=locked, frozen=frozen)
    (disk.folder / "said").write_text(said)
    failing = f'case "$*" in *{fails}*) echo "bad/missing sense data" >&2; exit 5 ;; esac' if fails else ""
    disk.program("hdparm", f'[ "$1" = -I ] && exec cat {disk.folder}/said\n{failing}\nexit 0\n')


def test_ata_is_erased_with_a_password_for_that_time(disk: Disk) -> None:
    hdparm(disk)
    assert disk.erase("sda") == "ATA security erase (enhanced)"
    assert disk.asked[1:] == [
        "hdparm --user-master u --security-set-pass ironbell /dev/sda",
        "hdparm --user-master u --security-erase-enhanced ironbell /dev/sda",
    ]


def test_ata_that_an_earlier_erase_left_locked_is_unlocked(disk: Disk) -> None:
    hdparm(disk, locked="\t")
    assert disk.erase("sda")
    assert disk.asked[1] == "hdparm --user-master u --security-unlock ironbell /dev/sda"


def test_an_erase_that_fails_leaves_no_password(disk: Disk) -> None:
    hdparm(disk, fails="--security-erase")
    with pytest.raises(ActionError, match="status 5: bad/missing sense data"):
        disk.erase("sda")
    assert disk.asked[-1] == "hdparm --user-master u --security-disable ironbell /dev/sda"


@pytest.mark.parametrize(
    ("says", "text"), [({"frozen": "\t"}, "frozen"), ({"locked": "\t", "fails": "--security-unlock"}, "locked")]
)
def test_a_disk_that_is_shut_says_so(disk: Disk, says: dict[str, str], text: str) -> None:
    hdparm(disk, **says)
    with pytest.raises(ActionError, match=text):
        disk.erase("sda")
    assert not any("erase" in line for line in disk.asked)


def test_other_disks_are_left_to_the_kernel(disk: Disk) -> None:
    disk.program("hdparm", "echo no such device\nexit 5\n")
    assert disk.erase("sda") == ""
    assert disk.erase("vda") == ""


def test_what_hdparm_says_of_security() -> None:
    said = HDPARM.format(locked="not\t", frozen="\t")
    assert parse_security(said) == Ata(supported=True, frozen=True, locked=False, enhanced=True, minutes=4)
    unsupported = "\nSecurity: \n\tMaster password revision code = 0\n\tnot\tsupported\n"
    assert parse_security(unsupported) == Ata(supported=False, frozen=False, locked=False, enhanced=False, minutes=None)
    assert parse_security("SG_IO: bad/missing sense data") is None
