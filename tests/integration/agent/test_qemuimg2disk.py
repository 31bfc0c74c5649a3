"""qemuimg2disk: images that qemu-img made, read over HTTP, against the disks that they were made of."""

from __future__ import annotations

import gzip
import hashlib
import random
import struct
import subprocess
from pathlib import Path

import pytest

from ironbell.agent.actions import image2disk, qemuimg2disk
from support.skips import needs_program

MIB = 1 << 20
DISK = 24 * MIB

pytestmark = needs_program("qemu-img")


def a_disk(size: int = 12 * MIB + 4096) -> bytes:
    """A disk with data, zeros, text that compresses, and data at its end."""
    source = random.Random(5)
    text = b"the same again and again\n" * 40_000
    head = source.randbytes(3 * MIB) + bytes(4 * MIB) + text
    return head + bytes(size - len(head) - 70_000) + source.randbytes(70_000)


RAW = a_disk()


def convert(folder: Path, *options: str, form: str = "qcow2", raw: bytes = RAW) -> bytes:
    (folder / "raw").write_bytes(raw)
    target = folder / "image"
    command = ["qemu-img", "convert", "-f", "raw", "-O", form, *options, str(folder / "raw"), str(target)]
    subprocess.run(command, check=True, capture_output=True)
    return target.read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("-c",),
        ("-c", "-o", "compression_type=zstd"),
        ("-o", "compat=0.10"),
        ("-o", "cluster_size=512"),
        ("-c", "-o", "cluster_size=2M"),
        ("-o", "preallocation=metadata"),
    ],
    ids=" ".join,
)
def test_the_disk_is_what_the_image_describes(web, run_here, file_disk, tmp_path, options):
    web.body = convert(tmp_path, *options)
    disk = file_disk(DISK)
    digest = f"sha256:{hashlib.sha256(RAW).hexdigest()}"
    result = run_here(
        qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(disk), IMG_RAW_CHECKSUM=digest, FORMAT="host_device"
    )
    assert result.status == 0, result.said
    assert disk.read_bytes()[: len(RAW)] == RAW
    assert "qcow2" in result.said[0]


def test_an_image_in_order_is_one_download_after_its_tables(web, run_here, file_disk, tmp_path):
    web.body = convert(tmp_path, "-c")
    assert run_here(qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(file_disk(DISK))).status == 0
    assert len(web.ranges) <= 4, web.ranges


def test_a_transfer_that_is_cut_goes_on(web, run_here, file_disk, tmp_path):
    web.body = convert(tmp_path)
    step = type(web.step())
    web.steps = [step(), *(step(cut_after=700_000) for _ in range(4))]
    disk = file_disk(DISK)
    result = run_here(qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert result.status == 0, result.said
    assert disk.read_bytes()[: len(RAW)] == RAW


def test_a_server_that_sends_only_whole_files_will_do(web, run_here, file_disk, tmp_path):
    web.body = convert(tmp_path)
    step = type(web.step())
    web.steps = [step(ignores_range=True) for _ in range(20)]
    disk = file_disk(DISK)
    assert run_here(qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(disk)).status == 0
    assert disk.read_bytes()[: len(RAW)] == RAW


def test_a_raw_image_is_written_as_by_image2disk(web, run_here, file_disk):
    web.body = gzip.compress(RAW, 1)
    disk = file_disk(DISK)
    assert run_here(qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(disk)).status == 0
    assert disk.read_bytes()[: len(RAW)] == RAW


@pytest.mark.parametrize("form", ["vmdk", "vdi", "vpc", "vhdx", "qed"])
@pytest.mark.parametrize("action", [qemuimg2disk, image2disk])
def test_other_formats_are_refused_before_the_disk_is_touched(web, run_here, file_disk, tmp_path, form, action):
    web.body = convert(tmp_path, form=form)
    disk = file_disk(DISK)
    before = disk.read_bytes()
    result = run_here(action.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert result.status == 1
    assert "convert it: qemu-img convert" in result.failure
    assert disk.read_bytes() == before


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_image2disk_writes_no_qcow2_as_it_is(web, run_here, file_disk, tmp_path, pack):
    web.body = pack(convert(tmp_path))
    disk = file_disk(DISK)
    before = disk.read_bytes()
    result = run_here(image2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert result.status == 1
    assert "qemuimg2disk writes one" in result.failure
    assert disk.read_bytes() == before


def test_an_image_that_needs_another_file_is_refused(web, run_here, file_disk, tmp_path):
    (tmp_path / "base").write_bytes(RAW)
    command = ["qemu-img", "create", "-f", "qcow2", "-F", "raw", "-b", str(tmp_path / "base"), str(tmp_path / "over")]
    subprocess.run(command, check=True, capture_output=True)
    web.body = (tmp_path / "over").read_bytes()
    result = run_here(qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(file_disk(DISK)))
    assert "it needs a backing file; make it whole" in result.failure


@pytest.mark.parametrize(
    ("offset", "value", "said"),
    [(72, struct.pack(">Q", 2), "marked as corrupt"), (72, struct.pack(">Q", 1 << 40), "not known here"),
     (20, struct.pack(">I", 40), "version 3 with clusters"), (32, struct.pack(">I", 1), "encrypted"),
     (36, struct.pack(">I", 0), "does not cover the disk"), (24, struct.pack(">Q", 1 << 40), "choose a larger disk")],
)  # fmt: skip
def test_a_header_that_cannot_be_is_refused_before_the_disk_is_touched(
    web, run_here, file_disk, tmp_path, offset, value, said
):
    body = bytearray(convert(tmp_path))
    body[offset : offset + len(value)] = value
    if said.startswith("choose"):
        body[36:40] = struct.pack(">I", 1 << 20)
    web.body = bytes(body)
    disk = file_disk(DISK)
    before = disk.read_bytes()
    result = run_here(qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert said in result.failure
    assert disk.read_bytes() == before


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_image_fails_with_a_sentence_or_is_not_noticed(web, run_here, file_disk, tmp_path, seed):
    """Bits of a table or of a cluster: there is no check sum in the format, but never a traceback."""
    source = random.Random(seed)
    body = bytearray(convert(tmp_path, "-c", "-o", "cluster_size=64K", raw=RAW[: 4 * MIB]))
    for _ in range(8):
        body[source.randrange(64, min(len(body), 6 * 65536))] = source.randrange(256)
    web.body = bytes(body)
    result = run_here(qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(file_disk(DISK)))
    assert result.status == 0 or "qcow2 image" in result.failure or "the image is" in result.failure, result.failure


def test_a_truncated_image_leaves_no_partition_table(web, run_here, file_disk, tmp_path):
    web.body = convert(tmp_path, "-c")[: 5 * 65536]
    disk = file_disk(DISK)
    result = run_here(qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(disk))
    assert "damaged" in result.failure
    assert disk.read_bytes()[:512] in (bytes(512), b"old!" * 128)


@pytest.mark.parametrize(
    ("environment", "said"),
    [({"FORMAT": "vmdk"}, "FORMAT is 'vmdk'"), ({"EXTRA_ARGS": "-l snapshot"}, "EXTRA_ARGS has -l"),
     ({"IMG_CHECKSUM": "sha256:" + "0" * 64}, "set IMG_RAW_CHECKSUM")],
)  # fmt: skip
def test_what_cannot_be_held_is_refused(web, run_here, file_disk, tmp_path, environment, said):
    web.body = convert(tmp_path)
    result = run_here(qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(file_disk(DISK)), **environment)
    assert (result.status, said in result.failure) == (10, True), result.failure
    fast = {"EXTRA_ARGS": "-W -m 16 -t writeback"}
    assert run_here(qemuimg2disk.run, IMG_URL=web.url, DEST_DISK=str(file_disk(DISK)), **fast).status == 0
