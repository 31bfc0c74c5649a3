"""qemuimg2disk: write a qcow2 image from HTTP(S) to a disk, expanded on the way; raw images as image2disk does.

`IMG_URL`, `DEST_DISK`. The image is read where it lies, so the machine needs no room for it. `FORMAT` may be
`host_device` or `raw`; `EXTRA_ARGS` may hold what makes qemu-img faster and is of no use here. `IMG_RAW_CHECKSUM` and
what concerns retries are as for image2disk. VMDK, VDI, VHD and VHDX are refused, before the disk is touched.

Source: tinkerbell/actions: qemuimg2disk.
"""

from __future__ import annotations

from typing import Final

from ironbell.agent.actions import image2disk
from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, foreign
from ironbell.agent.actions.disks.diskwriter import DiskWriter
from ironbell.agent.actions.streams import checksum, qcow2
from ironbell.agent.actions.streams.download import Download, shown
from ironbell.agent.actions.streams.ranged import Ranged

_HEAD: Final = 4096
_FORMATS: Final = ("host_device", "raw")
_FLAGS: Final = frozenset({"-W", "-p", "-q"})
_WITH_VALUE: Final = frozenset({"-m", "-t", "-T", "-r"})


def run(context: Context) -> None:
    """Write the image."""
    url = context.required("IMG_URL")
    _check(context)

    def transfer() -> None:
        device = devices.resolve(context, context.required("DEST_DISK"))
        download = Download(url, say=context.say, patience=image2disk.patience(context))
        download.open()
        try:
            source = Ranged(download)
            kind = foreign.container(source.read(0, _HEAD))
            if kind == foreign.QCOW2:
                _write(context, source, name=shown(url), device=device)
                return
        finally:
            download.close()
        image2disk.run(context)

    image2disk.begun_again(context, transfer)


def _write(context: Context, source: Ranged, *, name: str, device: devices.Device) -> None:
    if context.text("IMG_CHECKSUM"):
        raise ActionError(
            "IMG_CHECKSUM cannot be held for a qcow2 image, which is not read in order; give IMG_RAW_CHECKSUM, "
            "that of the disk's bytes",
            exit_status=10,
        )
    header = qcow2.parse(source.read(0, qcow2.HEADER_SIZE))
    if header.size > device.size:
        has, wants = devices.size_text(device.size), devices.size_text(header.size)
        raise ActionError(f"the image is of a disk of {wants}, {device} has only {has}; choose a larger disk")
    context.say(f"writing {name} (qcow2, {devices.size_text(header.size)}) to {device}")
    image, written = qcow2.chunks(header, source.read), checksum.expected(context, "IMG_RAW_CHECKSUM")
    if written:
        image = written.over(image)
    writer = DiskWriter(device)
    try:
        image2disk.fill(
            context, image, writer=writer, what="qemuimg2disk", share=lambda: writer.position / header.size, name=name
        )
        image2disk.verify((written, "the image"))
        writer.commit()
    finally:
        writer.close()
    if not devices.reread_partitions(device):
        context.say(f"the kernel did not read the new partition table of {device}; a reboot will")


def _check(context: Context) -> None:
    """Refuse what would have qemu-img do something else."""
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
                f"EXTRA_ARGS has {word}, which is none of {', '.join(sorted(_FLAGS | _WITH_VALUE))}; prepare the image "
                "with qemu-img convert instead",
                exit_status=10,
            )
