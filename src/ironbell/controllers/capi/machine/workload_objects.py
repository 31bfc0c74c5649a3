"""Objects of workload clusters that a deletion reads: only the fields that it needs.

Source: kubernetes/api: core/v1, apps/v1, storage/v1, policy/v1.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ironbell.api.kind import Kind
from ironbell.api.meta import Model, Resource


class ClaimSource(Model, frozen=True):
    """The claim behind a pod's volume."""

    claim_name: str = ""


class PodVolume(Model, frozen=True):
    """A pod's volume."""

    persistent_volume_claim: ClaimSource | None = None


class PodSpec(Model, frozen=True):
    """The desired state of a pod."""

    volumes: list[PodVolume] = msgspec.field(default_factory=list)


class PodStatus(Model, frozen=True):
    """The current state of a pod."""

    phase: str = ""


class Pod(Resource, frozen=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class AttachedVolume(Model, frozen=True):
    """A volume that a node reports as attached."""

    name: str = ""


class NodeVolumesStatus(Model, frozen=True):
    """The volumes in a node's status."""

    volumes_attached: list[AttachedVolume] = msgspec.field(default_factory=list)


class NodeVolumes(Resource, frozen=True):
    """A node with only the volumes of its status."""

    status: NodeVolumesStatus = NodeVolumesStatus()


class AttachmentSource(Model, frozen=True):
    """The attached volume."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Model, frozen=True):
    """The volume to attach, and the node."""

    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachmentStatus(Model, frozen=True):
    """The state of the attachment."""

    attached: bool = False


class VolumeAttachment(Resource, frozen=True):
    """The attachment of one volume to one node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()


class CsiSource(Model, frozen=True):
    """A volume behind a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class ClaimReference(Model, frozen=True):
    """The claim that a volume is bound to."""

    kind: str = ""
    namespace: str = ""
    name: str = ""


class PersistentVolumeSpec(Model, frozen=True):
    """The location and the claim of a volume."""

    csi: CsiSource | None = None
    claim_ref: ClaimReference | None = None


class PersistentVolume(Resource, frozen=True):
    """A volume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class NamespaceLabels(Resource, frozen=True):
    """A namespace with only its metadata."""


class DaemonSet(Resource, frozen=True):
    """A DaemonSet with only its metadata."""


POD: Final = Kind("", "v1", "Pod", "pods", Pod, has_status=True)
NODE_VOLUMES: Final = Kind("", "v1", "Node", "nodes", NodeVolumes, namespaced=False, has_status=True)
NAMESPACE_LABELS: Final = Kind("", "v1", "Namespace", "namespaces", NamespaceLabels, namespaced=False, has_status=True)
DAEMON_SET: Final = Kind("apps", "v1", "DaemonSet", "daemonsets", DaemonSet, has_status=True)
VOLUME_ATTACHMENT: Final = Kind(
    "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", VolumeAttachment, namespaced=False, has_status=True
)
PERSISTENT_VOLUME: Final = Kind(
    "", "v1", "PersistentVolume", "persistentvolumes", PersistentVolume, namespaced=False, has_status=True
)
