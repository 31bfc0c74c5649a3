"""image2disk against a web server with faults; files stand in for disks, some on loop devices."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import random
import struct
import subprocess
from pathlib import Path

import pytest
from backports import zstd

from ironbell.agent.actions import image2disk
from ironbell.agent.messages import ProgressMessage

MIB = 1 << 20
DISK = 24 * MIB


def an_image(size: int = 9 * MIB + 700, seed: int = 1) -> bytes:
    """Data, then many zeros, then data, with an end that fills no block."""
    source = random.Random(seed)
    return source.randbytes(5 * MIB) + bytes(size - 5 * MIB - 3000) + source.randbytes(3000)


IMAGE = an_image()
SMALL = IMAGE[4 * MIB : 6 * MIB + 100]
COMPRESSORS = {
    "gzip": lambda data: gzip.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=0),
    "zstd": lambda data: zstd.compress(data, 1),
    "bzip2": lambda data: bz2.compress(data, 1),
}


def on(path: Path | str, size: int) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(size)


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_writes_any_compression_whatever_the_name(web, run_here, file_disk, kind):
    web.body = COMPRESSORS[kind](IMAGE)
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=f"{web.url}?token=secret", DEST_DISK=str(disk), COMPRESSED="true")
    assert result.status == 0, result.said
    assert on(disk, len(IMAGE)) == IMAGE
    assert kind in result.said[0]
    assert "secret" not in "".join(result.said)


def test_writes_a_raw_image_and_clears_the_disk_s_end(web, run_here, file_disk):
    web.body = IMAGE
    disk = file_disk(DISK)
    assert run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk)).status == 0
    data = disk.read_bytes()
    assert data[: len(IMAGE)] == IMAGE
    assert data[-MIB:] == bytes(MIB)
    assert data[len(IMAGE) : -MIB] == (b"old!" * (DISK // 4))[len(IMAGE) : -MIB]
    assert len(data) == DISK


def test_zeros_replace_old_data(web, run_here, file_disk):
    web.body = gzip.compress(bytes(20 * MIB), 1)
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert result.status == 0
    assert on(disk, 20 * MIB) == bytes(20 * MIB)


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_many_members_and_padding_are_one_image(web, run_here, file_disk, kind):
    compress = COMPRESSORS[kind]
    web.body = compress(SMALL[:700_001]) + compress(SMALL[700_001:]) + bytes(512)
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert result.status == 0, result.said
    assert on(disk, len(SMALL)) == SMALL


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_truncated_compression_fails_and_the_disk_does_not_look_bootable(web, run_here, file_disk, kind):
    web.body = COMPRESSORS[kind](IMAGE)[:-9]
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert result.status == 1
    assert "truncated" in result.failure
    assert on(disk, MIB) == bytes(MIB)


def test_damaged_compression_fails(web, run_here, file_disk):
    body = bytearray(gzip.compress(IMAGE, 1))
    body[len(body) // 2] ^= 255
    web.body = bytes(body)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(file_disk(DISK)))
    assert result.status == 1
    assert "damaged" in result.failure


def test_garbage_after_the_compressed_data_fails(web, run_here, file_disk):
    web.body = gzip.compress(IMAGE, 1) + b"something else"
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(file_disk(DISK)))
    assert "unexpected data" in result.failure


@pytest.mark.parametrize(("name", "data"), [("IMG_CHECKSUM", "served"), ("IMG_RAW_CHECKSUM", "raw")])
def test_checks_either_check_sum(web, run_here, file_disk, name, data):
    web.body = gzip.compress(IMAGE, 1)
    right = hashlib.sha256(web.body if data == "served" else IMAGE).hexdigest()
    disk = file_disk(DISK)
    assert run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk), **{name: f"sha256:{right}"}).status == 0
    assert on(disk, len(IMAGE)) == IMAGE
    wrong = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk), **{name: f"sha256:{'0' * 64}"})
    assert wrong.status == 1
    assert right in wrong.failure
    assert "has no partition table now" in wrong.failure
    assert on(disk, MIB) == bytes(MIB)


def test_a_check_sum_that_cannot_be_one_touches_nothing(web, run_here, file_disk):
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk), IMG_CHECKSUM="sha256:abc")
    assert "64 hex digits" in result.failure
    assert on(disk, 4) == b"old!"


def test_resumes_with_a_range_where_the_connection_broke(web, run_here, file_disk):
    web.body = IMAGE
    web.steps = [make_step(web, cut_after=3 * MIB), make_step(web, cut_after=MIB)]
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert result.status == 0, result.said
    assert on(disk, len(IMAGE)) == IMAGE
    assert web.ranges[0] == ""
    assert all(asked.startswith("bytes=") for asked in web.ranges[1:])
    assert len(web.ranges) == 3


def make_step(web, **fields):
    """A step of the server's own type."""
    step = web.step()
    for key, value in fields.items():
        setattr(step, key, value)
    return step


def test_resumes_from_a_server_without_ranges_by_reading_again(web, run_here, file_disk):
    web.body = gzip.compress(IMAGE, 1)
    web.steps = [make_step(web, cut_after=2 * MIB), make_step(web, ignores_range=True)]
    disk = file_disk(DISK)
    assert run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk)).status == 0
    assert on(disk, len(IMAGE)) == IMAGE


def test_a_file_that_changes_in_between_is_written_anew_never_mixed(web, run_here, file_disk):
    old, web.body = an_image(seed=2), IMAGE
    web.steps = [make_step(web, body=old, etag='"old"', cut_after=6 * MIB)]
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert result.status == 0
    assert any("changed while" in line for line in result.said)
    assert on(disk, len(IMAGE)) == IMAGE


def test_a_server_that_hangs_is_left_and_taken_up_again(web, run_here, file_disk):
    web.body = IMAGE
    web.steps = [make_step(web, hang_after=2 * MIB)]
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk), HTTP_STALL_SECONDS="0.3")
    assert result.status == 0, result.said
    assert any("silent" in line for line in result.said)
    assert on(disk, len(IMAGE)) == IMAGE


def test_server_errors_are_tried_again_and_then_given_up(web, run_here, file_disk):
    web.body = IMAGE
    web.steps = [make_step(web, status=503)]
    disk = file_disk(DISK)
    assert run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk)).status == 0
    web.steps = [make_step(web, status=500) for _ in range(50)]
    disk.write_bytes(b"old!" * (DISK // 4))
    limits = {"RETRY_ENABLED": "true", "RETRY_DURATION_MINUTES": "0.01"}
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk), **limits)
    assert result.status == 1
    assert "answered 500" in result.failure
    assert on(disk, 4) == b"old!", "nothing is erased for an image that never came"


def test_a_missing_file_fails_at_once_and_touches_nothing(web, run_here, file_disk):
    web.steps = [make_step(web, status=404)]
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert "404" in result.failure
    assert "IMG_URL" in result.failure
    assert len(web.ranges) == 1
    assert on(disk, 4) == b"old!"


def test_an_unreachable_server_is_named(run_here, file_disk):
    limits = {"RETRY_ENABLED": "true", "RETRY_DURATION_MINUTES": "0.005"}
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL="http://user:pw@127.0.0.1:9/x", DEST_DISK=str(disk), **limits)
    assert "127.0.0.1:9/x" in result.failure
    assert "refused" in result.failure
    assert "pw" not in "".join(result.said) + result.failure


def test_a_web_page_is_no_image(web, run_here, file_disk):
    web.body = b"\n<!DOCTYPE html><html>Sign in first</html>"
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert "web page" in result.failure
    assert on(disk, 4) == b"old!"


def test_compressed_true_insists_on_compression(web, run_here, file_disk):
    web.body = IMAGE
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(file_disk(DISK)), COMPRESSED="true")
    assert "neither gzip, xz, zstd nor bzip2" in result.failure


@pytest.mark.parametrize("compress", [bytes, COMPRESSORS["gzip"]])
def test_a_disk_that_is_too_small_is_said(web, run_here, file_disk, compress):
    web.body = compress(IMAGE)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(file_disk(8 * MIB)))
    assert result.status == 1
    assert "8.4 MB" in result.failure


def test_a_raw_download_without_a_length_is_written(web, run_here, file_disk):
    web.body = IMAGE
    web.steps = [make_step(web, says_length=False)]
    disk = file_disk(DISK)
    assert run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk)).status == 0
    assert on(disk, len(IMAGE)) == IMAGE


def test_missing_and_wrong_disks_are_named(web, run_here, tmp_path):
    web.body = IMAGE
    missing = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK="/dev/nothing-here")
    assert "there is no /dev/nothing-here" in missing.failure
    assert "this machine" in missing.failure
    character = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK="/dev/null")
    assert "not a block device" in character.failure
    assert run_here(image2disk.run, DEST_DISK="/dev/null").status == 20


def test_files_are_no_disks_unless_the_test_runner_says_so(web, run_here, file_disk):
    web.body = IMAGE
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk), IRONBELL_ALLOW_FILE_DISKS="0")
    assert "not a block device" in result.failure
    assert on(disk, 4) == b"old!"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("IRONBELL_MACHINE_MAC", "02:00:00:00:00:99"),
        ("IRONBELL_MACHINE_UUID", "4c4c4544-0000-1000-8000-000000000099"),
    ],
)
def test_another_machine_s_disk_is_refused(web, run_here, file_disk, name, value):
    web.body = IMAGE
    disk = file_disk(DISK)
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk), **{name: value})
    assert result.status == 1
    assert "rejected" in result.failure
    assert value in result.failure
    assert on(disk, 4) == b"old!"


def test_progress_reaches_the_agent(web, run_here, file_disk):
    web.body = IMAGE
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(file_disk(DISK)))
    progress = [note for note in result.notes if isinstance(note, ProgressMessage)]
    assert progress[-1].percent == 100.0
    assert progress[-1].done_bytes == len(IMAGE)
    assert progress[-1].bytes_per_second > 0
    assert "MB/s" in result.said[-2] + result.said[-1]


@pytest.mark.root
class TestLoopDevices:
    """What only real block devices show."""

    def test_partitions_are_there_after_writing(self, web, run_action, loop_disk, tmp_path):
        template = tmp_path / "template"
        template.write_bytes(bytes(16 * MIB))
        subprocess.run(
            ["sfdisk", "--quiet", str(template)], input="label: gpt\n2048,4MiB\n,4MiB\n", text=True, check=True
        )
        web.body = COMPRESSORS["zstd"](template.read_bytes())
        disk = loop_disk(32)
        result = run_action("image2disk", IMG_URL=web.url, DEST_DISK=disk)
        assert result.status == 0, result.said
        assert Path(f"{disk}p1").exists()
        assert Path(f"{disk}p2").exists()

    def test_zeros_are_holes_and_old_data_is_gone(self, web, run_action, loop_disk, tmp_path):
        disk = loop_disk(64)
        with Path(disk).open("wb") as file:
            file.write(random.Random(1).randbytes(MIB) * 64)
        image = random.Random(2).randbytes(8 * MIB) + bytes(40 * MIB) + random.Random(3).randbytes(MIB + 512)
        web.body = COMPRESSORS["gzip"](image)
        result = run_action("image2disk", IMG_URL=web.url, DEST_DISK=disk)
        assert result.status == 0, result.said
        assert on(disk, len(image)) == image
        assert (tmp_path / "disk0").stat().st_blocks * 512 < 40 * MIB

    def test_a_mounted_disk_is_refused(self, web, run_action, loop_disk, tmp_path):
        web.body = IMAGE
        disk = loop_disk(32)
        subprocess.run(["mkfs.ext4", "-q", disk], check=True)
        point = tmp_path / "mounted"
        point.mkdir()
        subprocess.run(["mount", disk, point], check=True)
        try:
            result = run_action("image2disk", IMG_URL=web.url, DEST_DISK=disk)
        finally:
            subprocess.run(["umount", point], check=True)
        assert result.status == 1
        assert f"{disk} is mounted at {point}" in result.failure
        assert struct.unpack_from("<H", on(disk, 2048), 1024 + 56)[0] == 0xEF53, "the file system is still there"

    def test_a_wrong_serial_number_is_refused(self, web, run_action, loop_disk):
        web.body = IMAGE
        result = run_action("image2disk", IMG_URL=web.url, DEST_DISK=loop_disk(32), IRONBELL_DISK_SERIAL="S1,S2")
        assert "serial number" in result.failure
        assert "s1, s2" in result.failure
