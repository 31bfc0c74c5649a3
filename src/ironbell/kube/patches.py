"""Merge patches computed from two states of plain data, and applied (RFC 7386).

`diff` gives the smallest patch from old to new, so that a status write carries what changed and nothing is written
when nothing did. Lists are replaced as a whole, as the RFC has it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.meta import Resource
from ironbell.kube.decision import AnyKind, Fields, MergePatch, patch_status


def diff(old: Fields, new: Fields) -> Fields:
    """The merge patch that turns `old` into `new`; empty when they are equal."""
    patch: Fields = {name: None for name in old if name not in new}
    for name, value in new.items():
        old_value = old.get(name)
        if isinstance(old_value, dict) and isinstance(value, dict):
            inner = diff(old_value, value)
            if inner:
                patch[name] = inner
        elif name not in old or old_value != value:
            patch[name] = value
    return patch


def apply(target: Any, patch: Any) -> Any:
    """`patch` applied to `target` (RFC 7386 section 2); neither is changed, what is not patched is shared."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = apply(result.get(name), value)
    return result


def status_change(
    kind: AnyKind, target: Resource, old: msgspec.Struct, new: msgspec.Struct, *, intent: str = ""
) -> MergePatch | None:
    """The status patch from one status struct to another; None when they are equal."""
    if old is new or old == new:
        return None
    change = diff(msgspec.to_builtins(old), msgspec.to_builtins(new))
    return patch_status(kind, target, change, intent=intent) if change else None
