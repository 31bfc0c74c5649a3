"""The volumes that are still attached to a node that is being deleted. Pure.

A volume is left out if only pods use it that draining leaves on the node: nothing will detach it.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go (shouldWaitForNodeVolumes).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ironbell.base.listing import listed


@dataclass(frozen=True, slots=True)
class VolumeView:
    """A PersistentVolume."""

    name: str
    attached_name: str = ""
    """Name of the volume in a Node's status: `kubernetes.io/csi/DRIVER^HANDLE`; empty if it is not a CSI volume."""
    claim: str = ""
    """NAMESPACE/NAME of its PersistentVolumeClaim."""


@dataclass(frozen=True, slots=True)
class VolumesOfNode:
    """The attachments of a node."""

    in_status: tuple[str, ...] = ()
    """Names in the Node's `status.volumesAttached`."""
    by_attachment: tuple[str, ...] = ()
    """PersistentVolumes of attached VolumeAttachments."""
    volumes: tuple[VolumeView, ...] = ()
    """PersistentVolumes of the cluster; not queried if nothing is attached."""


@dataclass(frozen=True, slots=True)
class Attached:
    """The volumes that have to be detached first, each list sorted."""

    claims: tuple[str, ...] = ()
    volumes_without_claim: tuple[str, ...] = ()
    names_without_volume: tuple[str, ...] = ()
    attachments_without_volume: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (
            self.claims or self.volumes_without_claim or self.names_without_volume or self.attachments_without_volume
        )


def attached(node: VolumesOfNode, *, ignored_claims: Collection[str]) -> Attached:
    """The volumes that have to be detached, without the volumes of `ignored_claims` (NAMESPACE/NAME)."""
    in_status, by_attachment = set(node.in_status), set(node.by_attachment)
    attached_volumes = [
        volume for volume in node.volumes if volume.name in by_attachment or volume.attached_name in in_status - {""}
    ]
    return Attached(
        claims=tuple(sorted({v.claim for v in attached_volumes if v.claim} - set(ignored_claims))),
        volumes_without_claim=tuple(sorted(v.name for v in attached_volumes if not v.claim)),
        names_without_volume=tuple(sorted(in_status - {v.attached_name for v in attached_volumes})),
        attachments_without_volume=tuple(sorted(by_attachment - {v.name for v in attached_volumes})),
    )


def message(waiting_for: Attached, started: str) -> str:
    """The message while volumes are attached."""
    lines = [f"Waiting for Node volumes to be detached (started at {started})"]
    for title, names in (
        ("PersistentVolumeClaims", waiting_for.claims),
        (
            "PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim",
            waiting_for.volumes_without_claim,
        ),
        (
            "Node with .status.volumesAttached entries not matching a PersistentVolume",
            waiting_for.names_without_volume,
        ),
        (
            "VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume",
            waiting_for.attachments_without_volume,
        ),
    ):
        if names:
            lines.append(f"* {title}: {listed(names, most=5)}")
    return "\n".join(lines)
