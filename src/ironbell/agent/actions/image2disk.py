"""image2disk: stream a raw disk image from HTTP(S) to a disk.

`IMG_URL`, `DEST_DISK`; compression is recognised by the content (`COMPRESSED=true` insists on one). `IMG_CHECKSUM`
(`sha256:…`) is that of the file as it lies on the server, `IMG_RAW_CHECKSUM` that of the image written.
`RETRY_ENABLED` and `RETRY_DURATION_MINUTES` set how long to wait while nothing arrives (2 minutes without),
`PROGRESS_INTERVAL_SECONDS` how often to print the progress. `TEXT_LOGGING` is accepted and has no effect.

The disk is written only once the server has answered with something that can be an image; an interrupted transfer
continues where it stopped; the first blocks are written last, after everything has been verified.

An image that is not a copy of a disk (qcow2, VMDK and the like) is recognised by its first bytes: written unchanged it
would not boot.

Source: tinkerbell/actions: image2disk; QEMU: docs/interop/qcow2.rst, block/{qed,vdi,vhdx,vmdk,vpc}.c.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices
from ironbell.agent.actions.disks.diskwriter import DiskWriter
from ironbell.agent.actions.streams import checksum, decompress
from ironbell.agent.actions.streams.download import Download, Patience, SourceChangedError, without_secrets
from ironbell.agent.actions.streams.meter import Meter
from ironbell.agent.actions.streams.relay import relayed

QCOW2 = "qcow2"
_VDI_AT, _VDI = 0x40, b"\x7f\x10\xda\xbe"
_CONTAINERS = (
    (b"QFI\xfb", QCOW2),
    (b"QED\0", "QED"),
    (b"KDMV", "VMDK"),
    (b"COWD", "VMDK"),
    (b"# Disk DescriptorFile", "VMDK"),
    (b"conectix", "VHD"),
    (b"vhdxfile", "VHDX"),
)
_HEAD = 4096
_RESTARTS = 2
_TAR_AT, _TAR = 257, b"ustar"
_MARKUP = (b"<!doctype", b"<html", b"<?xml")


@dataclass(frozen=True)
class Source:
    """An image to write: its name, its download, and the checksum of the served file."""

    name: str
    download: Download
    served: checksum.Checksum | None


def run(context: Context) -> None:
    """Write the image."""
    url = context.required("IMG_URL")

    def source() -> Source:
        served = checksum.expected(context, "IMG_CHECKSUM")
        return Source(without_secrets(url), Download(url, log=context.log, patience=patience(context)), served)

    write_from(context, source)


def write_from(context: Context, source: Callable[[], Source]) -> None:
    """Write an image to `DEST_DISK`."""
    with_restarts(context, lambda: _transfer(context, source))


def with_restarts(context: Context, transfer: Callable[[], None]) -> None:
    """Carry out a transfer, from the beginning again when the source changed on the way."""
    for left in reversed(range(_RESTARTS + 1)):
        try:
            transfer()
        except SourceChangedError as error:
            if not left:
                raise
            context.log(f"{error.message}; starting again")
        else:
            return


def patience(context: Context) -> Patience:
    """The silence that the template allows a download."""
    stall_s = context.number("HTTP_STALL_SECONDS", default=Patience.stall_s, minimum=0.1)
    if not context.flag("RETRY_ENABLED"):
        return Patience(stall_s=stall_s)
    return Patience(total_s=60 * context.number("RETRY_DURATION_MINUTES", default=10), stall_s=stall_s)


def _transfer(context: Context, open_source: Callable[[], Source]) -> None:
    device = devices.resolve(context, context.required("DEST_DISK"))
    written = checksum.expected(context, "IMG_RAW_CHECKSUM")
    source = open_source()
    download, served = source.download, source.served
    download.open()
    try:
        chunks = download.chunks()
        image = _image(context, source, served.over(chunks) if served else chunks, device=device)
        if written:
            image = written.over(image)
        writer = DiskWriter(device)
        try:
            fill(
                context,
                image,
                writer=writer,
                operation="image2disk",
                share=lambda: _share_read(download),
                name=source.name,
            )
            verify((served, "the downloaded file"), (written, "the image"))
            if download.total is not None and download.offset != download.total:
                raise ActionError(f"only {download.offset} of {download.total} bytes arrived")
            writer.commit()
        finally:
            writer.close()
    finally:
        download.close()
    if not devices.reread_partitions(device):
        context.log(f"the kernel did not read the new partition table of {device}; a reboot will")


def _image(context: Context, source: Source, chunks: Iterator[bytes], *, device: devices.Device) -> Iterator[bytes]:
    """The raw image, once its beginning looks like one."""
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= _HEAD:
            break
    kind = decompress.sniff(head)
    name, download = source.name, source.download
    if kind is not None:
        context.log(f"writing {name} ({kind.value}{_announced(download)}) to {device}")
        return decompress.expand(itertools.chain([head], chunks), kind)
    if context.flag("COMPRESSED"):
        raise ActionError(f"COMPRESSED is true, but {name} is neither gzip, xz, zstd nor bzip2")
    if head[:_HEAD].lstrip().lower().startswith(_MARKUP):
        raise ActionError(f"{name} is a web page, not a disk image; check IMG_URL")
    if not head:
        raise ActionError(f"{name} is empty")
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        raise ActionError(f"{name} is a tar archive, not a disk image; use archive2disk")
    if download.total is not None and download.total > device.size:
        raise ActionError(
            f"the image has {devices.size_text(download.total)}, {device} only {devices.size_text(device.size)}"
        )
    context.log(f"writing {name} (raw{_announced(download)}) to {device}")
    return itertools.chain([head], chunks)


def _announced(download: Download) -> str:
    return "" if download.total is None else f", {devices.size_text(download.total)}"


def _share_read(download: Download) -> float | None:
    return download.offset / download.total if download.total else None


def fill(
    context: Context,
    image: Iterator[bytes],
    *,
    writer: DiskWriter,
    operation: str,
    share: Callable[[], float | None],
    name: str,
) -> None:
    """Write the image, except the blocks that are held back until it is verified.

    Args:
        context: the action's.
        image: the bytes of the disk.
        writer: the disk; it is not changed before the source has something that can be an image.
        operation: the action, for people.
        share: how much of the source has been read, 0 to 1; None if unknown.
        name: the name of the source.

    Raises:
        ActionError: the image is empty, is not the bytes of a disk, or does not fit.
    """
    meter = Meter(context, operation=operation)
    with relayed(image) as chunks:
        first = next(chunks, b"")
        if not first:
            raise ActionError("the image is empty")
        kind = container_format(first)
        if kind is not None:
            raise ActionError(f"{name} is a {kind} image, not the bytes of a disk; {remedy(kind)}")
        writer.prepare()
        for chunk in itertools.chain([first], chunks):
            writer.write(chunk)
            meter.update(writer.position, share=share())
        writer.flush()
    meter.finish(writer.position)
    if writer.skipped:
        context.log(f"{devices.size_text(writer.skipped)} of it are zeros that the device wrote by itself")


def verify(*sums: tuple[checksum.Checksum | None, str]) -> None:
    """Compare checksums, each with the name of its subject, with the data that was read.

    Raises:
        ActionError: a checksum differs.
    """
    try:
        for expected, subject in sums:
            if expected:
                expected.verify(subject)
    except ActionError as error:
        raise ActionError(f"{error.message}; the disk has no partition table now") from error


def container_format(head: bytes) -> str | None:
    """The format of an image that starts with these bytes; None for bytes that may be a disk's own."""
    if head[_VDI_AT : _VDI_AT + len(_VDI)] == _VDI:
        return "VDI"
    return next((name for beginning, name in _CONTAINERS if head.startswith(beginning)), None)


def remedy(kind: str) -> str:
    """The remedy for an image that an action does not write."""
    if kind == QCOW2:
        return "qemuimg2disk writes one that is not compressed as a whole"
    return "convert it: qemu-img convert -c -O qcow2 for qemuimg2disk, or -O raw for image2disk"
