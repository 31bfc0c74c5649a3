"""`/metadata`: the storage layout that the `rootio` action partitions and formats by.

Source: tinkerbell/tinkerbell: tootles/internal/frontend/hack; tinkerbell/actions: rootio.
"""

from __future__ import annotations

from typing import Any

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.services.metadata.ec2 import instance_of


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
