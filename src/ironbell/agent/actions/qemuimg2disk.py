"""qemuimg2disk: write a qcow2 image from HTTP(S) to a disk, expanded on the way; raw images as image2disk does.

`IMG_URL`, `DEST_DISK`. The image is read on the server, so the machine needs no room for it. `FORMAT` may be
`host_device` or `raw`; `EXTRA_ARGS` may hold options that make qemu-img faster and have no effect here.
`IMG_RAW_CHECKSUM` and the variables for retries are as for image2disk. VMDK, VDI, VHD and VHDX are rejected before the
disk is written.

Source: tinkerbell/actions: qemuimg2disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ironbell.agent.actions import image2disk
from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices
from ironbell.agent.actions.disks.diskwriter import DiskWriter
from ironbell.agent.actions.streams import checksum, qcow2
from ironbell.agent.actions.streams.download import Download, without_secrets

_HEAD: Final = 4096
_READ_OVER: Final = 1 << 20
"""A jump ahead by no more than this is cheaper than a new request."""
_FORMATS: Final = ("host_device", "raw")
_FLAGS: Final = frozenset({"-W", "-p", "-q"})
_WITH_VALUE: Final = frozenset({"-m", "-t", "-T", "-r"})


def run(context: Context) -> None:
    """Write the image."""
    url = context.required("IMG_URL")
    _check(context)

    def transfer() -> None:
        device = devices.resolve(context, context.required("DEST_DISK"))
        download = Download(url, log=context.log, patience=image2disk.patience(context))
        download.open()
        try:
            source = Ranged(download)
            kind = image2disk.container_format(source.read(0, _HEAD))
            if kind == image2disk.QCOW2:
                _write(context, source, name=without_secrets(url), device=device)
                return
        finally:
            download.close()
        image2disk.run(context)

    image2disk.with_restarts(context, transfer)


def _write(context: Context, source: Ranged, *, name: str, device: devices.Device) -> None:
    if context.text("IMG_CHECKSUM"):
        raise ActionError(
            "IMG_CHECKSUM cannot be verified for a qcow2 image, which is not read in order; set IMG_RAW_CHECKSUM, "
            "the checksum of the disk's bytes",
            exit_status=10,
        )
    header = qcow2.parse(source.read(0, qcow2.HEADER_SIZE))
    if header.size > device.size:
        has, needs = devices.size_text(device.size), devices.size_text(header.size)
        raise ActionError(f"the image is of a disk of {needs}, {device} has only {has}; choose a larger disk")
    context.log(f"writing {name} (qcow2, {devices.size_text(header.size)}) to {device}")
    image, written = qcow2.chunks(header, source.read), checksum.expected(context, "IMG_RAW_CHECKSUM")
    if written:
        image = written.over(image)
    writer = DiskWriter(device)
    try:
        image2disk.fill(
            context,
            image,
            writer=writer,
            operation="qemuimg2disk",
            share=lambda: writer.position / header.size,
            name=name,
        )
        image2disk.verify((written, "the image"))
        writer.commit()
    finally:
        writer.close()
    if not devices.reread_partitions(device):
        context.log(f"the kernel did not read the new partition table of {device}; a reboot will")


def _check(context: Context) -> None:
    """Reject options that would make qemu-img do something else."""
    form = context.text("FORMAT", "host_device")
    if form not in _FORMATS:
        raise ActionError(f"FORMAT is {form!r}; a disk is written as host_device or raw", exit_status=10)
    words = context.text("EXTRA_ARGS").split()
    while words:
        word = words.pop(0)
        if word in _WITH_VALUE and words:
            words.pop(0)
        elif word not in _FLAGS:
            raise ActionError(
                f"EXTRA_ARGS has {word}, which is not one of {', '.join(sorted(_FLAGS | _WITH_VALUE))}; "
                "prepare the image with qemu-img convert instead",
                exit_status=10,
            )


class Ranged:
    """Random access to an opened download. Reading in the file's own order takes one request.

    A jump is a new request; the bytes before it are read and dropped if the server has no Range, which only costs time.
    """

    def __init__(self, download: Download) -> None:
        self._download = download
        self._chunks: Iterator[bytes] = download.chunks()
        self._buffer = bytearray()
        self._start = 0
        """Where in the file the buffer begins."""

    def read(self, offset: int, size: int) -> bytes:
        """These bytes; fewer where the file ends.

        Raises:
            ActionError: the server cannot be reached any more.
            SourceChangedError: the file has changed.
        """
        total = self._download.total
        if total is not None and offset >= total:
            return b""
        if not self._start <= offset <= self._start + len(self._buffer) + _READ_OVER:
            self._download.seek(offset)
            self._chunks, self._start = self._download.chunks(), offset
            self._buffer.clear()
        while self._start + len(self._buffer) < offset + size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            self._buffer += chunk
            self._forget(offset)
        self._forget(offset)
        return bytes(self._buffer[:size]) if self._start == offset else b""

    def _forget(self, offset: int) -> None:
        count = min(len(self._buffer), max(0, offset - self._start))
        del self._buffer[:count]
        self._start += count
