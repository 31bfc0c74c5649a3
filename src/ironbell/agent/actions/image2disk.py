"""image2disk: stream a raw disk image from HTTP(S) to a disk.

`IMG_URL`, `DEST_DISK`; compression is recognised by the content (`COMPRESSED=true` insists on one). `IMG_CHECKSUM`
(`sha256:…`) is that of the file as it lies on the server, `IMG_RAW_CHECKSUM` that of the image written.
`RETRY_ENABLED` and `RETRY_DURATION_MINUTES` say how long to wait while nothing arrives (2 minutes without),
`PROGRESS_INTERVAL_SECONDS` how often to say how far it is. `TEXT_LOGGING` is accepted and has no effect.

The disk is touched only once the server has answered with something that can be an image; a transfer that is
interrupted goes on where it stopped; the first blocks are written last, after everything has been verified.

Source: tinkerbell/actions: image2disk.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, foreign
from ironbell.agent.actions.disks.diskwriter import DiskWriter
from ironbell.agent.actions.streams import checksum, decompress
from ironbell.agent.actions.streams.download import Download, Patience, SourceChangedError, shown
from ironbell.agent.actions.streams.meter import Meter
from ironbell.agent.actions.streams.relay import relayed

_HEAD = 4096
_RESTARTS = 2
_TAR_AT, _TAR = 257, b"ustar"
_MARKUP = (b"<!doctype", b"<html", b"<?xml")


@dataclass(frozen=True)
class Source:
    """Where an image comes from: what it is called, its download, and the check sum of the file as it is served."""

    name: str
    download: Download
    served: checksum.Checksum | None


def run(context: Context) -> None:
    """Write the image."""
    url = context.required("IMG_URL")

    def source() -> Source:
        served = checksum.expected(context, "IMG_CHECKSUM")
        return Source(shown(url), Download(url, say=context.say, patience=patience(context)), served)

    write_from(context, source)


def write_from(context: Context, source: Callable[[], Source]) -> None:
    """Write an image to `DEST_DISK`."""
    begun_again(context, lambda: _transfer(context, source))


def begun_again(context: Context, transfer: Callable[[], None]) -> None:
    """Carry out a transfer, from the beginning again when the source changed on the way."""
    for left in reversed(range(_RESTARTS + 1)):
        try:
            transfer()
        except SourceChangedError as error:
            if not left:
                raise
            context.say(f"{error.message}; starting again")
        else:
            return


def patience(context: Context) -> Patience:
    """How long the template lets a download be silent."""
    stall_s = context.number("HTTP_STALL_SECONDS", default=Patience.stall_s, minimum=0.1)
    if not context.flag("RETRY_ENABLED"):
        return Patience(stall_s=stall_s)
    return Patience(total_s=60 * context.number("RETRY_DURATION_MINUTES", default=10), stall_s=stall_s)


def _transfer(context: Context, make: Callable[[], Source]) -> None:
    device = devices.resolve(context, context.required("DEST_DISK"))
    written = checksum.expected(context, "IMG_RAW_CHECKSUM")
    source = make()
    download, served = source.download, source.served
    download.open()
    try:
        chunks = download.chunks()
        image = _image(context, source, served.over(chunks) if served else chunks, device=device)
        if written:
            image = written.over(image)
        writer = DiskWriter(device)
        try:
            fill(context, image, writer=writer, what="image2disk", share=lambda: _share(download), name=source.name)
            verify((served, "the downloaded file"), (written, "the image"))
            if download.total is not None and download.offset != download.total:
                raise ActionError(f"only {download.offset} of {download.total} bytes arrived")
            writer.commit()
        finally:
            writer.close()
    finally:
        download.close()
    if not devices.reread_partitions(device):
        context.say(f"the kernel did not read the new partition table of {device}; a reboot will")


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
        context.say(f"writing {name} ({kind.value}{_announced(download)}) to {device}")
        return decompress.expand(itertools.chain([head], chunks), kind)
    if context.flag("COMPRESSED"):
        raise ActionError(f"COMPRESSED is true, but {name} is neither gzip, xz, zstd nor bzip2")
    if head[:_HEAD].lstrip().lower().startswith(_MARKUP):
        raise ActionError(f"{name} is a web page, no disk image; check IMG_URL")
    if not head:
        raise ActionError(f"{name} is empty")
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        raise ActionError(f"{name} is a tar archive, no disk image; archive2disk unpacks one")
    if download.total is not None and download.total > device.size:
        raise ActionError(
            f"the image has {devices.size_text(download.total)}, {device} only {devices.size_text(device.size)}"
        )
    context.say(f"writing {name} (raw{_announced(download)}) to {device}")
    return itertools.chain([head], chunks)


def _announced(download: Download) -> str:
    return "" if download.total is None else f", {devices.size_text(download.total)}"


def _share(download: Download) -> float | None:
    return download.offset / download.total if download.total else None


def fill(
    context: Context,
    image: Iterator[bytes],
    *,
    writer: DiskWriter,
    what: str,
    share: Callable[[], float | None],
    name: str,
) -> None:
    """Write the image, but for what is held back until it is verified.

    Args:
        context: the action's.
        image: the bytes of the disk.
        writer: the disk; nothing is done to it before there is something that can be an image.
        what: the action, for people.
        share: how much of the source has been read, 0 to 1; None where nobody knows.
        name: what the source is called.

    Raises:
        ActionError: there is no image, or it is none of a disk's own bytes, or it does not fit.
    """
    meter = Meter(context, what=what)
    with relayed(image) as chunks:
        first = next(chunks, b"")
        if not first:
            raise ActionError("the image is empty")
        kind = foreign.container(first)
        if kind is not None:
            raise ActionError(f"{name} is a {kind} image, not the bytes of a disk; {foreign.remedy(kind)}")
        writer.prepare()
        for chunk in itertools.chain([first], chunks):
            writer.write(chunk)
            meter.update(writer.position, share=share())
        writer.flush()
    meter.finish(writer.position)
    if writer.skipped:
        context.say(f"{devices.size_text(writer.skipped)} of it zeros that the device made by itself")


def verify(*sums: tuple[checksum.Checksum | None, str]) -> None:
    """Hold check sums, each with what it is of, to what was read.

    Raises:
        ActionError: one is another.
    """
    try:
        for expected, what in sums:
            if expected:
                expected.verify(what)
    except ActionError as error:
        raise ActionError(f"{error.message}; the disk is left without a partition table") from error
