"""Owners of servers: their kind, their markers, and the objects that are created for them beside the Hardware. Pure.

A front door describes its kind once, as an `OwnerKind`. Markers are annotations on the owner itself (`names`). Objects
that are created for it (Template, Workflow, Job) have two labels that name the owner, because an owner reference is
valid in its own namespace only, and Hardware may be in another one. For the claim see `contract.servers.claim`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironbell.api.meta import Condition, Resource, to_builtin
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.owners import owner_reference
from ironbell.contract.servers.claim import Claimant
from ironbell.contract.servers.directory import KEEP_DISKS
from ironbell.kube.decision import AnyKind, Emit, Fields, Key, MergePatch, emit, patch
from ironbell.provisioner.lifecycle.names import RACK, number


@dataclass(frozen=True, slots=True)
class OwnerStatus:
    """The owner's own record of its server."""

    server: Key | None = None
    """The Hardware that it names; it never changes."""
    is_ready: bool = False
    """Whether its operating system has been installed and up."""
    phase: str = ""
    """The last phase (`names.State`)."""
    conditions: Sequence[Condition] = ()


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """A kind of object that claims servers."""

    kind: AnyKind
    finalizer: str
    name_label: str
    """Label with the owner's name, on objects that are created for it."""
    namespace_label: str
    """Label with the owner's namespace, on the same objects."""
    status_of: Callable[[Any], OwnerStatus]
    wish_key: Callable[[Any], str]
    """A key that is the same for all owners that wait for the same servers."""
    cluster_of: Callable[[Any], Key]
    """Namespace and name of the Cluster of an owner."""
    former_finalizer: str = ""
    """Removed wherever `finalizer` is added or removed."""
    replaced: str = ""
    """Kind of the object that a user deletes to get another server, for messages; empty for the owner's kind."""

    @property
    def noun(self) -> str:
        """The kind of the object that a user deletes, for messages."""
        return self.replaced or self.kind.kind

    def of(self, created: Resource) -> Key | None:
        """The owner that an object was created for, by its labels."""
        labels = created.metadata.labels
        if self.name_label not in labels:
            return None
        return labels.get(self.namespace_label, created.metadata.namespace), labels[self.name_label]

    def claimant(self, obj: Resource) -> Claimant:
        """The owner as a claim on Hardware names it."""
        return Claimant(self.kind.kind, *obj.key, obj.metadata.uid)


@dataclass(frozen=True, slots=True)
class Owner:
    """One object that claims a server."""

    of: OwnerKind
    obj: Any

    @property
    def name(self) -> str:
        """The name, which its Template and Workflow have as well."""
        return str(self.obj.metadata.name)

    @property
    def path(self) -> str:
        """NAMESPACE/NAME."""
        return "/".join(self.obj.key)

    @property
    def uid(self) -> str:
        return str(self.obj.metadata.uid)

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its markers, and what its user has set."""
        annotations: Mapping[str, str] = self.obj.metadata.annotations
        return annotations

    @property
    def claimant(self) -> Claimant:
        """The owner as a claim on Hardware names it."""
        return self.of.claimant(self.obj)

    @property
    def status(self) -> OwnerStatus:
        return self.of.status_of(self.obj)

    def number(self, annotation: str, default: int) -> int:
        """The number in one of its annotations."""
        return number(self.obj, annotation, default)

    def patch(self, body: Fields) -> MergePatch:
        """A write on the owner, which fails if it has changed."""
        return patch(self.of.kind, self.obj, body, locked=True)

    def mark(self, markers: Mapping[str, str | None]) -> MergePatch:
        """The write of markers; None removes one."""
        return self.patch({"metadata": {"annotations": dict(markers)}})

    def event(self, reason: str, message: str, *, warning: bool = False) -> Emit:
        return emit(self.of.kind, self.obj, reason=reason, message=message, warning=warning)

    def metadata(self, hardware: Hardware, name: str) -> Fields:
        """Metadata of what is created beside the Hardware."""
        labels = {self.of.name_label: self.name, self.of.namespace_label: self.obj.metadata.namespace}
        metadata: Fields = {"name": name, "namespace": hardware.metadata.namespace, "labels": labels}
        if hardware.metadata.namespace == self.obj.metadata.namespace:
            metadata["ownerReferences"] = [to_builtin(owner_reference(self.of.kind, self.obj, controller=True))]
        return metadata

    def workflow_metadata(self, hardware: Hardware, name: str, annotations: Mapping[str, str]) -> Fields:
        """Metadata of a Workflow, with the disks to keep, and the rack in which it is counted."""
        inherited = {name: text for name in (KEEP_DISKS, RACK) if (text := self.annotations.get(name))}
        merged, metadata = {**inherited, **annotations}, self.metadata(hardware, name)
        return {**metadata, "annotations": merged} if merged else metadata

    def owns(self, created: Resource) -> bool:
        """Return whether an object was created for this owner; those of upstream's controllers have no labels."""
        labels = created.metadata.labels
        if self.of.name_label not in labels:
            return any(owner.uid == self.uid for owner in created.metadata.owner_references)
        return bool((labels.get(self.of.namespace_label), labels[self.of.name_label]) == self.obj.key)

    def owned(self, *created: Any) -> list[Any]:
        """The objects that exist and were created for this owner."""
        return [obj for obj in created if obj is not None and self.owns(obj)]


def owner_finalizers(owner: Owner, *, present: bool) -> list[str] | None:
    """The owner's finalizers with its kind's finalizer present or absent; None if they do not change."""
    current = owner.obj.metadata.finalizers
    others = [name for name in current if name not in (owner.of.finalizer, owner.of.former_finalizer)]
    if present and owner.of.finalizer in current and owner.of.former_finalizer not in current:
        return None
    desired = [*others, owner.of.finalizer] if present else others
    return None if not present and len(others) == len(current) else desired
