"""EC2-style metadata, API version 2009-04-04: the tree that cloud-init's Ec2 data source walks.

Pure functions of a Hardware. A value that the Hardware does not set is an empty text, as upstream. `public-keys` has
the instance's SSH keys, in both forms that clients read.

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
    """Return disks and file systems in the form that the action `rootio` reads."""
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
    """Return the entries of a directory of the tree, or None if `path` is not a directory."""
    names = LISTINGS.get(path.strip("/"))
    return None if names is None else "\n".join(names)


def value(hardware: Hardware, path: str) -> str | None:
    """Return the text at a leaf, or None if the path does not exist."""
    path = path.strip("/")
    if path == "user-data":
        return hardware.spec.user_data or ""
    reader = _LEAVES.get(path.removeprefix("meta-data/")) if path.startswith("meta-data/") else None
    if reader is not None:
        return reader(hardware)
    return _public_key(hardware, path.removeprefix("meta-data/public-keys/"))


def instance_of(hardware: Hardware) -> Instance:
    """Return the instance of a Hardware; an empty one if it is not set."""
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
    def matches(ip: InstanceIp) -> bool:
        return ip.family == family and (public is None or bool(ip.public) is public)

    return lambda hardware: next((ip.address for ip in instance_of(hardware).ips if matches(ip)), "")


def _facility(hardware: Hardware) -> tuple[str, str]:
    facility = hardware.spec.metadata.facility if hardware.spec.metadata else None
    return (facility.facility_code, facility.plan_slug) if facility else ("", "")


def _system(attribute: str) -> Callable[[Hardware], str]:
    def read(hardware: Hardware) -> str:
        system = instance_of(hardware).operating_system
        return str(getattr(system, attribute)) if system else ""

    return read


_LEAVES: dict[str, Callable[[Hardware], str]] = {
    "instance-id": lambda hardware: instance_of(hardware).id,
    "hostname": lambda hardware: instance_of(hardware).hostname,
    "local-hostname": lambda hardware: instance_of(hardware).hostname,
    "iqn": lambda _hardware: "",
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
    "operating-system/license_activation/state": lambda _hardware: "",
}
