"""Finalizers, pure: patches that add and remove ours, and leave those of others alone.

The list is replaced as a whole, so each patch carries the observed resourceVersion as its precondition.
"""

from __future__ import annotations

from ironbell.api.meta import Resource
from ironbell.kube.decision import AnyKind, MergePatch, patch


def is_deleting(obj: Resource) -> bool:
    """Return whether the object is being deleted."""
    return obj.metadata.deletion_timestamp is not None


def has_finalizer(obj: Resource, finalizer: str) -> bool:
    return finalizer in obj.metadata.finalizers


def add_finalizer(kind: AnyKind, obj: Resource, finalizer: str) -> MergePatch | None:
    """Return the patch that adds the finalizer; None if it is set, or if the object is being deleted."""
    if has_finalizer(obj, finalizer) or is_deleting(obj):
        return None
    return patch(kind, obj, {"metadata": {"finalizers": [*obj.metadata.finalizers, finalizer]}}, locked=True)


def remove_finalizer(kind: AnyKind, obj: Resource, finalizer: str) -> MergePatch | None:
    """Return the patch that removes the finalizer; None if it is not set."""
    if not has_finalizer(obj, finalizer):
        return None
    rest = [f for f in obj.metadata.finalizers if f != finalizer]
    return patch(kind, obj, {"metadata": {"finalizers": rest or None}}, locked=True)
