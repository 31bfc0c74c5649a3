"""One operation on a BMC, as Jobs, Tasks and a Workflow's custom boot carry it.

Source: tinkerbell/tinkerbell: api/v1alpha1/bmc/job.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import field

from ironbell.api.crd.markers import Schema, required
from ironbell.api.meta import Model


class PowerAction(StrEnum):
    """Values of `powerAction`."""

    ON = "on"
    OFF = "off"
    SOFT = "soft"
    STATUS = "status"
    CYCLE = "cycle"
    RESET = "reset"


class BootDeviceName(StrEnum):
    """Boot devices that every driver understands; the schema leaves the set open."""

    PXE = "pxe"
    DISK = "disk"
    BIOS = "bios"
    CDROM = "cdrom"
    SAFE = "safe"


class VirtualMediaKind(StrEnum):
    """Values of a virtual media action's `kind`."""

    CD = "CD"


class OneTimeBootDeviceAction(Model, frozen=True):
    """Older form of a boot device choice that holds for the next boot only; use `bootDevice` instead."""

    device: Annotated[
        list[Annotated[str, Schema("Name of a boot device.")]],
        Schema("Boot devices in order of preference; only the first is used."),
    ] = required(list)
    efi_boot: Annotated[bool, Schema("Boot in UEFI mode instead of legacy BIOS mode.")] = field(
        default=False, name="efiBoot"
    )


class BootDevice(Model, frozen=True):
    """Device that the machine boots from."""

    device: Annotated[str, Schema("Name of the device: pxe, disk, bios, cdrom or safe.")] = ""
    persistent: Annotated[bool, Schema("Keep the choice for all later boots instead of the next one only.")] = False
    efi_boot: Annotated[bool, Schema("Boot in UEFI mode instead of legacy BIOS mode.")] = field(
        default=False, name="efiBoot"
    )


class VirtualMediaAction(Model, frozen=True):
    """Insert an image into the BMC's virtual drive, or eject what is in it."""

    media_url: Annotated[str, Schema("Address of the image to insert; empty ejects.")] = field(
        default="", name="mediaURL"
    )
    kind: Annotated[str, Schema("Kind of virtual drive; CD is the one that drivers know.")] = required(str)


class Action(Model, frozen=True):
    """Exactly one operation on a BMC: power, boot device or virtual media."""

    schema_: ClassVar[Schema] = Schema(max_properties=1)

    power_action: Annotated[str | None, Schema("Power operation to carry out.", enum=tuple(PowerAction))] = None
    one_time_boot_device_action: Annotated[
        OneTimeBootDeviceAction | None, Schema("Deprecated: sets the device of the next boot; use bootDevice.")
    ] = None
    boot_device: Annotated[BootDevice | None, Schema("Sets the boot device.")] = None
    virtual_media_action: Annotated[VirtualMediaAction | None, Schema("Inserts or ejects virtual media.")] = None
