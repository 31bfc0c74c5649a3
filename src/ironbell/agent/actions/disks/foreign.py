"""Disk images that are no copy of a disk: told by their first bytes, since written as they are they boot nothing.

Source: QEMU: docs/interop/qcow2.rst, block/{qed,vdi,vhdx,vmdk,vpc}.c.
"""

from __future__ import annotations

from typing import Final

QCOW2: Final = "qcow2"
_VDI_AT: Final = 0x40
_VDI: Final = b"\x7f\x10\xda\xbe"
_BEGINNINGS: Final = (
    (b"QFI\xfb", QCOW2),
    (b"QED\0", "QED"),
    (b"KDMV", "VMDK"),
    (b"COWD", "VMDK"),
    (b"# Disk DescriptorFile", "VMDK"),
    (b"conectix", "VHD"),
    (b"vhdxfile", "VHDX"),
)


def container(head: bytes) -> str | None:
    """The format of an image that starts like this; None for what may be a disk's own bytes."""
    if head[_VDI_AT : _VDI_AT + len(_VDI)] == _VDI:
        return "VDI"
    return next((name for beginning, name in _BEGINNINGS if head.startswith(beginning)), None)


def remedy(kind: str) -> str:
    """What a person does with an image that an action does not write."""
    if kind == QCOW2:
        return "qemuimg2disk writes one that is not compressed as a whole"
    return "convert it: qemu-img convert -c -O qcow2 for qemuimg2disk, or -O raw for image2disk"
