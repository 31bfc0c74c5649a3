"""Owner references, pure: lists of them, and the patches that change them.

Group, kind and name identify an owner: a reference to another version of the kind is the same one, and a uid that
has changed (the objects were moved to another API server) is put right.

Source: kubernetes-sigs/cluster-api: util/util.go; kubernetes/apimachinery: pkg/apis/meta/v1/controller_ref.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from ironbell.api.meta import OwnerReference, Resource, to_builtin
from ironbell.kube.decision import AnyKind, MergePatch, patch


def owner_reference(
    kind: AnyKind, owner: Resource, *, controller: bool = False, block: bool | None = None
) -> OwnerReference:
    """A reference to an object. A controller's reference blocks the foreground deletion of the owner, as Kubernetes
    has it, unless `block` says otherwise."""
    return OwnerReference(
        api_version=kind.api_version,
        kind=kind.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True if controller else None,
        block_owner_deletion=(True if controller else None) if block is None else block,
    )


def group_of(api_version: str) -> str:
    """The group in an apiVersion."""
    return api_version.rpartition("/")[0]


def is_same_owner(left: OwnerReference, right: OwnerReference) -> bool:
    """Return whether two references name the same object."""
    return (group_of(left.api_version), left.kind, left.name) == (group_of(right.api_version), right.kind, right.name)


def refers_to(reference: OwnerReference, kind: AnyKind, obj: Resource) -> bool:
    """Return whether a reference names this object."""
    return (group_of(reference.api_version), reference.kind, reference.name) == (
        kind.group,
        kind.kind,
        obj.metadata.name,
    )


def controller_of(obj: Resource) -> OwnerReference | None:
    """The owner that controls the object."""
    return next((owner for owner in obj.metadata.owner_references if owner.controller), None)


def is_controlled_by(obj: Resource, kind: AnyKind, owner: Resource) -> bool:
    """Return whether this owner controls the object."""
    reference = controller_of(obj)
    return reference is not None and refers_to(reference, kind, owner)


def is_owned_by(obj: Resource, kind: AnyKind, owner: Resource) -> bool:
    """Return whether this owner is among the object's."""
    return any(refers_to(reference, kind, owner) for reference in obj.metadata.owner_references)


def with_owner(references: Sequence[OwnerReference], reference: OwnerReference) -> list[OwnerReference]:
    """The list with this reference, in place of one to the same object or at the end.

    A new controller takes the mark from the old one: there can be but one.
    """
    others = [
        _not_controlling(held) if reference.controller and held.controller else held
        for held in references
        if not is_same_owner(held, reference)
    ]
    place = next((i for i, held in enumerate(references) if is_same_owner(held, reference)), len(others))
    return [*others[:place], reference, *others[place:]]


def without_owner(references: Sequence[OwnerReference], kind: AnyKind, name: str) -> list[OwnerReference]:
    """The list without references to an object of this kind and name."""
    return [
        held
        for held in references
        if (group_of(held.api_version), held.kind, held.name) != (kind.group, kind.kind, name)
    ]


def owners_patch(kind: AnyKind, obj: Resource, references: Sequence[OwnerReference]) -> MergePatch | None:
    """The patch that gives an object these owners; None if it has them.

    The list is replaced as a whole, so the patch carries the observed resourceVersion as its precondition.
    """
    if list(references) == list(obj.metadata.owner_references):
        return None
    return patch(kind, obj, {"metadata": {"ownerReferences": to_builtin(list(references)) or None}}, locked=True)


def _not_controlling(reference: OwnerReference) -> OwnerReference:
    return OwnerReference(
        api_version=reference.api_version, kind=reference.kind, name=reference.name, uid=reference.uid
    )
