"""EC2-style metadata, API version 2009-04-04: the tree that cloud-init's Ec2 data source walks.

Pure: a Hardware in, texts out. A value that the Hardware does not give is an empty text, as upstream; a path outside
the tree is None. `public-keys` is filled from the instance's SSH keys, in both shapes that clients know.

Source: tinkerbell/tinkerbell: tootles/internal/frontend/ec2; cloud-init: sources/helpers/ec2.py (how it is walked).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.metadata import Instance, InstanceIp
from ironbell.base.quantities import decimal

API_VERSION = "2009-04-04"

LISTINGS = {
    "": ("meta-data/", "user-data"),
    "meta-data": (
        "facility", "hostname", "instance-id", "iqn", "local-hostname", "local-ipv4", "operating-system/", "plan",
        "public-ipv4", "public-ipv6", "public-keys", "tags",
    ),
    "meta-data/operating-system": ("distro", "image_tag", "license_activation/", "slug", "version"),
    "meta-data/operating-system/license_activation": ("state",),
}  # fmt: skip


def storage_document(hardware: Hardware) -> dict[str, Any]:
    """Disks and file systems in the shape that the action reads."""
    storage = instance_of(hardware).storage
    disks = [
        {
            "device": disk.device,
            "partitions": [{"label": p.label, "number": p.number, "size": p.size} for p in disk.partitions],
            "wipe_table": bool(disk.wipe_table),
        }
        for disk in (storage.disks if storage else ())
    ]
    filesystems = [
        {
            "mount": {
                "create": {"options": list(mount.create.options) if mount.create else []},
                "device": mount.device,
                "format": mount.format,
                "point": mount.point,
            }
        }
        for filesystem in (storage.filesystems if storage else ())
        if (mount := filesystem.mount) is not None
    ]
    return {"metadata": {"instance": {"storage": {"disks": disks, "filesystems": filesystems}}}}


def listing(path: str) -> str | None:
    """What a directory of the tree holds, or None when `path` is no directory. Needs no Hardware."""
    names = LISTINGS.get(path.strip("/"))
    return None if names is None else "\n".join(names)


def value(hardware: Hardware, path: str) -> str | None:
    """The text at a leaf, or None when there is no such path."""
    path = path.strip("/")
    if path == "user-data":
        return hardware.spec.user_data or ""
    reader = _LEAVES.get(path.removeprefix("meta-data/")) if path.startswith("meta-data/") else None
    if reader is not None:
        return reader(hardware)
    return _public_key(hardware, path.removeprefix("meta-data/public-keys/"))


def instance_of(hardware: Hardware) -> Instance:
    """The instance block, or an empty one."""
    metadata = hardware.spec.metadata
    return (metadata.instance if metadata else None) or Instance()


def _public_key(hardware: Hardware, rest: str) -> str | None:
    text, _, leaf = rest.partition("/")
    keys = instance_of(hardware).ssh_keys
    number = decimal(text)
    if number is None or number >= len(keys):
        return None
    if leaf == "":
        return "openssh-key"
    return keys[number] if leaf == "openssh-key" else None


def _address(family: int, *, public: bool | None) -> Callable[[Hardware], str]:
    def matches(address: InstanceIp) -> bool:
        return address.family == family and (public is None or bool(address.public) is public)

    return lambda hardware: next((ip.address for ip in instance_of(hardware).ips if matches(ip)), "")


def _facility(hardware: Hardware) -> tuple[str, str]:
    facility = hardware.spec.metadata.facility if hardware.spec.metadata else None
    return (facility.facility_code, facility.plan_slug) if facility else ("", "")


def _system(attribute: str) -> Callable[[Hardware], str]:
    def read(hardware: Hardware) -> str:
        system = instance_of(hardware).operating_system
        return str(getattr(system, attribute)) if system else ""

    return read


def _nothing(_hardware: Hardware) -> str:
    return ""


_LEAVES: dict[str, Callable[[Hardware], str]] = {
    "instance-id": lambda hardware: instance_of(hardware).id,
    "hostname": lambda hardware: instance_of(hardware).hostname,
    "local-hostname": lambda hardware: instance_of(hardware).hostname,
    "iqn": _nothing,
    "plan": lambda hardware: _facility(hardware)[1],
    "facility": lambda hardware: _facility(hardware)[0],
    "tags": lambda hardware: "\n".join(instance_of(hardware).tags),
    "public-ipv4": _address(4, public=True),
    "local-ipv4": _address(4, public=False),
    "public-ipv6": _address(6, public=None),
    "public-keys": lambda hardware: "\n".join(instance_of(hardware).ssh_keys),
    "operating-system/slug": _system("slug"),
    "operating-system/distro": _system("distro"),
    "operating-system/version": _system("version"),
    "operating-system/image_tag": _system("image_tag"),
    "operating-system/license_activation/state": _nothing,
}
