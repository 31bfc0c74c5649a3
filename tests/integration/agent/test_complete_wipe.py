"""A wipe that is called complete leaves nothing readable: on disks that discard and on disks that cannot."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ironbell.agent.actions import wipe
from ironbell.agent.actions.context import ActionError
from ironbell.agent.actions.disks import devices, kernel, secure, wipeproof
from ironbell.agent.messages import ProgressMessage, ResultMessage
from ironbell.codec.diskwipe import DiskReport, parse

pytestmark = pytest.mark.root
MIB = 1 << 20
SIZE_MIB = 64
LOOP_CTL_ADD, LOOP_CTL_REMOVE = 0x4C80, 0x4C81
TEXT = b"somebody's data in the middle of the disk "


@pytest.fixture
def disk_without_discard(tmp_path: Path) -> Iterator[str]:
    """What many hard disks and RAID controllers are: a loop device of its own number, since the limit outlasts it and
    the next to get a common number could not discard either."""
    image = tmp_path / "undiscardable"
    image.write_bytes(bytes(SIZE_MIB * MIB))
    control = os.open("/dev/loop-control", os.O_RDWR)
    number = 1000 + os.getpid() % 100_000
    fcntl.ioctl(control, LOOP_CTL_ADD, number)
    subprocess.run(["losetup", f"/dev/loop{number}", str(image)], check=True)
    Path(f"/sys/class/block/loop{number}/queue/discard_max_bytes").write_text("0")
    yield f"/dev/loop{number}"
    subprocess.run(["losetup", "--detach", f"/dev/loop{number}"], check=True)
    fcntl.ioctl(control, LOOP_CTL_REMOVE, number)
    os.close(control)


@pytest.fixture
def used_disk(request: pytest.FixtureRequest) -> Callable[..., str]:
    """A disk that is full of data."""

    def make(*, discards: bool) -> str:
        made = request.getfixturevalue("loop_disk" if discards else "disk_without_discard")
        disk: str = made(SIZE_MIB) if discards else made
        with Path(disk).open("r+b") as file:
            file.write((TEXT * (MIB // len(TEXT) + 1))[:MIB] * SIZE_MIB)
            os.fsync(file.fileno())
        return disk

    return make


def content(disk: str) -> bytes:
    """Every byte, past the page cache."""
    with Path(disk).open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file.read()


def reported(result: Any) -> DiskReport:
    (message,) = [note.message for note in result.notes if isinstance(note, ResultMessage)]
    (report,) = parse(message)
    return report


@pytest.mark.parametrize("discards", [True, False])
def test_a_complete_wipe_leaves_no_byte(used_disk, run_action, discards: bool) -> None:
    disk = used_disk(discards=discards)
    result = run_action("wipe", DEST_DISK=disk, WIPE_METHOD="complete")
    assert result.status == 0, result.said
    assert not any(content(disk))
    report = reported(result)
    assert report.complete
    assert report.covered == report.total == SIZE_MIB * MIB
    assert report.method == ("discard that reads as zeros" if discards else "zeros everywhere")
    assert any(isinstance(note, ProgressMessage) and note.percent == 100.0 for note in result.notes)
    assert any("held data before the wipe, none can be read any more" in text for text in result.said)


@pytest.mark.parametrize("discards", [True, False])
def test_a_quick_wipe_says_that_it_is_not_complete(used_disk, run_action, discards: bool) -> None:
    disk = used_disk(discards=discards)
    result = run_action("wipe", DEST_DISK=disk)
    assert result.status == 0, result.said
    assert (TEXT in content(disk)) is not discards
    report = reported(result)
    assert not report.complete
    assert report.covered == 20 * MIB
    assert report.total == SIZE_MIB * MIB


def test_a_disk_whose_firmware_rejects_its_own_offer_is_overwritten(used_disk, run_here, monkeypatch) -> None:
    disk = used_disk(discards=True)

    def rejects(*_: object, **__: object) -> None:
        raise OSError(121, "Remote I/O error")

    monkeypatch.setattr(kernel, "punch_hole", rejects)
    result = run_here(wipe.run, DEST_DISK=disk, WIPE_METHOD="complete")
    assert result.status == 0, result.said
    assert any("Remote I/O error; trying the next method" in text for text in result.said)
    assert reported(result).method == "zeros everywhere"


def test_a_disk_that_only_claims_to_discard_is_overwritten(used_disk, run_here, monkeypatch) -> None:
    """It accepts the command, promises no zeros, and keeps its data: as disks do that ignore TRIM."""
    disk = used_disk(discards=True)

    def no_promise(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(kernel, "discard", lambda *_, **__: None)
    monkeypatch.setattr(kernel, "punch_hole", no_promise)
    result = run_here(wipe.run, DEST_DISK=disk, WIPE_METHOD="complete")
    assert result.status == 0, result.said
    assert reported(result).method == "zeros everywhere"
    assert not any(content(disk))


@pytest.mark.parametrize(
    ("keeps", "complaint"), [(lambda _start: True, "still hold old data"), (lambda start: start == 0, "hold old data")]
)
def test_a_disk_that_lies_about_its_zeros_fails_the_wipe(
    used_disk, run_here, monkeypatch, keeps: Callable[[int], bool], complaint: str
) -> None:
    disk = used_disk(discards=False)
    real = kernel.zero_out

    def lies(descriptor: int, *, start: int, length: int) -> None:
        if not keeps(start):
            real(descriptor, start=start, length=length)

    monkeypatch.setattr(kernel, "zero_out", lies)
    monkeypatch.setattr(wipe, "_STEP", 8 * MIB)
    result = run_here(wipe.run, DEST_DISK=disk, WIPE_METHOD="complete")
    assert result.status != 0
    assert complaint in result.failure
    assert "replace the disk" in result.failure
    assert not [note for note in result.notes if isinstance(note, ResultMessage)]


def test_other_data_where_zeros_are_promised_fails_the_wipe(used_disk, run_here, monkeypatch) -> None:
    disk = used_disk(discards=False)

    def fills(descriptor: int, *, start: int, length: int) -> None:
        os.pwrite(descriptor, b"\x5a" * length, start)

    monkeypatch.setattr(kernel, "zero_out", fills)
    result = run_here(wipe.run, DEST_DISK=disk, WIPE_METHOD="complete")
    assert "do not read as zeros" in result.failure


def test_a_disk_that_is_too_slow_fails_the_wipe(used_disk, run_here, monkeypatch) -> None:
    disk = used_disk(discards=False)
    monkeypatch.setattr(wipe, "_STEP", 8 * MIB)
    monkeypatch.setattr(wipe, "time_limit_s", lambda _size: -1)
    result = run_here(wipe.run, DEST_DISK=disk, WIPE_METHOD="complete")
    assert "were overwritten within" in result.failure


def test_a_disk_that_fails_to_erase_itself_is_overwritten(used_disk, run_here, monkeypatch) -> None:
    disk = used_disk(discards=False)

    def frozen(_context: object, device: devices.Device) -> str:
        raise ActionError(f"{device}: firmware has frozen its security features")

    monkeypatch.setattr(secure, "erase_ata", frozen)
    result = run_here(wipe.run, DEST_DISK=disk, WIPE_METHOD="complete")
    assert result.status == 0, result.said
    assert any("trying the next method" in text for text in result.said)
    assert not any(content(disk))


def test_a_wipe_that_is_killed_reports_nothing_and_can_be_repeated(used_disk, run_action) -> None:
    disk = used_disk(discards=False)
    slow = (
        "import os, sys, time\n"
        "from ironbell.agent.actions import kernel, wipe\n"
        "wipe._STEP = 1 << 20\n"
        "real = kernel.zero_out\n"
        "def zero_out(descriptor, *, start, length):\n"
        "    real(descriptor, start=start, length=length)\n"
        "    if start >= 8 << 20:\n"
        "        print('halfway', flush=True)\n"
        "        time.sleep(60)\n"  # a disk that hangs until the kill
        "kernel.zero_out = zero_out\n"
        "from ironbell.agent.actions.__main__ import main\n"
        "sys.exit(main(['wipe']))\n"
    )
    environment = {**os.environ, "DEST_DISK": disk, "WIPE_METHOD": "complete"}
    with subprocess.Popen([sys.executable, "-c", slow], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "halfway" in line:
                break
        process.send_signal(signal.SIGKILL)
    assert not any(parse(line.strip()) for line in said)
    assert TEXT in content(disk)
    assert run_action("wipe", DEST_DISK=disk, WIPE_METHOD="complete").status == 0
    assert not any(content(disk))


def test_samples_of_a_blank_disk_prove_nothing_and_hurt_nothing(loop_disk, run_action) -> None:
    result = run_action("wipe", DEST_DISK=loop_disk(1), WIPE_METHOD="complete")
    assert result.status == 0, result.said
    assert any("0 held data before" in text for text in result.said)


def test_at_least_a_thousand_places_are_looked_at(used_disk) -> None:
    disk = used_disk(discards=True)
    samples = wipeproof.take(devices.Device(name=disk, path=disk, size=SIZE_MIB * MIB, block_size=512, is_file=False))
    assert len(samples.digests) >= 1000
    assert {0, SIZE_MIB * MIB - 512} <= set(samples.offsets)
